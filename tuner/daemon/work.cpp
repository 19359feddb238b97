#include "tuner/daemon/work.h"

#include <algorithm>

namespace tuner {

Needs needs_of(const Work& work) {
  Needs needs{.target = work.task.target};
  if (work.kind != WorkKind::kRace) {
    needs.templates.push_back({work.template_name, work.template_version});
    return needs;
  }
  needs.kind = WorkKind::kRace;
  for (const TrialRow& finalist : work.finalists)
    needs.templates.push_back({finalist.template_name, finalist.template_version});
  std::ranges::sort(needs.templates);
  needs.templates.erase(std::unique(needs.templates.begin(), needs.templates.end()), needs.templates.end());
  return needs;
}

}  // namespace tuner
