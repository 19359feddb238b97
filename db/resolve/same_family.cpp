#include "db/resolve/same_family.h"

#include <algorithm>
#include <map>
#include <optional>

#include "db/learning/task_shape.h"

namespace tuner {

namespace {

constexpr Prediction kOtherEpilogue{.fraction = 0.98, .low = 0.93, .high = 1, .score = 0.98};
constexpr Prediction kOtherThreads{.fraction = 0.93, .low = 0.78, .high = 1, .score = 0.93};
constexpr Prediction kOtherProcessor{.fraction = 0.88, .low = 0.6, .high = 1, .score = 0.88};

std::string difference_of(const Target& asked, const Target& there, bool same_key) {
  std::string text = asked.family->difference(asked, there);
  if (!same_key) text += text.empty() ? "another epilogue" : ", another epilogue";
  return text;
}

}  // namespace

bool near_targets(const Target& a, const Target& b) { return a.family == b.family && a.family->near(a, b); }

std::vector<std::string> names_of_same_vectors(std::string_view workload_key, const Target& target,
                                               const std::vector<JobRow::Task>& tasks) {
  std::vector<std::string> names;
  for (const JobRow::Task& task : tasks) {
    if (task.workload_key != workload_key || task.target == target.name()) continue;
    const Result<Target> named = parse_target(task.target);
    if (named && near_targets(*named, target) && named->threads == target.threads)
      names.push_back(task.target);
  }
  return names;
}

std::vector<Relative> relatives_of(const Workload& workload, const Target& target,
                                   const std::vector<JobRow::Task>& tasks) {
  const std::string key = workload.key(), name = target.name(), plain = key_without_epilogue(workload);
  const std::string any = target.family->any_device(target);
  const std::string prefix = str("v1 ", workload.op_name(), " ");
  std::map<std::string, std::optional<Target>, std::less<>> targets;  // near ones, each parsed once
  std::vector<Relative> found;
  for (const JobRow::Task& task : tasks) {
    if (!task.workload_key.starts_with(prefix) || (task.workload_key == key && task.target == name)) continue;
    auto [at, fresh] = targets.try_emplace(task.target);
    if (fresh)
      if (Result<Target> parsed = parse_target(task.target); parsed && near_targets(*parsed, target))
        at->second = *std::move(parsed);
    if (!at->second) continue;
    const bool same_key = task.workload_key == key;
    if (!same_key) {
      const Result<Workload> there = workload_from_key(task.workload_key);
      if (!there || key_without_epilogue(*there) != plain) continue;
    }
    const Prediction& prediction = task.target == name                                  ? kOtherEpilogue
                                   : target.family->same_processor(*at->second, target) ? kOtherThreads
                                                                                        : kOtherProcessor;
    // Among records of any device are some of the device asked for. Those of this workload answered before.
    if (task.target == any && !same_key)
      found.push_back({task.workload_key, name, difference_of(target, target, same_key), kOtherEpilogue});
    found.push_back(
        {task.workload_key, task.target, difference_of(target, *at->second, same_key), prediction});
  }
  // Without a change of the epilogue first, where the rest is alike.
  std::stable_sort(found.begin(), found.end(), [&](const Relative& a, const Relative& b) {
    if (a.prediction.score != b.prediction.score) return a.prediction.score > b.prediction.score;
    return (a.workload_key == key) > (b.workload_key == key);
  });
  return found;
}

}  // namespace tuner
