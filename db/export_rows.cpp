// Rows that go elsewhere, with names that mean the same there.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "db/sql.h"
#include "db/sqlite_store.h"

namespace tuner {

using namespace db;

namespace {

// Rows read in one snapshot: a long reader would hold up the checkpoints of the writer.
constexpr int64_t kPage = 512;
constexpr size_t kTrialWidth = 14, kRecordWidth = 28;  // columns of the tables

struct JobOut {
  StoredJob stored;
  std::string uid, home_id;
  bool told = false;  // `f` has seen it
};

bool is_null(const SqlValue& value) { return std::holds_alternative<std::monostate>(value); }

// What is read once: jobs are few.
struct Jobs {
  std::map<int64_t, JobOut> by_seq;

  static Result<Jobs> read(Connection& c) {
    Jobs jobs;
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all("SELECT * FROM job ORDER BY job_seq"));
    for (const SqlRow& row : rows) {
      ASSIGN_OR_RETURN(StoredJob job, job_from_row(row));
      JobOut out{.stored = std::move(job), .uid = {}, .home_id = {}};
      out.uid = job_uid(out.stored.job);
      out.home_id = out.stored.job.id;
      jobs.by_seq.emplace(out.stored.job_seq, std::move(out));
    }
    ASSIGN_OR_RETURN(const std::vector<SqlRow> imported, c.all("SELECT * FROM imported_job"));
    for (const SqlRow& row : imported) {
      ASSIGN_OR_RETURN(const StoredImportedJob job, imported_job_from_row(row));
      const auto found = jobs.by_seq.find(job.job_seq);
      if (found == jobs.by_seq.end()) continue;  // newer than this snapshot's first read
      found->second.uid = job.uid;
      found->second.home_id = job.home_id;
    }
    return jobs;
  }
};

bool wants_task(const ExchangeFilter& filter, const JobRow::Task& task) {
  return !filter.task || filter.task(task);
}

// A row of kTrialRows*: a trial, one of its records, where it came from.
struct TrialOut {
  StoredTrial trial;
  std::optional<StoredRecord> record;
  int64_t home_seq = 0;
};
Result<TrialOut> trial_out(const SqlRow& row) {
  const auto part = [&](size_t from, size_t width) {
    return SqlRow(row.begin() + static_cast<ptrdiff_t>(from),
                  row.begin() + static_cast<ptrdiff_t>(from + width));
  };
  TrialOut out;
  ASSIGN_OR_RETURN(out.trial, trial_from_row(part(0, kTrialWidth)));
  out.home_seq = out.trial.trial.seq;
  if (!is_null(row.at(kTrialWidth))) {
    ASSIGN_OR_RETURN(StoredRecord record, record_from_row(part(kTrialWidth, kRecordWidth)));
    out.record = std::move(record);
  }
  const size_t imported = kTrialWidth + kRecordWidth;
  if (!is_null(row.at(imported))) {
    ASSIGN_OR_RETURN(const StoredImportedTrial from,
                     imported_trial_from_row(part(imported, row.size() - imported)));
    out.home_seq = from.home_seq;
  }
  return out;
}

// The home numbers of a race's trials.
Result<RaceRow> at_home(Connection& c, RaceRow race) {
  const auto rename = [&](std::string& id) -> Status {
    ASSIGN_OR_RETURN(const int64_t seq, trial_seq(id));
    ASSIGN_OR_RETURN(const SqlRow row, c.one("SELECT * FROM imported_trial WHERE seq = ?", {seq}));
    if (row.empty()) return Status::ok();
    ASSIGN_OR_RETURN(const StoredImportedTrial from, imported_trial_from_row(row));
    id = trial_id_text(from.home_seq);
    return Status::ok();
  };
  RETURN_IF_ERROR(rename(race.winner_trial_id));
  for (std::string& id : race.tie_set) RETURN_IF_ERROR(rename(id));
  for (RaceFinalist& f : race.finalists) RETURN_IF_ERROR(rename(f.trial_id));
  if (!race.default_trial_id.empty()) RETURN_IF_ERROR(rename(race.default_trial_id));
  return race;
}

ExchangedJob exchanged(const JobOut& job) {
  ExchangedJob out{job.uid, job.stored.job};
  out.job.id = job.home_id;
  return out;
}

}  // namespace

Status for_each_exchange_row(const Store& store, const ExchangeFilter& filter,
                             const std::function<bool(const ExchangeRow&)>& f) {
  const auto* const sqlite = dynamic_cast<const SqliteStore*>(&store);
  CHECK(sqlite != nullptr) << "a store of another kind";
  Result<Jobs> jobs = sqlite->read([](Connection& c) { return Jobs::read(c); });
  if (!jobs) return jobs.status();
  int64_t only_job = 0;
  if (!filter.job.empty()) {
    const auto found = std::ranges::find_if(
        jobs->by_seq, [&](const auto& entry) { return entry.second.stored.job.id == filter.job; });
    if (found == jobs->by_seq.end()) return not_found("no job \"", filter.job, "\". `tuner jobs` lists them");
    only_job = found->first;
  }
  std::map<int64_t, JobRow::Task> tasks;  // by id, filled as met

  if (filter.own) {
    // One range of trial numbers after the other; the last number is read first, so that rows written
    // meanwhile do not prolong the walk.
    Result<int64_t> last = sqlite->read([](Connection& c) -> Result<int64_t> {
      ASSIGN_OR_RETURN(const SqlRow row, c.one("SELECT max(seq) FROM trial"));
      const auto* value = row.empty() ? nullptr : std::get_if<int64_t>(&row[0]);
      return value != nullptr ? *value : 0;
    });
    if (!last) return last.status();
    for (int64_t after = 0; after < *last;) {
      std::vector<ExchangeRow> page;
      const Status read = sqlite->read([&](Connection& c) -> Status {
        // The end of this page: numbers have gaps, so by counting trials.
        ASSIGN_OR_RETURN(
            const SqlRow end,
            only_job != 0 ? c.one("SELECT max(seq) FROM (SELECT seq FROM trial WHERE job_seq = ? AND seq > ? "
                                  "ORDER BY seq LIMIT ?)",
                                  {only_job, after, kPage})
                          : c.one("SELECT max(seq) FROM (SELECT seq FROM trial WHERE seq > ? ORDER BY seq "
                                  "LIMIT ?)",
                                  {after, kPage}));
        const auto* until = end.empty() ? nullptr : std::get_if<int64_t>(&end[0]);
        if (until == nullptr) {
          after = *last;
          return Status::ok();
        }
        ASSIGN_OR_RETURN(const std::vector<SqlRow> rows,
                         only_job != 0 ? c.all(kTrialRowsOfJob, {only_job, after, *until})
                                       : c.all(kTrialRowsOfAll, {after, *until}));
        after = *until;
        for (const SqlRow& row : rows) {
          ASSIGN_OR_RETURN(TrialOut out, trial_out(row));
          const auto job = jobs->by_seq.find(out.trial.job_seq);
          if (job == jobs->by_seq.end()) continue;  // a job submitted since
          if (!tasks.contains(out.trial.task_id)) {
            ASSIGN_OR_RETURN(StoredTask task, find_task_row(c, out.trial.task_id));
            tasks.emplace(out.trial.task_id, std::move(task.task));
          }
          ExchangedTrial trial{.job_uid = job->second.uid, .home_seq = out.home_seq};
          trial.trial = std::move(out.trial.trial);
          trial.trial.job_id = job->second.home_id;
          trial.task = tasks.at(out.trial.task_id);
          const auto index = static_cast<size_t>(trial.trial.task_index);
          if (index < job->second.stored.job.tasks.size())
            trial.task.algorithms = job->second.stored.job.tasks[index].algorithms;
          if (!wants_task(filter, trial.task)) continue;
          if (out.record) {
            if (out.record->record.finished_at_us < filter.since_us) continue;
            trial.terminal = out.record->terminal;
            trial.record = std::move(out.record->record);
          } else if (filter.since_us > 0) {
            continue;
          }
          if (!job->second.told) {
            page.emplace_back(exchanged(job->second));
            job->second.told = true;
          }
          page.emplace_back(std::move(trial));
        }
        return Status::ok();
      });
      if (!read) return read;
      for (const ExchangeRow& row : page)
        if (!f(row)) return Status::ok();
    }
    for (auto& [seq, job] : jobs->by_seq) {
      if (only_job != 0 && seq != only_job) continue;
      // A job without a trial belongs to everything, not to a choice of records.
      if (!job.told && filter.since_us == 0 &&
          std::ranges::any_of(job.stored.job.tasks,
                              [&](const auto& task) { return wants_task(filter, task); })) {
        job.told = true;
        if (!f(ExchangeRow(exchanged(job)))) return Status::ok();
      }
      if (!job.told) continue;
      std::vector<ExchangedRace> races;
      const int64_t job_seq = seq;
      const JobOut& from = job;
      const Status read = sqlite->read([&](Connection& c) -> Status {
        ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kRacesOfJob, {job_seq}));
        for (const SqlRow& row : rows) {
          ASSIGN_OR_RETURN(StoredRace stored, race_from_row(row));
          ASSIGN_OR_RETURN(const StoredTask task, find_task_row(c, stored.task_id));
          if (!wants_task(filter, task.task) || stored.race.finished_at_us < filter.since_us) continue;
          ExchangedRace out{from.uid, {}, task.task};
          const auto index = static_cast<size_t>(stored.race.task_index);
          if (index < from.stored.job.tasks.size())
            out.task.algorithms = from.stored.job.tasks[index].algorithms;
          ASSIGN_OR_RETURN(out.race, at_home(c, std::move(stored.race)));
          out.race.job_id = from.home_id;
          races.push_back(std::move(out));
        }
        return Status::ok();
      });
      if (!read) return read;
      for (ExchangedRace& race : races)
        if (!f(ExchangeRow(std::move(race)))) return Status::ok();
    }
  }

  if (!filter.foreign || only_job != 0) return Status::ok();
  std::map<int64_t, StoredForeignTask> foreign_tasks;
  std::map<int64_t, Origin> origins;
  for (int64_t after = 0;;) {
    std::vector<ForeignRecord> page;
    size_t rows_read = 0;
    const Status read = sqlite->read([&](Connection& c) -> Status {
      ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kForeignRows, {after, kPage}));
      rows_read = rows.size();
      for (const SqlRow& row : rows) {
        ASSIGN_OR_RETURN(StoredForeignRecord stored, foreign_record_from_row(row));
        after = stored.foreign_id;
        if (!foreign_tasks.contains(stored.foreign_task_id)) {
          ASSIGN_OR_RETURN(const SqlRow task, c.one("SELECT * FROM foreign_task WHERE foreign_task_id = ?",
                                                    {stored.foreign_task_id}));
          if (task.empty())
            return failed("row ", stored.foreign_task_id,
                          " of table foreign_task is missing: the file is damaged");
          ASSIGN_OR_RETURN(foreign_tasks[stored.foreign_task_id], foreign_task_from_row(task));
        }
        if (!origins.contains(stored.origin_id)) {
          ASSIGN_OR_RETURN(const SqlRow origin,
                           c.one("SELECT * FROM origin WHERE origin_id = ?", {stored.origin_id}));
          if (origin.empty())
            return failed("row ", stored.origin_id, " of table origin is missing: the file is damaged");
          ASSIGN_OR_RETURN(StoredOrigin found, origin_from_row(origin));
          origins[stored.origin_id] = std::move(found.origin);
        }
        const StoredForeignTask& task = foreign_tasks.at(stored.foreign_task_id);
        ForeignRecord& record = stored.record;
        record.format = task.format;
        record.task = task.task;
        record.target = task.target;
        if (record.finished_at_us < filter.since_us) continue;
        if (filter.foreign_task && !filter.foreign_task(record)) continue;
        record.origin = origins.at(stored.origin_id);
        page.push_back(std::move(record));
      }
      return Status::ok();
    });
    if (!read) return read;
    for (ForeignRecord& record : page)
      if (!f(ExchangeRow(std::move(record)))) return Status::ok();
    if (rows_read < static_cast<size_t>(kPage)) return Status::ok();
  }
}

Status copy_database(const std::string& from, const std::string& to) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> checked, Store::open(from, Store::Mode::kRead));
  std::error_code error;
  if (std::filesystem::exists(to, error)) return invalid_argument(to, ": is there already");
  const std::string temporary = to + ".part";
  std::filesystem::remove(temporary, error);
  ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection,
                   Connection::open(from, Connection::Access::kReadOnly));
  const Status copied = connection->run("VACUUM INTO ?", {temporary});
  if (!copied) {
    std::filesystem::remove(temporary, error);
    return copied;
  }
  std::filesystem::rename(temporary, to, error);
  if (error) return failed(to, ": cannot be made: ", error.message());
  return Status::ok();
}

}  // namespace tuner
