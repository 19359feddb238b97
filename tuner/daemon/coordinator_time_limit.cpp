// Jobs with a time limit: it is the time of the whole job, from its first proposal to its last race.
//
//   0 s                                                                    time limit
//   |  every task's default  |  trials where they gain the most  |  races  |
//
// The search ends early enough for the races of the tasks that have something to race, but it gives them no
// more than a third of the time, and none while a task is without any trial. Then queued trials are withdrawn
// and those with a worker are finished. Races begin one a worker, the task with the most time to save first;
// each gets an equal share of the time that is left, and where that is not enough for one heat, none.
#include <algorithm>
#include <tuple>

#include "tuner/daemon/coordinator.h"

namespace tuner {
namespace {

constexpr int64_t kMostForRaces = 3;  // one part in so many of the time limit, while there are trials to make
constexpr double kShortestRaceS = 0.001;  // one heat; 0 would mean the default

}  // namespace

// Tasks whose race is worth time to wait for: they have more than their default to race.
int64_t Coordinator::races_to_come(const Job& job) {
  const std::lock_guard lock(mutex_);
  int64_t races = 0;
  for (size_t i = 0; i < job.row.tasks.size(); ++i) {
    const int index = static_cast<int>(i);
    if (job.runner->trials_done(index) < 2 || job.done_racing.contains(index)) continue;
    const Result<Target> target = parse_target(job.row.tasks[i].target);
    races += target && target->family->races() && race_served_locked(job.row.tasks[i].target) ? 1 : 0;
  }
  return races;
}

// The part of the time limit that the search leaves to races.
int64_t Coordinator::race_reserve_ms(const Job& job) {
  const double wanted =
      static_cast<double>(races_to_come(job)) * job.race_times.sum_ms / job.race_times.races;
  return static_cast<int64_t>(std::min(wanted, 1000 * job.row.stop.time_limit_s / kMostForRaces));
}

// RaceOptions::limit_s of the next race, one of so many; 0: no time is left for it.
double Coordinator::race_limit_s(const Job& job, int64_t races, int racers) {
  auto left_ms = static_cast<double>(job.deadline_ms - clock_.now_ms());
  // Races that begin while others are still searched for leave them their time.
  if (!job.runner->finished()) left_ms = std::min(left_ms, 1000 * job.row.stop.time_limit_s / kMostForRaces);
  const double heat_ms = job.race_times.late_ms / job.race_times.late_races;
  if (left_ms < heat_ms) return 0;
  const double share_ms = left_ms * racers / static_cast<double>(std::max<int64_t>(races, 1));
  return std::clamp((share_ms - heat_ms) / 1000, kShortestRaceS,
                    std::max(options_.race.limit_s, kShortestRaceS));
}

void Coordinator::watch_time_limit(Job& job) {
  if (job.deadline_ms == 0 || job.runner->finished()) return;
  if (!job.out_of_time) {
    const int64_t races_ms = job.runner->some_task_is_untried() ? 0 : race_reserve_ms(job);
    if (clock_.now_ms() < job.deadline_ms - races_ms) return;
    job.out_of_time = true;
    job.runner->end_proposals();
    add_event(job.row.id, JobState::kRunning,
              str("the search ends for the time limit of ", job.row.stop.time_limit_s,
                  " s: trials that have begun are finished, then the best race"),
              nullptr);
  }
  withdraw_queued(job);
}

// Also those that a worker lost and that are queued again. They stay open in the store until the job ends.
void Coordinator::withdraw_queued(Job& job) {
  std::vector<std::string> withdrawn;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = task_of_trial_.begin(); it != task_of_trial_.end();) {
      if (leases_.job_of(it->first) != job.row.id || !leases_.withdraw(it->first)) {
        ++it;
        continue;
      }
      withdrawn.push_back(it->first);
      specs_.erase(it->first);
      it = task_of_trial_.erase(it);
    }
  }
  job.runner->withdraw(withdrawn);
}

// Whether races of the job are under way.
bool Coordinator::begin_races(Job& job) {
  const auto under_way_locked = [&] {
    return std::count_if(races_.begin(), races_.end(),
                         [&](const auto& race) { return race.second.job_id == job.row.id; });
  };
  while (!job.to_race.empty()) {
    // What a race of this task may save; one that has only its default has nothing to choose from.
    const auto rank = [&](int index) {
      return std::tuple(
          job.runner->trials_done(index) > 1,
          static_cast<double>(job.row.tasks[static_cast<size_t>(index)].uses) * job.runner->best_ns(index),
          -index);
    };
    const auto next = std::max_element(job.to_race.begin(), job.to_race.end(),
                                       [&](int a, int b) { return rank(a) < rank(b); });
    const int index = *next;
    const bool worth = job.runner->trials_done(index) > 1;
    // When the search has ended no race is to wait for a worker's last trials.
    if (!job.runner->finished() && (!worth || job.out_of_time)) break;
    int racers = 0;
    {
      const std::lock_guard lock(mutex_);
      racers = std::max(racers_locked(job.row.tasks[static_cast<size_t>(index)].target), 1);
      if (under_way_locked() >= racers) break;
    }
    job.race.limit_s = race_limit_s(job, worth ? races_to_come(job) : std::ssize(job.to_race), racers);
    job.to_race.erase(next);
    job.done_racing.insert(index);
    end_task(job, index);
  }
  const std::lock_guard lock(mutex_);
  return under_way_locked() > 0;
}

void Coordinator::count_race(Job& job, const Race& race) const {
  if (race.begun_ms == 0 || !race.error.empty()) return;
  const auto took_ms = static_cast<double>(clock_.now_ms() - race.begun_ms);
  ++job.race_times.races;
  job.race_times.sum_ms += took_ms;
  if (took_ms < 1000 * race.limit_s) return;
  ++job.race_times.late_races;
  job.race_times.late_ms += took_ms - 1000 * race.limit_s;
}

}  // namespace tuner
