#include "tuner/daemon/tables/work.h"

#include <algorithm>

#include "compiler_core/base/measure_limits.h"

namespace tuner {

Needs needs_of(const Work& work) {
  Needs needs{.target = work.task.target, .compiler = work.compiler};
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

double longest_s(const Work& work) {
  // Of a candidate: its run is repeated where it was disturbed or its times do not add up. Of a race: one
  // heat that begins at the end of its time, and the one before.
  constexpr double kRuns = 4, kHeats = 2;
  const double run_s = work.options.run_timeout_s, build_s = work.options.build_timeout_s;
  const auto finalists = static_cast<double>(work.finalists.size());
  return kLeaseSlackS + (work.kind == WorkKind::kRace
                             ? finalists * (build_s + kHeats * run_s) + work.race.limit_s
                             : build_s + kRuns * run_s);
}

}  // namespace tuner
