#include "tests/bench/cpu/known_configs.h"

#include <algorithm>

#include "templates/schedule_template.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

Result<KnownConfigs> KnownConfigs::load(const std::string& db) {
  KnownConfigs known;
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, open_if_there(db));
  if (store == nullptr) return known;
  // The same config may have been measured in several trials: its best counts.
  std::map<Task, std::map<std::tuple<std::string, int, std::string>, double>> best;
  RETURN_IF_ERROR(store->for_each_record("", [&](const TrialWithRecord& t) {
    if (t.record->outcome != Outcome::kOk || t.record->cut) return true;
    auto& of_task = best[{t.task.workload_key, t.task.target}];
    const double ns = record_time_ns(*t.record);
    const auto [at, fresh] =
        of_task.try_emplace({t.trial.template_name, t.trial.template_version, t.trial.config}, ns);
    if (!fresh) at->second = std::min(at->second, ns);
    return true;
  }));
  for (const auto& [task, configs] : best) {
    std::vector<TimedConfig>& sorted = known.tasks_[task];
    for (const auto& [key, ns] : configs)
      sorted.push_back({std::get<0>(key), std::get<2>(key), std::get<1>(key), ns});
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const TimedConfig& a, const TimedConfig& b) { return a.time_ns < b.time_ns; });
  }
  return known;
}

std::vector<TimedConfig> KnownConfigs::fastest(const std::string& workload_key, const std::string& target,
                                               Algorithms algorithms, int count) const {
  std::vector<TimedConfig> found;
  const auto at = tasks_.find({workload_key, target});
  if (at == tasks_.end()) return found;
  for (const TimedConfig& c : at->second) {
    const AnyTemplate* t = find_template(c.template_name);
    // What this program cannot build any more is not known to it.
    if (t == nullptr || t->version() != c.template_version) continue;
    if (algorithms == Algorithms::kDirect && t->algorithm() != "direct") continue;
    if (static_cast<int>(found.size()) == count) break;
    found.push_back(c);
  }
  return found;
}

}  // namespace tuner
