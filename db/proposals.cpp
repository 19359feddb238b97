// Proposals: what a search had seen when it gave which trials.
#include "db/sql.h"
#include "db/sqlite_store.h"

namespace tuner::db {

Status SqliteStore::add_proposal(ProposalRow& proposal, std::vector<TrialRow>& trials) {
  for (const TrialRow& trial : trials)
    if (trial.job_id != proposal.job_id || trial.task_index != proposal.task_index)
      return invalid_argument("proposal of job ", proposal.job_id, ", task ", proposal.task_index,
                              ": a trial is of job ", trial.job_id, ", task ", trial.task_index);
  ProposalRow row;
  std::vector<TrialRow> added;
  RETURN_IF_ERROR(write([&](Connection& c) -> Status {
    ASSIGN_OR_RETURN(const StoredJob job, find_job_row(c, proposal.job_id));
    added = trials;
    RETURN_IF_ERROR(insert_trials(c, added));
    row = proposal;
    row.seq = next_seq();
    row.count = static_cast<int>(added.size());
    row.first_trial_seq = added.empty() ? 0 : added.front().seq;
    static const std::string kInsert =
        str("INSERT INTO proposal (", kProposalColumns, ") VALUES (", placeholders(kProposalColumns), ")");
    return c.run(kInsert, to_row(StoredProposal{row, job.job_seq}));
  }));
  proposal = std::move(row);
  trials = std::move(added);
  return Status::ok();
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
