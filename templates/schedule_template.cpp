#include "templates/schedule_template.h"

#include "templates/registry.h"

namespace tuner {

Result<std::vector<const AnyTemplate*>> templates_for(const Workload& workload, const Target& target) {
  std::vector<const AnyTemplate*> serving;
  std::string reasons;
  for (const AnyTemplate* t : all_templates()) {
    const Support support = t->supports(workload, target);
    if (support.yes)
      serving.push_back(t);
    else if (!support.other_operator)
      reasons += str("\n  ", t->name(), "  ", support.reason);
  }
  if (serving.empty())
    return not_found("no template serves ", workload.key(), " on \"", target.name(), "\":",
                     reasons.empty() ? str("\n  there is no template of ", workload.op_name()) : reasons);
  return serving;
}

const AnyTemplate* find_template(std::string_view name) {
  for (const AnyTemplate* t : all_templates())
    if (t->name() == name) return t;
  return nullptr;
}

}  // namespace tuner
