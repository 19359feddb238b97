#include "tuner/daemon/search/attached_rows.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "compiler_core/base/printable.h"
#include "db/exchange/foreign_knobs.h"

namespace tuner {
namespace {

using Texts = std::map<std::string, std::string>;

bool has_names(const std::vector<KnobInfo>& knobs, const Texts& config) {
  return knobs.size() == config.size() &&
         std::ranges::all_of(knobs, [&](const KnobInfo& knob) { return config.contains(knob.name); });
}

Status other_names(const SearchSpace& space, const Texts& config) {
  std::string theirs, ours;
  for (const auto& [name, value] : config)
    theirs += (theirs.empty() ? "" : ", ") + printable(name.substr(0, 60));
  for (const KnobInfo& knob : space.parts.front().space->knobs())
    ours += (ours.empty() ? "" : ", ") + knob.name;
  return invalid_argument("expected the parameters ", ours,
                          space.parts.size() > 1 ? " (or those of another template)" : "", ", found ",
                          theirs.empty() ? "none" : theirs);
}

// Our own exports have a word's place in place of the word.
std::optional<int64_t> value_of(const KnobInfo& knob, const std::string& text, bool is_ours) {
  if (knob.kind == KnobKind::kCategorical && !is_ours) {
    const auto label = std::ranges::find(knob.labels, text);
    if (label == knob.labels.end()) return std::nullopt;
    return label - knob.labels.begin();
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<AttachedRows> AttachedRows::of(const JobRow::Task& task) {
  ASSIGN_OR_RETURN(TaskSpace space, make_task_space(task));
  return AttachedRows(task, std::move(space));
}

Result<ForeignRecord> AttachedRows::attach(const ForeignRecord& record) const {
  ASSIGN_OR_RETURN(Texts config, exchange::t4_config(record));
  std::string named;  // our own exports name their template
  if (const auto node = config.extract("template")) named = node.mapped();
  config.erase("template_version");
  const SearchSpace::Part* fits = nullptr;
  for (const SearchSpace::Part& part : space_.search.parts) {
    if ((!named.empty() && named != part.template_name) || !has_names(part.space->knobs(), config)) continue;
    if (fits != nullptr)
      return invalid_argument("its parameters are the knobs of both ", fits->template_name, " and ",
                              part.template_name, "; a parameter \"template\" would say which");
    fits = &part;
  }
  if (fits == nullptr) return other_names(space_.search, config);
  std::map<std::string, int64_t> values;
  std::string text;
  for (const KnobInfo& knob : fits->space->knobs()) {
    const std::optional<int64_t> value = value_of(knob, config.at(knob.name), !named.empty());
    if (!value)
      return invalid_argument(knob.name, " is ", printable(config.at(knob.name).substr(0, 60)),
                              ", which the knob of the job cannot be");
    values[knob.name] = *value;
    text += str(text.empty() ? "" : " ", knob.name, "=", *value);
  }
  ASSIGN_OR_RETURN(const Config ours, config_from_text(text));
  if (const Result<ConfigIndex> index = fits->space->index_of(ours); !index)
    return invalid_argument(index.message());
  ForeignRecord out = exchange::with_t4_config(record, fits->template_name, values);
  out.task = task_.workload_key;
  out.target = task_.target;
  return out;
}

}  // namespace tuner
