#include "tuner/daemon/tables/jobs.h"

#include <algorithm>
#include <utility>

#include "compiler_core/base/status.h"
#include "templates/workload/workload.h"

namespace tuner {
namespace {

constexpr int64_t kRateWindowMs = 20'000;

}  // namespace

bool has_ended(JobState state) {
  return state == JobState::kFinished || state == JobState::kCancelled || state == JobState::kFailed;
}

Job::Job(JobRow row, int trials, int64_t now_ms)
    : row_(std::move(row)), trials_(trials), idle_since_ms_(now_ms) {
  for (const JobRow::Task& task : row_.tasks) {
    const Result<Workload> workload = workload_from_key(task.workload_key);
    flops_.push_back(workload ? workload->flops() : 0);
  }
}

int64_t Job::flops(int task_index) const { return flops_.at(static_cast<size_t>(task_index)); }

void Job::set_state(JobState state) {
  state_ = state;
  if (!ended()) return;
  best_ns_.clear();
  results_came_ = false;
}

void Job::count_costs(const MeasureRecord& record, double check_ms, double store_ms) {
  times_.add(TrialPhase::kBuild, record.build_ms);
  times_.add(TrialPhase::kStore, store_ms + lease_store_ms_ + proposal_store_ms_);
  if (record.run_ms <= 0) return;  // it was not built
  times_.add(TrialPhase::kRun, record.run_ms);
  times_.add(TrialPhase::kCheck, check_ms);
}

bool Job::take_progress(const JobProgress& progress, const SearchCost& cost,
                        const std::vector<double>& best_ns, size_t new_results, int64_t now_ms) {
  unproposed_ms_ += cost.search_ms;
  if (cost.trials > 0) {
    times_.add(TrialPhase::kPropose, std::exchange(unproposed_ms_, 0), cost.trials);
    proposal_store_ms_ = cost.store_ms / static_cast<double>(cost.trials);
  }
  result_times_ms_.insert(result_times_ms_.end(), new_results, now_ms);
  while (!result_times_ms_.empty() && now_ms - result_times_ms_.front() > kRateWindowMs)
    result_times_ms_.pop_front();
  if (new_results > 0) idle_since_ms_ = now_ms;
  for (size_t i = 0; i < best_ns.size(); ++i)
    if (best_ns[i] > 0) best_ns_[static_cast<int>(i)] = best_ns[i];
  if (new_results == 0 && reported_) return false;
  make_report(progress, now_ms);
  return true;
}

void Job::make_report(const JobProgress& progress, int64_t now_ms) {
  reported_ = true;
  ++progress_version_;
  report_ = {.search = progress};
  if (progress.best_ns > 0)
    report_.best_gflops = static_cast<double>(flops(progress.task_index)) / progress.best_ns;
  for (int i = 0; i < kTrialPhases; ++i) {
    const auto phase = static_cast<TrialPhase>(i);
    report_.phases.at(static_cast<size_t>(i)) = {times_.median_ms(phase), times_.total_ms(phase)};
  }
  if (result_times_ms_.size() < 2 || now_ms <= result_times_ms_.front()) return;
  report_.trials_per_second = static_cast<double>(result_times_ms_.size() - 1) * 1000 /
                              static_cast<double>(now_ms - result_times_ms_.front());
  report_.eta_s =
      static_cast<double>(progress.trials_total - progress.trials_done) / report_.trials_per_second;
}

bool Job::may_wait_in_vain(size_t open, int64_t limit_ms, int64_t now_ms) const {
  return !told_idle_ && open > 0 && now_ms - idle_since_ms_ > limit_ms;
}

void Jobs::add(JobRow row, int trials, int64_t now_ms) {
  auto job = std::make_shared<Job>(std::move(row), trials, now_ms);
  const std::shared_ptr<Job> earlier = find(job->id());
  CHECK(earlier == nullptr || earlier->ended()) << "job " << job->id() << " runs already";
  added_.push_back(job);
  jobs_[job->id()] = std::move(job);
  constexpr size_t kMostEnded = 256;
  size_t ended = 0;
  for (const std::shared_ptr<Job>& added : added_) ended += added->ended() ? 1 : 0;
  for (auto it = added_.begin(); it != added_.end() && ended > kMostEnded;) {
    if (!(*it)->ended()) {
      ++it;
      continue;
    }
    // A later run of the same job stays.
    if (const auto known = jobs_.find((*it)->id()); known != jobs_.end() && known->second == *it)
      jobs_.erase(known);
    it = added_.erase(it);
    --ended;
  }
}

std::shared_ptr<Job> Jobs::find(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Job>> Jobs::running() const {
  std::vector<std::shared_ptr<Job>> running;
  for (const auto& [id, job] : jobs_)
    if (!job->ended()) running.push_back(job);
  return running;
}

}  // namespace tuner
