// Trials: proposed and by which call of a search, leased, given back, cancelled.
#include <map>

#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

Result<int64_t> task_id_of(Connection& connection, const JobRow::Task& task,
                           const std::function<int64_t()>& new_id) {
  ASSIGN_OR_RETURN(const SqlRow row, connection.one(kTaskByKey, {task.workload_key, target_in_row(task)}));
  if (!row.empty()) {
    ASSIGN_OR_RETURN(const StoredTask known, task_from_row(row));
    return known.task_id;
  }
  const StoredTask fresh{new_id(), task};
  static const std::string kInsert =
      str("INSERT INTO task (", kTaskColumns, ") VALUES (", placeholders(kTaskColumns), ")");
  RETURN_IF_ERROR(connection.run(kInsert, to_row(fresh)));
  return fresh.task_id;
}

Status save_trial(Connection& connection, const StoredTrial& stored) {
  const TrialRow& t = stored.trial;
  return connection.run(
      "UPDATE trial SET state = ?, attempt = ?, fencing = ?, worker_id = ?, grants = ?, crc = ? WHERE seq = "
      "?",
      {std::string(trial_state_name(t.state)), int64_t{t.attempt}, t.fencing, t.worker_id,
       grants_text(t.grants), to_row(stored).back(), t.seq});
}

Status SqliteStore::insert_trials(Connection& c, std::vector<TrialRow>& trials) {
  std::map<std::string, StoredJob> jobs;
  std::map<std::pair<int64_t, int>, int64_t> task_ids;
  for (TrialRow& trial : trials) {
    if (!jobs.contains(trial.job_id)) {
      ASSIGN_OR_RETURN(StoredJob job, find_job_row(c, trial.job_id));
      jobs.emplace(trial.job_id, std::move(job));
    }
    const StoredJob& job = jobs.at(trial.job_id);
    if (trial.task_index < 0 || static_cast<size_t>(trial.task_index) >= job.job.tasks.size())
      return invalid_argument("trial of job ", trial.job_id, ": task_index ", trial.task_index,
                              ", the job has ", job.job.tasks.size(), " tasks");
    const std::pair key(job.job_seq, trial.task_index);
    if (!task_ids.contains(key)) {
      ASSIGN_OR_RETURN(const int64_t id, task_id_of(c, job.job.tasks[static_cast<size_t>(trial.task_index)],
                                                    [this] { return next_seq(); }));
      task_ids[key] = id;
    }
    trial.seq = next_seq();
    trial.id = trial_id_text(trial.seq);
    static const std::string kInsert =
        str("INSERT INTO trial (", kTrialColumns, ") VALUES (", placeholders(kTrialColumns), ")");
    RETURN_IF_ERROR(c.run(kInsert, to_row(StoredTrial{trial, job.job_seq, task_ids.at(key)})));
  }
  return Status::ok();
}

Status SqliteStore::add_trials(std::vector<TrialRow>& trials, ProposalRow* proposal) {
  if (proposal != nullptr)
    for (const TrialRow& trial : trials)
      if (trial.job_id != proposal->job_id || trial.task_index != proposal->task_index)
        return invalid_argument("proposal of job ", proposal->job_id, ", task ", proposal->task_index,
                                ": a trial is of job ", trial.job_id, ", task ", trial.task_index);
  std::vector<TrialRow> added;
  ProposalRow row;
  RETURN_IF_ERROR(write([&](Connection& c) -> Status {
    added = trials;
    if (proposal == nullptr) return insert_trials(c, added);
    ASSIGN_OR_RETURN(const StoredJob job, find_job_row(c, proposal->job_id));
    RETURN_IF_ERROR(insert_trials(c, added));
    row = *proposal;
    row.seq = next_seq();
    row.count = static_cast<int>(added.size());
    row.first_trial_seq = added.empty() ? 0 : added.front().seq;
    static const std::string kInsert =
        str("INSERT INTO proposal (", kProposalColumns, ") VALUES (", placeholders(kProposalColumns), ")");
    return c.run(kInsert, to_row(StoredProposal{row, job.job_seq}));
  }));
  trials = std::move(added);
  if (proposal != nullptr) *proposal = std::move(row);
  return Status::ok();
}

Result<TrialRow> SqliteStore::lease(Connection& c, int64_t seq, const LeaseWish& wish, Owners& owners) {
  ASSIGN_OR_RETURN(StoredTrial stored, find_trial_row(c, seq));
  TrialRow& t = stored.trial;
  if (t.state != TrialState::kQueued)
    return not_found("trial ", t.id, " is ", trial_state_name(t.state), ", not queued any more");
  t.state = TrialState::kLeased;
  t.attempt += 1;
  t.fencing = next_seq();
  t.worker_id = wish.worker_id;
  add_grant(t.grants, {t.attempt, wish.worker_id, wish.incarnation});
  RETURN_IF_ERROR(save_trial(c, stored));
  ASSIGN_OR_RETURN(const std::string* const job_id, owners.job_id(c, stored.job_seq));
  t.job_id = *job_id;
  return t;
}

Result<std::vector<TrialRow>> SqliteStore::lease_trials(const std::vector<LeaseWish>& wishes) {
  std::vector<int64_t> seqs;
  for (const LeaseWish& wish : wishes) {
    ASSIGN_OR_RETURN(seqs.emplace_back(), trial_seq(wish.trial_id));
  }
  std::vector<TrialRow> leased;
  RETURN_IF_ERROR(write([&](Connection& c) -> Status {
    leased.clear();
    Owners owners;
    for (size_t i = 0; i < seqs.size(); ++i) {
      Result<TrialRow> row = lease(c, seqs[i], wishes[i], owners);
      if (row)
        leased.push_back(*std::move(row));
      else if (row.status().code() != StatusCode::kNotFound)
        return row.status();
    }
    return Status::ok();
  }));
  return leased;
}

Result<int64_t> SqliteStore::requeue_trials(const std::vector<std::pair<std::string, int>>& attempts) {
  int64_t requeued = 0;
  RETURN_IF_ERROR(write([&](Connection& c) -> Status {
    requeued = 0;
    for (const auto& [id, attempt] : attempts) {
      ASSIGN_OR_RETURN(const int64_t seq, trial_seq(id));
      ASSIGN_OR_RETURN(StoredTrial stored, find_trial_row(c, seq));
      TrialRow& t = stored.trial;
      if (t.state != TrialState::kLeased || t.attempt != attempt) continue;
      t.state = TrialState::kQueued;
      RETURN_IF_ERROR(save_trial(c, stored));
      ++requeued;
    }
    return Status::ok();
  }));
  return requeued;
}

Status SqliteStore::cancel_open_trials(std::string_view job_id) {
  return write([&](Connection& c) -> Status {
    ASSIGN_OR_RETURN(const StoredJob job, find_job_row(c, job_id));
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows,
                     c.all(kOpenTrialsOfJob, {job.job_seq, int64_t{0}, int64_t{-1}}));
    for (const SqlRow& row : rows) {
      ASSIGN_OR_RETURN(StoredTrial stored, trial_from_row(row));
      stored.trial.state = TrialState::kCancelled;
      RETURN_IF_ERROR(save_trial(c, stored));
    }
    return Status::ok();
  });
}

Result<std::vector<ProposalRow>> SqliteStore::proposals(std::string_view job_id) const {
  return read([&](Connection& c) -> Result<std::vector<ProposalRow>> {
    ASSIGN_OR_RETURN(const StoredJob job, find_job_row(c, job_id));
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kProposalsOfJob, {job.job_seq}));
    std::vector<ProposalRow> out;
    for (const SqlRow& row : rows) {
      ASSIGN_OR_RETURN(StoredProposal stored, proposal_from_row(row));
      stored.proposal.job_id = job.job.id;
      out.push_back(std::move(stored.proposal));
    }
    return out;
  });
}

}  // namespace tuner::db
