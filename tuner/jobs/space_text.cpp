#include "tuner/jobs/space_text.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "templates/space/config_space.h"

namespace tuner {
namespace {

struct Applied {
  const AnyTemplate* schedule_template;
  std::unique_ptr<TemplateInstance> instance;
};

Result<std::vector<Applied>> apply_all(const CliTask& task) {
  ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> serving,
                   templates_for(task.workload, task.target, task.algorithms));
  std::vector<Applied> applied;
  for (const AnyTemplate* t : serving) {
    ASSIGN_OR_RETURN(std::unique_ptr<TemplateInstance> instance, t->apply(task.workload, task.target));
    applied.push_back({t, std::move(instance)});
  }
  return applied;
}

const char* kind_name(KnobKind kind) {
  switch (kind) {
    case KnobKind::kOrdered:
      return "choice";
    case KnobKind::kSplit:
      return "split";
    case KnobKind::kFlag:
      return "flag";
    case KnobKind::kCategorical:
      return "category";
    case KnobKind::kPermutation:
      return "permutation";
  }
  return "";
}

std::string values_text(const KnobInfo& knob) {
  std::string text;
  if (knob.kind == KnobKind::kFlag)
    return knob.candidates.size() == 2 ? "no yes" : knob.first != 0 ? "yes" : "no";
  if (knob.kind == KnobKind::kPermutation) {
    std::string text;
    for (const std::string& item : knob.labels) text += (text.empty() ? "" : " ") + item;
    return str("all ", knob.candidates.size(), " orders of ", text);
  }
  // Enough to see the pattern; a split can have hundreds.
  constexpr size_t kMostShown = 24;
  const size_t n = knob.candidates.size();
  for (size_t i = 0; i < n; ++i) {
    if (n > kMostShown && i == kMostShown / 2) {
      text += str(" ... (", n, " values) ...");
      i = n - kMostShown / 4;
    }
    const std::string value = knob.kind == KnobKind::kCategorical
                                  ? knob.labels[static_cast<size_t>(knob.candidates[i])]
                                  : std::to_string(knob.candidates[i]);
    text += (text.empty() ? "" : " ") + value;
  }
  return text;
}

}  // namespace

Result<std::string> space_text(const CliTask& task) {
  ASSIGN_OR_RETURN(const std::vector<Applied> applied, apply_all(task));
  std::string text = str(task.key, "\non ", task.target_name, "\n");
  for (const Applied& a : applied) {
    const ConfigSpace& space = a.instance->space();
    text += str("template ", a.schedule_template->name(), " version ", a.schedule_template->version(), ": ",
                space.size(), " valid configs\n");
    size_t width = 0;
    for (const KnobInfo& knob : space.knobs()) width = std::max(width, knob.name.size());
    for (const KnobInfo& knob : space.knobs()) {
      const std::string of = knob.kind == KnobKind::kSplit ? str(" of ", knob.extent) : "";
      text += str("  ", knob.name, std::string(width - knob.name.size() + 2, ' '), kind_name(knob.kind), of,
                  ": ", values_text(knob), "\n");
    }
    text += str("  default: ", space.describe(space.at(space.default_index())), "\n");
  }
  return text;
}

Result<uint64_t> space_size(const CliTask& task) {
  ASSIGN_OR_RETURN(const std::vector<Applied> applied, apply_all(task));
  uint64_t total = 0;
  for (const Applied& a : applied) {
    const uint64_t size = a.instance->space().size();
    if (size > std::numeric_limits<uint64_t>::max() - total) return std::numeric_limits<uint64_t>::max();
    total += size;
  }
  return total;
}

}  // namespace tuner
