#include "templates/registry/registry.h"

#include <algorithm>
#include <atomic>

#include "templates/fitted_defaults/fitted_defaults.h"

namespace tuner {

namespace {

std::vector<const AnyTemplate*>& registered() {
  static std::vector<const AnyTemplate*> templates;
  return templates;
}
std::atomic<bool> handed_out{false};

// No template serves two kinds of device, so only the order within a list means anything.
std::vector<const AnyTemplate*> built_in_templates() {
#define TUNER_ADDRESS(name) &name(),
  return {TUNER_ALL_TEMPLATES(TUNER_ADDRESS)};
#undef TUNER_ADDRESS
}

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    names.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return names;
}

template <class Names>
bool has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Who declines, and why: those who say the same together, in the order they come.
class Reasons {
 public:
  void add(std::string_view name, const std::string& reason) {
    const auto same = std::ranges::find(reasons_, reason, &Reason::text);
    if (same == reasons_.end())
      reasons_.push_back({.text = reason, .names = std::string(name)});
    else
      same->names += str(", ", name);
  }
  bool empty() const { return reasons_.empty(); }
  std::string text() const {
    std::string lines;
    for (const Reason& r : reasons_) lines += str(reasons_.size() == 1 ? " " : "\n  ", r.names, ": ", r.text);
    return lines;
  }

 private:
  struct Reason {
    std::string text, names;
  };
  std::vector<Reason> reasons_;
};

void put_fitted_first(const Workload& workload, const Target& target, std::vector<const AnyTemplate*>& all) {
  std::vector<std::string_view> names;
  for (const AnyTemplate* t : all) names.push_back(t->name());
  const auto first =
      static_cast<ptrdiff_t>(fitted_first(default_donors(measured_shapes(), workload, target), names));
  std::rotate(all.begin(), all.begin() + first, all.begin() + first + 1);
}

}  // namespace

RegisterTemplate::RegisterTemplate(const AnyTemplate& schedule_template) {
  CHECK(!handed_out)
      << "template " << schedule_template.name()
      << " is registered after the list of templates was handed out: register it in a variable "
         "of namespace scope";
  registered().push_back(&schedule_template);
}

const std::vector<const AnyTemplate*>& all_templates() {
  static const std::vector<const AnyTemplate*> templates = [] {
    handed_out = true;
    std::vector<const AnyTemplate*> all = built_in_templates();
    for (const AnyTemplate* added : registered()) {
      CHECK(std::ranges::none_of(all, [&](const AnyTemplate* t) { return t->name() == added->name(); }))
          << "two templates are called " << added->name() << ": rename the one that is registered";
      all.push_back(added);
    }
    return all;
  }();
  return templates;
}

std::vector<std::string> templates_of(std::string_view algorithms) {
  std::vector<std::string> names;
  const std::vector<std::string> allowed = split_names(algorithms);
  for (const AnyTemplate* t : all_templates())
    if (has(allowed, t->algorithm())) names.emplace_back(t->name());
  return names;
}

std::vector<std::string_view> algorithm_names() {
  std::vector<std::string_view> names;
  for (const AnyTemplate* t : all_templates())
    if (!has(names, t->algorithm())) names.push_back(t->algorithm());
  return names;
}

Result<std::string> canonical_algorithms(const std::vector<std::string>& names) {
  const std::vector<std::string_view> known = algorithm_names();
  std::string all, chosen;
  for (const std::string_view name : known) {
    all += str(all.empty() ? "" : ",", name);
    if (has(names, name)) chosen += str(chosen.empty() ? "" : ",", name);
  }
  for (const std::string& name : names)
    if (!has(known, name)) return invalid_argument("no algorithm is called \"", name, "\"; there are ", all);
  if (names.empty()) return invalid_argument("expected at least one of ", all);
  return chosen == all ? std::string() : chosen;
}

Result<std::vector<const AnyTemplate*>> templates_in_order(const Workload& workload, const Target& target,
                                                           std::string_view algorithms) {
  const std::vector<std::string> allowed = split_names(algorithms);
  std::vector<const AnyTemplate*> serving, second;
  Reasons reasons, of_other_targets;
  for (const AnyTemplate* t : all_templates()) {
    Support support = t->supports(workload, target);
    if (support.yes && !allowed.empty() && !has(allowed, t->algorithm()))
      support = declined("its algorithm is ", t->algorithm(), ", allowed is ", algorithms);
    if (support.yes)
      (support.as_second ? second : serving).push_back(t);
    else if (!support.other_operator)
      (support.other_target ? of_other_targets : reasons).add(t->name(), support.reason);
  }
  serving.insert(serving.end(), second.begin(), second.end());
  if (reasons.empty()) reasons = of_other_targets;
  if (serving.empty())
    return not_found("no template serves ", workload.key(), " on \"", target.name(),
                     "\":", reasons.empty() ? str(" there is none of ", workload.op_name()) : reasons.text());
  return serving;
}

Result<std::vector<const AnyTemplate*>> templates_for(const Workload& workload, const Target& target,
                                                      std::string_view algorithms) {
  ASSIGN_OR_RETURN(std::vector<const AnyTemplate*> serving, templates_in_order(workload, target, algorithms));
  if (serving.size() > 1) put_fitted_first(workload, target, serving);
  return serving;
}

const AnyTemplate* find_template(std::string_view name) {
  for (const AnyTemplate* t : all_templates())
    if (t->name() == name) return t;
  return nullptr;
}

}  // namespace tuner
