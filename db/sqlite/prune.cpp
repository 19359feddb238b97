// Removes records on which no answer rests (db/prune.h). Removal happens in small commits, so that other
// writes wait for one of them at most. What was decided from one snapshot is checked again in each commit: a
// job that goes on, or a new race, ends the removal before it takes anything.
#include "db/prune.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "compiler_core/base/clock.h"
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

namespace {

constexpr size_t kAtATime = 128;  // records per commit: a few milliseconds
constexpr int kAttempts = 5;      // to plan anew where something changed meanwhile

// What a removal needs to know of a record.
struct Pruned {
  int64_t record_id = 0, trial_seq = 0, job_seq = 0;
  std::string outcome;
  bool terminal = false;
  double run_ms = 0;
};

struct Plan {
  int64_t task_id = 0, last_race = 0;
  std::vector<Pruned> remove;
  int64_t kept = 0;
};

bool is_open(const std::string& job_state) { return job_state == "queued" || job_state == "running"; }

Result<int64_t> last_race_of(Connection& c, int64_t task_id) {
  ASSIGN_OR_RETURN(const SqlRow row, c.one(kLastRaceOfTask, {task_id}));
  const auto* id = row.empty() ? nullptr : std::get_if<int64_t>(&row[0]);
  return id != nullptr ? *id : 0;
}

Result<std::set<int64_t>> raced_trials(Connection& c, int64_t task_id) {
  std::set<int64_t> seqs;
  ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kRacesOfTask, {task_id}));
  for (const SqlRow& row : rows) {
    ASSIGN_OR_RETURN(const StoredRace stored, race_without_samples(row));
    std::vector<std::string> ids = stored.race.tie_set;
    for (const RaceFinalist& f : stored.race.finalists) ids.push_back(f.trial_id);
    for (const std::string* id :
         {&stored.race.winner_trial_id, &stored.race.default_trial_id, &stored.race.stored_trial_id})
      if (!id->empty()) ids.push_back(*id);
    for (const std::string& id : ids) {
      ASSIGN_OR_RETURN(const int64_t seq, trial_seq(id));
      seqs.insert(seq);
    }
  }
  return seqs;
}

// The trial of the default config: the first that a job has of a task.
class FirstTrials {
 public:
  Result<int64_t> of(Connection& c, int64_t job_seq, int64_t task_index) {
    const auto known = first_.find({job_seq, task_index});
    if (known != first_.end()) return known->second;
    ASSIGN_OR_RETURN(const SqlRow row, c.one(kFirstTrialOfTask, {job_seq, task_index}));
    const int64_t seq = row.empty() ? 0 : std::get<int64_t>(row[0]);
    first_.emplace(std::pair(job_seq, task_index), seq);
    return seq;
  }

 private:
  std::map<std::pair<int64_t, int64_t>, int64_t> first_;
};

// The columns of kPruneCandidates.
enum Column {
  kRecord,
  kTrial,
  kTerminal,
  kOutcome,
  kCut,
  kTime,
  kFinished,
  kRunMs,
  kTemplate,
  kToolchain,
  kHardware,
  kAbi,
  kJob,
  kTaskIndex,
  kJobState
};

Result<Plan> plan_of(Connection& c, const JobRow::Task& task, const PruneRules& rules) {
  Plan plan;
  ASSIGN_OR_RETURN(const SqlRow task_row, c.one(kTaskByKey, {task.workload_key, target_in_row(task)}));
  if (task_row.empty()) return plan;
  ASSIGN_OR_RETURN(const StoredTask stored, task_from_row(task_row));
  plan.task_id = stored.task_id;
  ASSIGN_OR_RETURN(plan.last_race, last_race_of(c, plan.task_id));
  ASSIGN_OR_RETURN(const std::set<int64_t> raced, raced_trials(c, plan.task_id));
  ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kPruneCandidates, {plan.task_id}));
  FirstTrials firsts;
  std::vector<PruneCandidate> candidates;
  std::unordered_map<int64_t, const SqlRow*> by_id;
  for (const SqlRow& row : rows) {
    const auto integer = [&](Column at) { return std::get<int64_t>(row.at(at)); };
    const auto text = [&](Column at) { return std::get<std::string>(row.at(at)); };
    PruneCandidate& out = candidates.emplace_back();
    out.record_id = integer(kRecord);
    out.trial_seq = integer(kTrial);
    out.ranked =
        integer(kTerminal) == 1 && text(kOutcome) == outcome_name(Outcome::kOk) && integer(kCut) == 0;
    ASSIGN_OR_RETURN(const int64_t first, firsts.of(c, integer(kJob), integer(kTaskIndex)));
    out.needed = is_open(text(kJobState)) || out.trial_seq == first || raced.contains(out.trial_seq);
    out.time_ns = std::get<double>(row.at(kTime));
    out.group = str(text(kTemplate), "\n", text(kToolchain), "\n", text(kHardware), "\n", integer(kAbi));
    out.finished_at_us = integer(kFinished);
    by_id.emplace(out.record_id, &row);
  }
  for (const int64_t id : records_to_prune(candidates, rules)) {
    const SqlRow& row = *by_id.at(id);
    plan.remove.push_back({.record_id = id,
                           .trial_seq = std::get<int64_t>(row.at(kTrial)),
                           .job_seq = std::get<int64_t>(row.at(kJob)),
                           .outcome = std::get<std::string>(row.at(kOutcome)),
                           .terminal = std::get<int64_t>(row.at(kTerminal)) == 1,
                           .run_ms = std::get<double>(row.at(kRunMs))});
  }
  // Records of one trial go in one commit.
  std::ranges::stable_sort(plan.remove, {}, &Pruned::trial_seq);
  plan.kept = std::ssize(rows) - std::ssize(plan.remove);
  return plan;
}

PruneCount count_of(const Plan& plan) {
  PruneCount count{.records = std::ssize(plan.remove), .kept = plan.kept};
  std::set<int64_t> trials;
  for (const Pruned& p : plan.remove) {
    trials.insert(p.trial_seq);
    count.run_s += p.run_ms / 1000;
  }
  count.trials = std::ssize(trials);
  return count;
}

// Aborted: what the plan rests on has changed.
Status check_unchanged(Connection& c, const Plan& plan, const std::vector<Pruned>& part) {
  ASSIGN_OR_RETURN(const int64_t last_race, last_race_of(c, plan.task_id));
  if (last_race != plan.last_race) return Status(StatusCode::kAborted, "a race ended meanwhile");
  std::set<int64_t> jobs;
  for (const Pruned& p : part) jobs.insert(p.job_seq);
  for (const int64_t job_seq : jobs) {
    ASSIGN_OR_RETURN(const SqlRow row, c.one(kJobBySeq, {job_seq}));
    ASSIGN_OR_RETURN(const StoredJob job, job_from_row(row));
    if (is_open(std::string(job_state_name(job.job.state))))
      return Status(StatusCode::kAborted, str("job ", job.job.id, " goes on"));
  }
  return Status::ok();
}

// Removes those that are still there, and counts them in the table `pruned`.
Status remove_part(Connection& c, const Plan& plan, const std::vector<Pruned>& part,
                   const std::function<int64_t()>& next_seq, PruneCount& count) {
  std::map<std::pair<int64_t, std::string>, PrunedRow> sums;  // by job and outcome
  std::set<int64_t> trials;
  const int64_t now_us = wall_time_us();
  for (const Pruned& p : part) {
    ASSIGN_OR_RETURN(const SqlRow there, c.one(kRecordIsThere, {p.record_id}));
    if (there.empty()) continue;  // another command removed it
    RETURN_IF_ERROR(c.run(kRemoveRecord, {p.record_id}));
    PrunedRow& sum = sums[{p.job_seq, p.outcome}];
    sum.records += 1;
    sum.closed += p.terminal ? 1 : 0;
    sum.run_ms += p.run_ms;
    count.records += 1;
    count.run_s += p.run_ms / 1000;
    trials.insert(p.trial_seq);
  }
  count.trials += std::ssize(trials);
  static const std::string kInsert =
      str("INSERT INTO pruned (", kPrunedColumns, ") VALUES (", placeholders(kPrunedColumns), ")");
  for (auto& [key, sum] : sums) {
    sum.pruned_id = next_seq();
    sum.job_seq = key.first;
    sum.task_id = plan.task_id;
    sum.outcome = key.second;
    sum.pruned_at_us = now_us;
    RETURN_IF_ERROR(c.run(kInsert, to_row(sum)));
  }
  return Status::ok();
}

}  // namespace

Result<PruneCount> SqliteStore::prunable(const JobRow::Task& task, const PruneRules& rules) const {
  return read([&](Connection& c) -> Result<PruneCount> {
    ASSIGN_OR_RETURN(const Plan plan, plan_of(c, task, rules));
    return count_of(plan);
  });
}

Result<PruneCount> SqliteStore::prune(const JobRow::Task& task, const PruneRules& rules, int64_t most) {
  PruneCount count;
  Status changed;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ASSIGN_OR_RETURN(const Plan plan, read([&](Connection& c) { return plan_of(c, task, rules); }));
    count.kept = plan.kept;
    changed = Status::ok();
    for (size_t begin = 0; begin < plan.remove.size();) {
      if (count.records >= most) {
        count.more = true;
        count.kept += std::ssize(plan.remove) - static_cast<int64_t>(begin);
        return count;
      }
      size_t end = std::min(plan.remove.size(), begin + kAtATime);
      while (end < plan.remove.size() && plan.remove[end].trial_seq == plan.remove[end - 1].trial_seq) ++end;
      const std::vector<Pruned> part(plan.remove.begin() + static_cast<std::ptrdiff_t>(begin),
                                     plan.remove.begin() + static_cast<std::ptrdiff_t>(end));
      PruneCount removed;
      changed = write([&](Connection& c) -> Status {
        removed = {};
        RETURN_IF_ERROR(check_unchanged(c, plan, part));
        return remove_part(
            c, plan, part, [this] { return next_seq(); }, removed);
      });
      if (changed.code() == StatusCode::kAborted) break;
      RETURN_IF_ERROR(changed);
      count += removed;
      begin = end;
    }
    if (changed) return count;
  }
  return changed.with_context(str("prune of ", task.workload_key, ": "));
}

}  // namespace tuner::db
