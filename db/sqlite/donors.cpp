// What a warm start reads: the tasks there are, and a sample of the records of one; the same of other tuners.
#include <map>

#include "db/donor_sample.h"
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

namespace {

Result<std::vector<JobRow::Task>> tasks_from_rows(const std::vector<SqlRow>& rows, Constants constants) {
  std::vector<JobRow::Task> tasks;
  for (const SqlRow& row : rows) {
    ASSIGN_OR_RETURN(StoredTask stored, task_from_row(row));
    if (stored.task.constants == constants) tasks.push_back(std::move(stored.task));
  }
  return tasks;
}

}  // namespace

Result<std::vector<JobRow::Task>> SqliteStore::tasks(Constants constants) const {
  return read([&](Connection& c) -> Result<std::vector<JobRow::Task>> {
    static const std::string kAll = str("SELECT ", kTaskColumns, " FROM task ORDER BY task_id");
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kAll, {}));
    return tasks_from_rows(rows, constants);
  });
}

Result<std::vector<JobRow::Task>> SqliteStore::tasks_of(std::string_view workload_key,
                                                        Constants constants) const {
  return read([&](Connection& c) -> Result<std::vector<JobRow::Task>> {
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kTasksOfWorkload, {std::string(workload_key)}));
    return tasks_from_rows(rows, constants);
  });
}

Result<std::vector<TrialWithRecord>> SqliteStore::sample_records(const JobRow::Task& task, int64_t until,
                                                                 int most) const {
  return read([&](Connection& c) -> Result<std::vector<TrialWithRecord>> {
    std::vector<TrialWithRecord> out;
    ASSIGN_OR_RETURN(const SqlRow task_row, c.one(kTaskByKey, {task.workload_key, target_in_row(task)}));
    if (task_row.empty() || most <= 0) return out;
    ASSIGN_OR_RETURN(const StoredTask stored_task, task_from_row(task_row));
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kRankOfTask, {stored_task.task_id, until}));
    std::vector<RankedRecord> ranked;
    for (const SqlRow& row : rows)
      ranked.push_back({std::get<std::string>(row[0]) != outcome_name(Outcome::kOk),
                        std::get<int64_t>(row[1]) != 0, std::get<double>(row[2]), std::get<int64_t>(row[3])});
    for (const int64_t id : donor_sample(std::move(ranked), most)) {
      ASSIGN_OR_RETURN(const SqlRow row, c.one(kTrialOfRecord, {id}));
      if (row.empty())
        return failed("record ", id, " is of a trial that is not there: the database is damaged");
      ASSIGN_OR_RETURN(StoredTrial stored, trial_from_row(row));
      ASSIGN_OR_RETURN(TrialWithRecord trial, with_record(c, std::move(stored)));
      out.push_back(std::move(trial));
    }
    return out;
  });
}

Result<std::vector<ForeignTask>> SqliteStore::foreign_tasks() const {
  return read([](Connection& c) -> Result<std::vector<ForeignTask>> {
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows,
                     c.all("SELECT * FROM foreign_task ORDER BY foreign_task_id"));
    std::vector<ForeignTask> tasks;
    for (const SqlRow& row : rows) {
      ASSIGN_OR_RETURN(StoredForeignTask stored, foreign_task_from_row(row));
      tasks.push_back({stored.foreign_task_id, std::move(stored.format), std::move(stored.task),
                       std::move(stored.target)});
    }
    return tasks;
  });
}

Result<int64_t> SqliteStore::last_foreign_id() const {
  return read([](Connection& c) -> Result<int64_t> {
    ASSIGN_OR_RETURN(const SqlRow row, c.one("SELECT max(foreign_id) FROM foreign_record"));
    const auto* value = row.empty() ? nullptr : std::get_if<int64_t>(&row[0]);
    return value != nullptr ? *value : 0;
  });
}

Result<std::vector<ForeignRecord>> SqliteStore::sample_foreign(const ForeignTask& task, int64_t until,
                                                               int most) const {
  return read([&](Connection& c) -> Result<std::vector<ForeignRecord>> {
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kForeignRankOfTask, {task.id, until}));
    std::vector<RankedRecord> ranked;
    for (const SqlRow& row : rows)
      ranked.push_back({std::get<std::string>(row[0]) != outcome_name(Outcome::kOk), false,
                        std::get<double>(row[1]), std::get<int64_t>(row[2])});
    std::vector<ForeignRecord> out;
    std::map<int64_t, Origin> origins;
    for (const int64_t id : donor_sample(std::move(ranked), most)) {
      ASSIGN_OR_RETURN(const SqlRow row, c.one(kForeignById, {id}));
      ASSIGN_OR_RETURN(StoredForeignRecord stored, foreign_record_from_row(row));
      if (!origins.contains(stored.origin_id)) {
        ASSIGN_OR_RETURN(const SqlRow origin, c.one(kOriginById, {stored.origin_id}));
        ASSIGN_OR_RETURN(StoredOrigin found, origin_from_row(origin));
        origins.emplace(stored.origin_id, std::move(found.origin));
      }
      ForeignRecord& record = stored.record;
      record.format = task.format;
      record.task = task.task;
      record.target = task.target;
      record.origin = origins.at(stored.origin_id);
      out.push_back(std::move(record));
    }
    return out;
  });
}

}  // namespace tuner::db
