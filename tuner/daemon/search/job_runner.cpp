#include "tuner/daemon/search/job_runner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tuner/daemon/search/search_history.h"
#include "tuner/daemon/search/stopwatch.h"
#include "tuner/daemon/search/warm_start.h"
#include "tuner/daemon/tables/phase_times.h"
#include "tuner/search/known_best.h"

namespace tuner {

JobRunner::JobRunner(Store& store, JobRow job, int trials, TaskSpaceFactory make_space,
                     StrategyFactory make_search, KnownAnswer known_answer)
    : store_(store),
      job_(std::move(job)),
      trials_(trials),
      make_space_(std::move(make_space)),
      make_search_(std::move(make_search)),
      known_answer_(std::move(known_answer)),
      tasks_(job_.tasks.size()) {}

Result<JobRunner::Task*> JobRunner::task_of(std::string_view what, int index) {
  if (index >= 0 && index < static_cast<int>(tasks_.size())) return &tasks_[index];
  return failed(what, " is of task ", index, ", but job ", job_.id, " has ", tasks_.size(), " tasks");
}

// Page by page, and of each trial only what a search looks back on.
Status JobRunner::start() {
  constexpr int64_t kPage = 1024;
  TrialQuery query{.job = job_.id, .limit = kPage};
  while (true) {
    ASSIGN_OR_RETURN(std::vector<TrialWithRecord> page, store_.trials(query));
    const bool last = std::ssize(page) < kPage;
    if (!page.empty()) query.after = page.back().trial.seq;
    for (const TrialWithRecord& trial : page) RETURN_IF_ERROR(take_stored(trial));
    if (last) break;
  }
  ASSIGN_OR_RETURN(std::vector<ProposalRow> proposals, store_.proposals(job_.id));
  for (ProposalRow& p : proposals) {
    ASSIGN_OR_RETURN(Task* const task, task_of(str("proposal ", p.seq), p.task_index));
    task->proposals.push_back(std::move(p));
    ++turns_;
  }
  return Status::ok();
}

Status JobRunner::take_stored(const TrialWithRecord& trial) {
  const TrialRow& row = trial.trial;
  ASSIGN_OR_RETURN(Task* const task, task_of(str("trial ", row.id), row.task_index));
  note_first(*task, row.id);
  if (trial.record) {
    count(*task, row.task_index, row, *trial.record);
    observed_record_id_ = std::max(observed_record_id_, trial.record_id);
  } else if (row.state == TrialState::kQueued || row.state == TrialState::kLeased) {
    ++task->open;
    note_template(row.task_index, row.template_name, row.template_version);
    open_.emplace(row.id, Open{row, std::nullopt});
  } else if (row.state == TrialState::kDone) {
    ++task->done;  // its record was pruned: measured, and part of the job's budget
  }
  StoredTrial stored{.seq = row.seq,
                     .template_name = row.template_name,
                     .config = row.config,
                     .template_version = row.template_version,
                     .cancelled = row.state == TrialState::kCancelled && !trial.record};
  if (trial.record) stored.result = past_result(trial.record_id, *trial.record);
  task->stored.push_back(std::move(stored));
  return Status::ok();
}

// Searches propose the default config first, apart from the one that measures what is known again.
void JobRunner::note_first(Task& task, const std::string& trial_id) const {
  if (task.first_trial_id.empty() && job_.search != kKnownBestStrategy) task.first_trial_id = trial_id;
}

void JobRunner::note_template(int task_index, const std::string& name, int version) {
  needs_.insert(
      {.target = job_.tasks[static_cast<size_t>(task_index)].target, .templates = {{name, version}}});
}

std::vector<TrialRow> JobRunner::open_trials() const {
  std::vector<TrialRow> rows;
  for (const auto& [id, open] : open_) rows.push_back(open.row);
  std::sort(rows.begin(), rows.end(), [](const TrialRow& a, const TrialRow& b) { return a.seq < b.seq; });
  return rows;
}

// Builds the task's space and search, and brings the search to where it stood.
Status JobRunner::begin(Task& task, size_t index) {
  if (task.search != nullptr) return Status::ok();
  ASSIGN_OR_RETURN(TaskSpace space, make_space_(job_.tasks[index]));
  task.space = std::move(space);
  for (size_t i = 0; i < task.space->search.parts.size(); ++i)
    note_template(static_cast<int>(index), task.space->search.parts[i].template_name,
                  task.space->template_versions[i]);
  if (uses_priors(job_.search)) {
    // As it was when the search began: what it saw first decides all it proposed.
    if (!task.proposals.empty()) {
      task.donor_record_id = task.proposals.front().donor_record_id;
    } else if (task.stored.empty()) {
      ASSIGN_OR_RETURN(task.donor_record_id, last_donor_id(store_));
    }
    ASSIGN_OR_RETURN(task.space->search.priors,
                     warm_start(store_, job_.tasks[index], task.space->search, task.donor_record_id));
  }
  ASSIGN_OR_RETURN(task.search, make_search_(job_.search, task.space->search, job_.seed));
  if (task.stored.size() <= 1) look_up_answer(task, index);  // at most its default was tried
  std::vector<Candidate> cancelled;
  const std::vector<PastTrial> past = take_past(task, cancelled);
  if (!play_again(task, past)) {
    notes_.push_back(str("task ", index + 1,
                         ": its search does not propose again what it did before the interruption, ",
                         "so it starts anew from the results it has"));
    task.proposals.clear();
    ASSIGN_OR_RETURN(task.search, make_search_(job_.search, task.space->search, job_.seed));
    CHECK(play_again(task, past)) << "without proposals there is nothing to differ from";
  }
  for (auto& [id, open] : open_)
    if (open.row.task_index == static_cast<int>(index))
      open.candidate = candidate_of(task, open.row.template_name, open.row.template_version, open.row.config);
  // Never measured, so it may be proposed again; a search proposes nothing twice.
  std::set<Candidate> again;
  for (const Candidate& c : cancelled)
    if (!task.known.contains(c) && again.insert(c).second) task.reopen.push_back(c);
  std::reverse(task.reopen.begin(), task.reopen.end());  // given from the back: the default first
  task.estimate.emplace(task.space->search);
  std::map<int64_t, Observation> results;  // by record id
  for (const PastTrial& t : past)
    if (t.result) results[t.result->record_id] = observation(t.candidate, *t.result);
  for (const auto& [id, result] : results) task.estimate->observe({&result, 1});
  judge_stop(task, index);
  task.proposals = {};
  return Status::ok();
}

// Without an answer the job goes on as if there were none.
void JobRunner::look_up_answer(Task& task, size_t index) {
  if (!known_answer_) return;
  const Result<std::optional<KnownConfig>> known = known_answer_(job_.tasks[index]);
  if (!known)
    notes_.push_back(str("task ", index + 1, ": what the database answers now is not known (",
                         known.message(), "), so it is not tried first"));
  else if (*known)
    task.answer = candidate_of(task, (*known)->template_name, (*known)->template_version, (*known)->config);
}

// The task's trials as a search looks back on them. Those that were never measured come in `cancelled`; those
// of templates or configs that this program does not have are left out.
std::vector<PastTrial> JobRunner::take_past(Task& task, std::vector<Candidate>& cancelled) {
  std::vector<PastTrial> past;
  past.reserve(task.stored.size());
  for (const StoredTrial& t : std::exchange(task.stored, {})) {
    const std::optional<Candidate> candidate =
        candidate_of(task, t.template_name, t.template_version, t.config);
    if (!candidate) continue;
    past.push_back({t.seq, *candidate, t.result});
    if (t.cancelled)
      cancelled.push_back(*candidate);
    else
      task.known.insert(*candidate);
  }
  return past;
}

// Shows the search what it saw and asks it what it was asked, in the stored order; then what came since is
// unobserved. False: it gives something else than it gave then.
bool JobRunner::play_again(Task& task, const std::vector<PastTrial>& past) {
  SearchHistory history;
  for (const PastTrial& t : past) history.add(t);
  for (const ProposalRow& p : task.proposals) {
    const SearchHistory::Call call = history.play(p, *task.search);
    const bool same =
        std::equal(call.then.begin(), call.then.end(), call.now.begin(), call.now.end(),
                   [](const SearchHistory::Trial& t, const Candidate& c) { return t.candidate == c; });
    if (!same || call.then.size() != static_cast<size_t>(p.count)) return false;
  }
  task.unobserved = history.take_results();
  return true;
}

std::optional<Candidate> JobRunner::candidate_of(const Task& task, const std::string& template_name,
                                                 int template_version, const std::string& config) {
  const std::vector<SearchSpace::Part>& parts = task.space->search.parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].template_name != template_name || task.space->template_versions[i] != template_version)
      continue;
    const Result<Config> read = config_from_text(config);
    if (!read) return std::nullopt;
    const Result<ConfigIndex> index = parts[i].space->index_of(*read);
    if (!index) return std::nullopt;
    return Candidate{static_cast<int>(i), *index};
  }
  return std::nullopt;
}

// Stores trials of these candidates, with the proposal they are of (null: candidates of cancelled trials).
Result<std::vector<TrialRow>> JobRunner::store_trials(Task& task, size_t index,
                                                      const std::vector<Candidate>& candidates,
                                                      ProposalRow* proposal) {
  std::vector<TrialRow> rows;
  for (const Candidate& c : candidates) {
    const SearchSpace::Part& part = task.space->search.parts[c.template_index];
    TrialRow row;
    row.job_id = job_.id;
    row.task_index = static_cast<int>(index);
    row.template_name = part.template_name;
    row.template_version = task.space->template_versions[c.template_index];
    row.config = part.space->at(c.config).to_text();
    row.rng_counter = task.search->rng_counter();
    row.model_digest = task.search->model_digest();
    rows.push_back(std::move(row));
  }
  const Stopwatch storing;
  if (const Status stored = store_.add_trials(rows, proposal); !stored) {
    if (stored.code() == StatusCode::kInvalidArgument || stored.code() == StatusCode::kNotFound)
      return stored;
    unstored_ = {.index = index,
                 .candidates = candidates,
                 .proposal = proposal != nullptr ? std::optional(*proposal) : std::nullopt,
                 .why = stored};
    return std::vector<TrialRow>();
  }
  spent_.store_ms += storing.elapsed_ms();
  spent_.trials += static_cast<int64_t>(rows.size());
  if (!rows.empty()) note_first(task, rows.front().id);
  for (size_t r = 0; r < rows.size(); ++r) {
    open_.emplace(rows[r].id, Open{rows[r], candidates[r]});
    ++task.open;
  }
  return rows;
}

int64_t JobRunner::trials_spent() const {
  int64_t spent = 0;
  for (const Task& t : tasks_) spent += t.done + t.open;
  return spent;
}

int64_t JobRunner::trials_total() const {
  int64_t total = 0;
  for (const Task& t : tasks_) total += settled(t) || proposals_ended_ ? t.done + t.open : trials_;
  return std::min(std::max(total, trials_spent()),
                  std::max(trials_spent(), trials_ * static_cast<int64_t>(tasks_.size())));
}

TaskStanding JobRunner::standing(size_t index) const {
  const Task& t = tasks_[index];
  return {.weight = static_cast<double>(job_.tasks[index].uses),
          .done = t.done,
          .open = t.open,
          .best_ns = t.best_ns,
          .expected_gain = t.estimate ? t.estimate->expected_gain().value_or(1) : 1,
          .settled = settled(t)};
}

// The task that the next batch is for, begun; none when the budget is spent or nothing is left to try.
Result<std::optional<size_t>> JobRunner::choose_task() {
  while (true) {
    if (proposals_ended_ || trials_spent() >= trials_total()) return std::optional<size_t>();
    std::vector<TaskStanding> standings;
    for (size_t i = 0; i < tasks_.size(); ++i) standings.push_back(standing(i));
    const std::optional<size_t> next = next_task(standings, trials_, turns_);
    if (!next || tasks_[*next].search != nullptr) return next;
    RETURN_IF_ERROR(begin(tasks_[*next], *next));
    // What it is expected to gain is known only now, when it goes on from stored results.
  }
}

Result<std::vector<TrialRow>> JobRunner::propose(size_t low_water) {
  std::vector<TrialRow> all;
  // With sixteen workers and more a batch of 16 is measured before the next one is thought of.
  const int64_t batch = std::max<int64_t>(kProposalBatch, static_cast<int64_t>(low_water) / 8);
  if (std::optional<Unstored> again = std::exchange(unstored_, std::nullopt)) {
    ASSIGN_OR_RETURN(all, store_trials(tasks_[again->index], again->index, again->candidates,
                                       again->proposal ? &*again->proposal : nullptr));
    if (unstored_) return all;
    ++turns_;
  }
  while (open_.size() <= low_water) {
    ASSIGN_OR_RETURN(const std::optional<size_t> index, choose_task());
    if (!index) break;
    const int64_t wanted =
        std::min(trials_total() - trials_spent(), next_batch(standing(*index), trials_, batch));
    ASSIGN_OR_RETURN(const std::vector<TrialRow> rows,
                     propose_batch(tasks_[*index], *index, static_cast<size_t>(wanted)));
    all.insert(all.end(), rows.begin(), rows.end());
    if (unstored_) break;
    ++turns_;
  }
  return all;
}

// Empty if the answer is the default, which was tried.
Result<std::vector<TrialRow>> JobRunner::propose_answer(Task& task, size_t index) {
  const Candidate answer = *std::exchange(task.answer, std::nullopt);
  if (!task.known.insert(answer).second) return std::vector<TrialRow>();
  ProposalRow proposal{.job_id = job_.id,
                       .task_index = static_cast<int>(index),
                       .observed_record_id = observed_record_id_,
                       .donor_record_id = task.donor_record_id};
  return store_trials(task, index, {answer}, &proposal);
}

Result<std::vector<TrialRow>> JobRunner::propose_batch(Task& task, size_t index, size_t wanted) {
  if (task.answer && task.done + task.open > 0) return propose_answer(task, index);
  std::vector<Candidate> candidates;
  ProposalRow proposal{.job_id = job_.id,
                       .task_index = static_cast<int>(index),
                       .asked = static_cast<int>(wanted),
                       .observed_record_id = observed_record_id_,
                       .donor_record_id = task.donor_record_id};
  const bool again = !task.reopen.empty();
  if (again) {
    while (!task.reopen.empty() && candidates.size() < wanted) {
      if (task.known.insert(task.reopen.back()).second) candidates.push_back(task.reopen.back());
      task.reopen.pop_back();
    }
  } else {
    const Stopwatch thinking;
    if (!task.unobserved.empty()) task.search->observe(std::exchange(task.unobserved, {}));
    candidates = task.search->propose(wanted);
    task.exhausted = candidates.size() < wanted;
    std::erase_if(candidates, [&](const Candidate& c) { return !task.known.insert(c).second; });
    spent_.search_ms += thinking.elapsed_ms();
  }
  return store_trials(task, index, candidates, again ? nullptr : &proposal);
}

void JobRunner::judge_stop(Task& task, size_t index) {
  if (job_.stop.below <= 0 || settled(task) || !task.estimate) return;
  if (trials_spent() >= trials_total()) return;  // the budget ends it, and only more trials go on
  const std::optional<double> chance = task.estimate->chance();
  if (!chance || *chance >= job_.stop.below) return;
  task.stopped = true;
  notes_.push_back(str("task ", index + 1, " of ", tasks_.size(), " stops after ", task.done, " of ", trials_,
                       " trials", task.open > 0 ? str(" and the ", task.open, " under way") : "",
                       ": the chance that its next ", kStoppingHorizon, " trials gain 1 % is ",
                       std::round(1000 * *chance) / 10, " %, below ", std::round(1000 * job_.stop.below) / 10,
                       " %. To go on: --stop-below 0"));
}

void JobRunner::count(Task& task, int index, const TrialRow& row, const MeasureRecord& record) {
  ++task.done;
  ++outcomes_[record.outcome];
  latest_task_ = index;
  if (record.peak_gflops > 0) task.peak_gflops = record.peak_gflops;
  if (record.outcome != Outcome::kOk || record.cut) return;
  const double time_ns = record_time_ns(record);
  if (row.id == task.first_trial_id) task.default_ns = time_ns;
  if (task.best_ns > 0 && time_ns >= task.best_ns) return;
  task.best_ns = time_ns;
  task.best_config = row.config;
  task.best_template = row.template_name;
}

Result<size_t> JobRunner::observe() {
  const Stopwatch reading;
  ASSIGN_OR_RETURN(const std::vector<ObservedRecord> records,
                   store_.records_after(job_.id, observed_record_id_));
  spent_.store_ms += reading.elapsed_ms();
  size_t taken = 0;
  for (const ObservedRecord& r : records) {
    observed_record_id_ = r.record_id;
    const auto found = open_.find(r.record.trial_id);
    if (found == open_.end()) continue;
    ++taken;
    const Open open = std::move(found->second);
    open_.erase(found);
    Task& task = tasks_[open.row.task_index];
    --task.open;
    count(task, open.row.task_index, open.row, r.record);
    if (open.candidate) {
      task.unobserved.push_back(observation(*open.candidate, r.record));
      if (task.estimate) task.estimate->observe({&task.unobserved.back(), 1});
    }
    // A task not begun yet learns of it in begin(), with all that was stored before.
    const auto stored = std::ranges::lower_bound(task.stored, open.row.seq, {}, &StoredTrial::seq);
    if (stored != task.stored.end() && stored->seq == open.row.seq)
      stored->result = past_result(r.record_id, r.record);
  }
  for (size_t i = 0; i < tasks_.size() && taken > 0; ++i) judge_stop(tasks_[i], i);
  return taken;
}

void JobRunner::withdraw(const std::vector<std::string>& trial_ids) {
  for (const std::string& id : trial_ids) {
    const auto found = open_.find(id);
    if (found == open_.end()) continue;
    --tasks_[found->second.row.task_index].open;
    open_.erase(found);
  }
}

bool JobRunner::some_task_is_untried() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const Task& t) { return t.done == 0 && !(settled(t) && t.open == 0); });
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
    tasks_[i].estimate.reset();
    tasks_[i].space.reset();
    tasks_[i].known.clear();
    finished.push_back(static_cast<int>(i));
  }
  return finished;
}

JobProgress JobRunner::progress() const {
  JobProgress p;
  p.task_index = latest_task_;
  for (const Task& task : tasks_) p.trials_done += task.done;
  p.trials_total = trials_total();
  p.outcomes = outcomes_;
  if (tasks_.empty()) return p;
  const Task& task = tasks_[p.task_index];
  p.best_ns = task.best_ns;
  p.default_ns = task.default_ns;
  p.peak_gflops = task.peak_gflops;
  p.best_config = task.best_config;
  p.best_template = task.best_template;
  if (task.search != nullptr) p.search_status = task.search->status_line();
  if (task.estimate) p.gain_chance = task.estimate->chance();
  return p;
}

}  // namespace tuner
