#include "tuner/daemon/job_runner.h"

#include <algorithm>

#include "tuner/daemon/phase_times.h"

namespace tuner {

JobRunner::JobRunner(Store& store, JobRow job, int trials, TaskSpaceFactory make_space,
                     StrategyFactory make_search)
    : store_(store),
      job_(std::move(job)),
      trials_(trials),
      make_space_(std::move(make_space)),
      make_search_(std::move(make_search)),
      tasks_(job_.tasks.size()) {}

Status JobRunner::start() {
  ASSIGN_OR_RETURN(std::vector<TrialWithRecord> stored, store_.trials(job_.id));
  for (TrialWithRecord& t : stored) {
    const int index = t.trial.task_index;
    if (index < 0 || index >= static_cast<int>(tasks_.size()))
      return failed("trial ", t.trial.id, " is of task ", index, ", but job ", job_.id, " has ",
                    tasks_.size(), " tasks");
    Task& task = tasks_[index];
    if (t.record) {
      count(task, index, t.trial, *t.record);
      task.stored.emplace_back(std::move(t.trial), *std::move(t.record));
    } else if (t.trial.state == TrialState::kQueued || t.trial.state == TrialState::kLeased) {
      ++task.open;
      open_.emplace(t.trial.id, Open{t.trial, std::nullopt});
      task.stored_open.push_back(std::move(t.trial));
    }  // A cancelled trial was never measured: the search may propose its config again.
  }
  return Status::ok();
}

std::vector<TrialRow> JobRunner::open_trials() const {
  std::vector<TrialRow> rows;
  for (const auto& [id, open] : open_) rows.push_back(open.row);
  std::sort(rows.begin(), rows.end(), [](const TrialRow& a, const TrialRow& b) { return a.seq < b.seq; });
  return rows;
}

// Builds the task's space and search, and shows the search what the store knows.
Status JobRunner::begin(Task& task, size_t index) {
  if (task.search != nullptr) return Status::ok();
  ASSIGN_OR_RETURN(TaskSpace space, make_space_(job_.tasks[index]));
  task.space = std::move(space);
  ASSIGN_OR_RETURN(task.search, make_search_(job_.search, task.space->search, job_.seed));
  std::vector<Observation> observations;
  for (const auto& [row, record] : task.stored) {
    const std::optional<Candidate> candidate = candidate_of(task, row);
    if (!candidate) continue;
    task.known.insert(*candidate);
    observations.push_back({*candidate, record.outcome == Outcome::kOk, record_time_ns(record), record.cut});
  }
  task.stored = {};
  for (const TrialRow& row : task.stored_open) {
    const std::optional<Candidate> candidate = candidate_of(task, row);
    if (!candidate) continue;
    task.known.insert(*candidate);
    if (const auto open = open_.find(row.id); open != open_.end()) open->second.candidate = candidate;
  }
  task.stored_open = {};
  if (!observations.empty()) task.search->observe(observations);
  return Status::ok();
}

std::optional<Candidate> JobRunner::candidate_of(const Task& task, const TrialRow& row) const {
  const std::vector<SearchSpace::Part>& parts = task.space->search.parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].template_name != row.template_name ||
        task.space->template_versions[i] != row.template_version)
      continue;
    const Result<Config> config = config_from_text(row.config);
    if (!config) return std::nullopt;
    const Result<ConfigIndex> index = parts[i].space->index_of(*config);
    if (!index) return std::nullopt;
    return Candidate{static_cast<int>(i), *index};
  }
  return std::nullopt;
}

// A resumed search proposes again what it proposed before the crash; those are known and dropped, and it is
// asked for more. Ends because a strategy never proposes anything twice.
std::vector<Candidate> JobRunner::new_candidates(Task& task, size_t n) {
  std::vector<Candidate> fresh;
  while (fresh.size() < n) {
    const std::vector<Candidate> proposed = task.search->propose(n - fresh.size());
    if (proposed.empty()) break;
    for (const Candidate& c : proposed)
      if (task.known.insert(c).second) fresh.push_back(c);
  }
  return fresh;
}

Result<std::vector<TrialRow>> JobRunner::propose(size_t low_water) {
  std::vector<TrialRow> all;
  for (size_t i = 0; i < tasks_.size() && open_.size() <= low_water; ++i) {
    Task& task = tasks_[i];
    while (!task.exhausted && task.done + task.open < trials_ && open_.size() <= low_water) {
      RETURN_IF_ERROR(begin(task, i));
      const int64_t wanted = std::min<int64_t>(kProposalBatch, trials_ - task.done - task.open);
      const Stopwatch thinking;
      const std::vector<Candidate> candidates = new_candidates(task, wanted);
      spent_.search_ms += thinking.elapsed_ms();
      if (candidates.size() < static_cast<size_t>(wanted)) task.exhausted = true;
      if (candidates.empty()) break;
      std::vector<TrialRow> rows;
      for (const Candidate& c : candidates) {
        const SearchSpace::Part& part = task.space->search.parts[c.template_index];
        TrialRow row;
        row.job_id = job_.id;
        row.task_index = static_cast<int>(i);
        row.template_name = part.template_name;
        row.template_version = task.space->template_versions[c.template_index];
        row.config = part.space->at(c.config).to_text();
        row.rng_counter = task.search->rng_counter();
        row.model_digest = task.search->model_digest();
        rows.push_back(std::move(row));
      }
      const Stopwatch storing;
      RETURN_IF_ERROR(store_.add_trials(rows));
      spent_.store_ms += storing.elapsed_ms();
      spent_.trials += static_cast<int64_t>(rows.size());
      for (size_t r = 0; r < rows.size(); ++r) {
        open_.emplace(rows[r].id, Open{rows[r], candidates[r]});
        ++task.open;
        all.push_back(rows[r]);
      }
    }
  }
  return all;
}

void JobRunner::count(Task& task, int index, const TrialRow& row, const MeasureRecord& record) {
  ++task.done;
  ++outcomes_[record.outcome];
  latest_task_ = index;
  if (record.peak_gflops > 0) task.peak_gflops = record.peak_gflops;
  if (record.outcome != Outcome::kOk || record.cut) return;
  const double time_ns = record_time_ns(record);
  if (task.best_ns > 0 && time_ns >= task.best_ns) return;
  task.best_ns = time_ns;
  task.best_config = row.config;
  task.best_template = row.template_name;
}

void JobRunner::observe(const std::vector<MeasureRecord>& records) {
  std::map<int, std::vector<Observation>> by_task;
  for (const MeasureRecord& record : records) {
    const auto found = open_.find(record.trial_id);
    if (found == open_.end()) continue;
    const Open open = std::move(found->second);
    open_.erase(found);
    Task& task = tasks_[open.row.task_index];
    --task.open;
    count(task, open.row.task_index, open.row, record);
    if (task.search == nullptr) {
      std::erase_if(task.stored_open, [&](const TrialRow& row) { return row.id == open.row.id; });
      task.stored.emplace_back(open.row, record);
    } else if (open.candidate) {
      by_task[open.row.task_index].push_back(
          {*open.candidate, record.outcome == Outcome::kOk, record_time_ns(record), record.cut});
    }
  }
  const Stopwatch learning;
  for (const auto& [index, observations] : by_task) tasks_[index].search->observe(observations);
  spent_.search_ms += learning.elapsed_ms();
}

bool JobRunner::finished() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [&](const Task& t) { return ended(t); });
}

std::vector<int> JobRunner::take_finished_tasks() {
  std::vector<int> finished;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].announced || !ended(tasks_[i])) continue;
    tasks_[i].announced = true;
    // The space and the model of a finished task are not needed any more.
    tasks_[i].search.reset();
    tasks_[i].space.reset();
    tasks_[i].known.clear();
    finished.push_back(static_cast<int>(i));
  }
  return finished;
}

JobProgress JobRunner::progress() const {
  JobProgress p;
  p.task_index = latest_task_;
  for (const Task& task : tasks_) {
    p.trials_done += task.done;
    // An exhausted space has no more to give than it gave.
    p.trials_total += std::max(task.done + task.open, task.exhausted ? int64_t{0} : trials_);
  }
  p.outcomes = outcomes_;
  if (tasks_.empty()) return p;
  const Task& task = tasks_[p.task_index];
  p.best_ns = task.best_ns;
  p.peak_gflops = task.peak_gflops;
  p.best_config = task.best_config;
  p.best_template = task.best_template;
  if (task.search != nullptr) p.search_status = task.search->status_line();
  return p;
}

}  // namespace tuner
