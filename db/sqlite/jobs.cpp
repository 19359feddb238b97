// Jobs and what their watchers are told.
#include "compiler_core/base/clock.h"
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

namespace {

Status save_job(Connection& connection, const StoredJob& stored) {
  const SqlRow row = to_row(stored);
  const JobRow& j = stored.job;
  return connection.run(
      "UPDATE job SET trials = ?, options = ?, state = ?, message = ?, finished_at_us = ?, crc = ? "
      "WHERE job_seq = ?",
      {int64_t{j.trials}, job_options_json(j), std::string(job_state_name(j.state)), j.message,
       j.finished_at_us, row.back(), stored.job_seq});
}

bool is_final(JobState state) { return state != JobState::kQueued && state != JobState::kRunning; }

Result<std::vector<SqlRow>> job_rows(Connection& c, const JobQuery& query) {
  if (!query.id.empty()) return c.all(kJobById, {query.id});
  if (!query.request_id.empty()) return c.all(kJobByRequest, {query.request_id});
  if (query.search)
    return c.all(kJobSame, {tasks_json(query.search->tasks), query.search->name,
                            static_cast<int64_t>(query.search->seed), query.search->tenant});
  if (query.newest > 0)
    return c.all("SELECT * FROM (SELECT * FROM job ORDER BY job_seq DESC LIMIT ?) ORDER BY job_seq",
                 {query.newest});
  return c.all("SELECT * FROM job ORDER BY job_seq");
}

}  // namespace

Status SqliteStore::add_job(const JobRow& job, const std::vector<KernelRow>& kernels) {
  if (job.id.empty() || job.tasks.empty()) return invalid_argument("a job needs an id and at least one task");
  return write([&](Connection& c) -> Status {
    if (!job.request_id.empty()) {
      ASSIGN_OR_RETURN(const SqlRow known, c.one(kJobByRequest, {job.request_id}));
      if (!known.empty()) return Status::ok();
    }
    ASSIGN_OR_RETURN(const SqlRow same_id, c.one(kJobById, {job.id}));
    if (!same_id.empty()) return invalid_argument("job \"", job.id, "\" exists already");
    for (const KernelRow& kernel : kernels)
      RETURN_IF_ERROR(insert_kernel(c, kernel, [this] { return next_seq(); }).status());
    static const std::string kInsert =
        str("INSERT INTO job (", kJobColumns, ") VALUES (", placeholders(kJobColumns), ")");
    return c.run(kInsert, to_row(StoredJob{next_seq(), job}));
  });
}

Status SqliteStore::update_job(std::string_view job_id, const JobChange& change) {
  return write([&](Connection& c) -> Status {
    ASSIGN_OR_RETURN(StoredJob stored, find_job_row(c, job_id));
    JobRow& job = stored.job;
    job.state = change.state;
    job.finished_at_us = is_final(change.state) ? wall_time_us() : 0;
    if (change.message) job.message = *change.message;
    job.trials = std::max(job.trials, change.least_trials);
    if (change.stop) job.stop = *change.stop;
    return save_job(c, stored);
  });
}

Result<std::vector<JobRow>> SqliteStore::jobs(const JobQuery& query) const {
  return read([&](Connection& c) -> Result<std::vector<JobRow>> {
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, job_rows(c, query));
    std::vector<JobRow> jobs;
    for (const SqlRow& row : rows) {
      ASSIGN_OR_RETURN(StoredJob stored, job_from_row(row));
      jobs.push_back(std::move(stored.job));
    }
    return jobs;
  });
}

Result<int64_t> SqliteStore::trials_done(std::string_view job_id) const {
  return read([&](Connection& c) -> Result<int64_t> {
    ASSIGN_OR_RETURN(const StoredJob stored, find_job_row(c, job_id));
    ASSIGN_OR_RETURN(const SqlRow row, c.one(kDoneTrialsOfJob, {stored.job_seq}));
    return std::get<int64_t>(row.at(0));
  });
}

Result<std::vector<UsageRow>> SqliteStore::usage() const {
  return read([&](Connection& c) -> Result<std::vector<UsageRow>> {
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kUsage));
    std::vector<UsageRow> usage;
    for (const SqlRow& row : rows)
      usage.push_back({std::get<std::string>(row.at(0)), std::get<int64_t>(row.at(1)),
                       std::get<int64_t>(row.at(2)), std::get<double>(row.at(3)) / 1000});
    return usage;
  });
}

Result<int64_t> SqliteStore::add_event(std::string_view job_id, std::string_view json) {
  int64_t seq = 0;
  const Status status = write([&](Connection& c) -> Status {
    ASSIGN_OR_RETURN(const StoredJob stored, find_job_row(c, job_id));
    seq = next_seq();
    return c.run("INSERT INTO event (seq, job_seq, json) VALUES (?, ?, ?)",
                 {seq, stored.job_seq, std::string(json)});
  });
  if (!status) return status;
  return seq;
}

Result<std::vector<std::pair<int64_t, std::string>>> SqliteStore::events(std::string_view job_id,
                                                                         int64_t after_seq, int limit) const {
  using Events = std::vector<std::pair<int64_t, std::string>>;
  return read([&](Connection& c) -> Result<Events> {
    ASSIGN_OR_RETURN(const StoredJob stored, find_job_row(c, job_id));
    ASSIGN_OR_RETURN(std::vector<SqlRow> rows,
                     c.all(kEventsOfJob, {stored.job_seq, after_seq, int64_t{limit}}));
    Events events;
    for (SqlRow& row : rows)
      events.emplace_back(std::get<int64_t>(row[0]), std::get<std::string>(std::move(row[1])));
    return events;
  });
}

}  // namespace tuner::db
