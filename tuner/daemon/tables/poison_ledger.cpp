#include "tuner/daemon/tables/poison_ledger.h"

#include <algorithm>
#include <cmath>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

constexpr double kChanceOfInnocence = 1e-6;
constexpr double kResultsAtFirst = 25, kLossesAtFirst = 1;
constexpr int kWorkers = 2, kTimesAtOne = 3;
constexpr int64_t kHourUs = 3'600'000'000;
constexpr size_t kMostLost = 4096;

std::string key_of(const std::string& workload_key, const std::string& target,
                   const std::string& template_name, int template_version, const std::string& config) {
  return str(workload_key, "\n", target, "\n", template_name, "\n", template_version, "\n", config);
}
std::string key_of(const DeathRow& d) {
  return key_of(d.workload_key, d.target, d.template_name, d.template_version, d.config);
}
std::string key_of(const Work& w) {
  return key_of(w.task.workload_key, w.task.target, w.template_name, w.template_version, w.config);
}

std::set<std::string> workers_of(const std::set<WorkerLife>& lives) {
  std::set<std::string> workers;
  for (const WorkerLife& life : lives) workers.insert(life.worker_id);
  return workers;
}

}  // namespace

DeathRow PoisonLedger::line(const Work& work, const WorkerLife& life, DeathPhase phase, bool alone,
                            int64_t now_us) {
  return {.workload_key = work.task.workload_key,
          .target = work.task.target,
          .template_name = work.template_name,
          .config = work.config,
          .template_version = work.template_version,
          .phase = phase,
          .worker_id = life.worker_id,
          .worker_incarnation = life.incarnation,
          .alone = alone,
          .happened_at_us = now_us};
}

bool PoisonLedger::take(const DeathRow& d) {
  const std::string key = key_of(d);
  if (d.phase == DeathPhase::kSurvived) {
    configs_.erase(key);
    return false;
  }
  Config& config = configs_[key];
  if (d.phase == DeathPhase::kPoison) {
    config.poison = true;
    return false;
  }
  const WorkerLife life{d.worker_id, d.worker_incarnation};
  const bool counts = config.evidence == 0 || d.alone;
  if (!config.lives.insert(life).second) return false;  // one death, told twice
  config.evidence += counts ? 1 : 0;
  config.phase = d.phase;
  lost_.push_back({d.happened_at_us, life});
  if (lost_.size() > kMostLost) lost_.pop_front();
  if (config.poison || !is_poison(config, d.happened_at_us)) return false;
  config.poison = true;
  return true;
}

void PoisonLedger::count_result(int64_t now_us) {
  // The count of before fades, so that it is about that of an hour.
  if (now_us > counted_us_) {
    results_ *= std::exp(-static_cast<double>(now_us - counted_us_) / kHourUs);
    counted_us_ = now_us;
  }
  results_ += 1;
}

double PoisonLedger::chance_of_losing_a_worker(const Config& config, int64_t now_us) const {
  std::set<WorkerLife> elsewhere;  // a life that ended at several configs is one
  for (const Lost& lost : lost_)
    if (now_us - lost.at_us < kHourUs && !config.lives.contains(lost.life)) elsewhere.insert(lost.life);
  const double faded = std::exp(-static_cast<double>(std::max<int64_t>(now_us - counted_us_, 0)) / kHourUs);
  return std::min(
      1.0, (static_cast<double>(elsewhere.size()) + kLossesAtFirst) / (results_ * faded + kResultsAtFirst));
}

bool PoisonLedger::is_poison(const Config& config, int64_t now_us) const {
  const bool enough = std::ssize(workers_of(config.lives)) >= kWorkers || config.evidence >= kTimesAtOne;
  return enough && std::pow(chance_of_losing_a_worker(config, now_us), config.evidence) <= kChanceOfInnocence;
}

bool PoisonLedger::suspects(const Work& work) const {
  return !configs_.empty() && configs_.contains(key_of(work));
}

std::optional<std::string> PoisonLedger::verdict(const Work& work) const {
  if (configs_.empty()) return std::nullopt;
  const auto found = configs_.find(key_of(work));
  if (found == configs_.end() || !found->second.poison) return std::nullopt;
  const Config& config = found->second;
  std::string workers;
  for (const std::string& id : workers_of(config.lives)) workers += (workers.empty() ? "" : ", ") + id;
  return str("poison, by the ledger of this database: ", config.lives.size(),
             " workers were lost while they were ", death_phase_name(config.phase), " this config (", workers,
             ")");
}

}  // namespace tuner
