// Rows that go elsewhere, with names that mean the same there.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "compiler_core/base/output_file.h"
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

namespace {

// Rows read in one snapshot: a long reader would hold up the checkpoints of the writer.
constexpr int64_t kPage = 512;
using Sink = std::function<bool(const ExchangeRow&)>;
constexpr size_t kTrialWidth = 15;  // columns of the table
constexpr size_t kDigest = 64;      // characters

struct JobOut {
  StoredJob stored;
  std::string uid, home_id;
  bool told = false;  // `f` has seen it
};

bool is_null(const SqlValue& value) { return std::holds_alternative<std::monostate>(value); }

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
    ASSIGN_OR_RETURN(StoredRecord record, record_from_row(part(kTrialWidth, record_width())));
    out.record = std::move(record);
  }
  const size_t imported = kTrialWidth + record_width();
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
  if (!race.stored_trial_id.empty()) RETURN_IF_ERROR(rename(race.stored_trial_id));
  return race;
}

ExchangedJob exchanged(const JobOut& job) {
  ExchangedJob out{job.uid, job.stored.job};
  out.job.id = job.home_id;
  return out;
}

// A job whose row cannot be trusted, for the sake of its trials. Its uid is the same in every export: it has
// the checksum that was stored with the row.
JobOut job_of_damaged(const SqlRow& row, int64_t job_seq) {
  const auto* checksum = std::get_if<int64_t>(&row.back());
  return {.stored = {.job_seq = job_seq, .job = {}},
          .uid = str("damaged-", job_seq, "-", checksum != nullptr ? *checksum : 0),
          .home_id = str("j", job_seq),
          .told = true};
}

// One walk over a database. Rows are read in pages, each in a snapshot of its own.
class ExchangeWalk {
 public:
  ExchangeWalk(const SqliteStore& store, const ExchangeFilter& filter, const Sink& sink)
      : store_(store), filter_(filter), sink_(sink) {}

  Status run() {
    RETURN_IF_ERROR(store_.read([&](Connection& c) { return read_jobs(c); }));
    if (!filter_.job.empty()) RETURN_IF_ERROR(choose_job());
    if (filter_.own) RETURN_IF_ERROR(walk_kernels());
    if (filter_.own) RETURN_IF_ERROR(walk_trials());
    if (filter_.own) RETURN_IF_ERROR(walk_races());
    if (filter_.foreign && only_job_ == 0) RETURN_IF_ERROR(walk_foreign());
    return Status::ok();
  }

 private:
  // OK when the row may be left out, since somebody is told of it.
  Status leave_out(const Status& damage) {
    if (!filter_.damaged) return damage;
    filter_.damaged(damage.message());
    return Status::ok();
  }
  // False: nobody wants more.
  bool give(const ExchangeRow& row) { return ended_ ? false : !(ended_ = !sink_(row)); }

  // Jobs are few: read once.
  Status read_jobs(Connection& c) {
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all("SELECT * FROM job ORDER BY job_seq"));
    for (const SqlRow& row : rows) {
      Result<StoredJob> job = job_from_row(row);
      if (!job) {
        RETURN_IF_ERROR(leave_out(job.status()));
        const auto* seq = std::get_if<int64_t>(&row.at(0));  // the table's key, kept outside the row
        if (seq != nullptr) jobs_.emplace(*seq, job_of_damaged(row, *seq));
        continue;
      }
      JobOut out{.stored = *std::move(job), .uid = {}, .home_id = {}};
      out.uid = job_uid(out.stored.job);
      out.home_id = out.stored.job.id;
      jobs_.emplace(out.stored.job_seq, std::move(out));
    }
    ASSIGN_OR_RETURN(const std::vector<SqlRow> imported, c.all("SELECT * FROM imported_job"));
    for (const SqlRow& row : imported) {
      const Result<StoredImportedJob> job = imported_job_from_row(row);
      if (!job) {
        RETURN_IF_ERROR(leave_out(job.status()));
        continue;
      }
      const auto found = jobs_.find(job->job_seq);
      if (found == jobs_.end()) continue;  // newer than this snapshot's first read
      found->second.uid = job->uid;
      found->second.home_id = job->home_id;
    }
    return Status::ok();
  }

  Status choose_job() {
    const auto found = std::ranges::find_if(
        jobs_, [&](const auto& entry) { return entry.second.stored.job.id == filter_.job; });
    if (found == jobs_.end()) return not_found("no job \"", filter_.job, "\". `tuner jobs` lists them");
    only_job_ = found->first;
    return Status::ok();
  }

  // Those that a key ends with. Jobs name every task that has a trial.
  Status walk_kernels() {
    std::set<std::string, std::less<>> keys_end;
    for (const auto& [seq, job] : jobs_)
      for (const JobRow::Task& task : job.stored.job.tasks)
        if ((only_job_ == 0 || seq == only_job_) && wants_task(filter_, task))
          keys_end.insert(
              task.workload_key.substr(std::max<size_t>(task.workload_key.size(), kDigest) - kDigest));
    Status lost;
    const auto damaged = [&](const Status& damage) {
      if (lost) lost = leave_out(damage);
    };
    RETURN_IF_ERROR(store_.for_each_kernel(
        [&](const KernelRow& kernel) {
          return lost.is_ok() && (!keys_end.contains(kernel.digest) || give(kernel));
        },
        damaged));
    return lost;
  }

  // One range of trial numbers after the other; the last number is read first, so that rows written meanwhile
  // do not prolong the walk.
  Status walk_trials() {
    ASSIGN_OR_RETURN(const int64_t last, store_.read([](Connection& c) -> Result<int64_t> {
      ASSIGN_OR_RETURN(const SqlRow row, c.one("SELECT max(seq) FROM trial"));
      const auto* value = row.empty() ? nullptr : std::get_if<int64_t>(&row[0]);
      return value != nullptr ? *value : 0;
    }));
    for (int64_t after = 0; after < last && !ended_;) {
      std::vector<ExchangeRow> page;
      RETURN_IF_ERROR(store_.read([&](Connection& c) { return trial_page(c, after, last, page); }));
      for (const ExchangeRow& row : page)
        if (!give(row)) break;
    }
    return Status::ok();
  }

  Status trial_page(Connection& c, int64_t& after, int64_t last, std::vector<ExchangeRow>& page) {
    // The end of this page: numbers have gaps, so by counting trials.
    ASSIGN_OR_RETURN(const SqlRow end,
                     only_job_ != 0
                         ? c.one("SELECT max(seq) FROM (SELECT seq FROM trial WHERE job_seq = ? AND seq > ? "
                                 "ORDER BY seq LIMIT ?)",
                                 {only_job_, after, kPage})
                         : c.one("SELECT max(seq) FROM (SELECT seq FROM trial WHERE seq > ? ORDER BY seq "
                                 "LIMIT ?)",
                                 {after, kPage}));
    const auto* until = end.empty() ? nullptr : std::get_if<int64_t>(&end[0]);
    if (until == nullptr) {
      after = last;
      return Status::ok();
    }
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, only_job_ != 0
                                                         ? c.all(kTrialRowsOfJob, {only_job_, after, *until})
                                                         : c.all(kTrialRowsOfAll, {after, *until}));
    after = *until;
    for (const SqlRow& row : rows) {
      const Status added = add_trial(c, row, page);
      if (!added && c.broken()) return added;
      if (!added) RETURN_IF_ERROR(leave_out(added));
    }
    return Status::ok();
  }

  Status add_trial(Connection& c, const SqlRow& row, std::vector<ExchangeRow>& page) {
    ASSIGN_OR_RETURN(TrialOut out, trial_out(row));
    const auto found = jobs_.find(out.trial.job_seq);
    if (found == jobs_.end()) return Status::ok();  // a job submitted since
    JobOut& job = found->second;
    ASSIGN_OR_RETURN(const JobRow::Task* task, task_of(c, out.trial.task_id));
    ExchangedTrial trial{.job_uid = job.uid, .home_seq = out.home_seq};
    trial.trial = std::move(out.trial.trial);
    trial.trial.job_id = job.home_id;
    trial.task = *task;
    trial.task.algorithms = algorithms_of(job, trial.trial.task_index);
    if (!wants_task(filter_, trial.task)) return Status::ok();
    if (out.record) {
      if (out.record->record.finished_at_us < filter_.since_us) return Status::ok();
      trial.terminal = out.record->terminal;
      trial.record = std::move(out.record->record);
    } else if (filter_.since_us > 0) {
      return Status::ok();
    }
    if (!job.told) page.emplace_back(exchanged(job));
    job.told = true;
    page.emplace_back(std::move(trial));
    return Status::ok();
  }

  static std::string algorithms_of(const JobOut& job, int task_index) {
    const auto index = static_cast<size_t>(task_index);
    return index < job.stored.job.tasks.size() ? job.stored.job.tasks[index].algorithms : "";
  }

  Result<const JobRow::Task*> task_of(Connection& c, int64_t task_id) {
    if (!tasks_.contains(task_id)) {
      ASSIGN_OR_RETURN(StoredTask task, find_task_row(c, task_id));
      tasks_.emplace(task_id, std::move(task.task));
    }
    return &tasks_.at(task_id);
  }

  // And jobs that have no trial.
  Status walk_races() {
    for (auto& [seq, job] : jobs_) {
      if (ended_ || (only_job_ != 0 && seq != only_job_)) continue;
      // A job without a trial belongs to everything, not to a choice of records.
      if (!job.told && filter_.since_us == 0 &&
          std::ranges::any_of(job.stored.job.tasks,
                              [&](const auto& task) { return wants_task(filter_, task); })) {
        job.told = true;
        if (!give(exchanged(job))) return Status::ok();
      }
      if (!job.told) continue;
      std::vector<ExchangeRow> races;
      RETURN_IF_ERROR(store_.read([&, job_seq = seq, &from = job](Connection& c) -> Status {
        ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kRacesOfJob, {job_seq}));
        for (const SqlRow& row : rows) {
          const Status added = add_race(c, row, from, races);
          if (!added && c.broken()) return added;
          if (!added) RETURN_IF_ERROR(leave_out(added));
        }
        return Status::ok();
      }));
      for (const ExchangeRow& race : races)
        if (!give(race)) break;
    }
    return Status::ok();
  }

  Status add_race(Connection& c, const SqlRow& row, const JobOut& from, std::vector<ExchangeRow>& races) {
    ASSIGN_OR_RETURN(StoredRace stored, race_from_row(row));
    ASSIGN_OR_RETURN(const JobRow::Task* task, task_of(c, stored.task_id));
    if (!wants_task(filter_, *task) || stored.race.finished_at_us < filter_.since_us) return Status::ok();
    ExchangedRace out{from.uid, {}, *task};
    out.task.algorithms = algorithms_of(from, stored.race.task_index);
    ASSIGN_OR_RETURN(out.race, at_home(c, std::move(stored.race)));
    out.race.job_id = from.home_id;
    races.emplace_back(std::move(out));
    return Status::ok();
  }

  Status walk_foreign() {
    size_t rows_read = static_cast<size_t>(kPage);
    for (int64_t after = 0; rows_read == static_cast<size_t>(kPage) && !ended_;) {
      std::vector<ExchangeRow> page;
      RETURN_IF_ERROR(store_.read([&](Connection& c) -> Status {
        ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kForeignRows, {after, kPage}));
        rows_read = rows.size();
        for (const SqlRow& row : rows) {
          if (const auto* id = std::get_if<int64_t>(&row.at(0))) after = *id;
          const Status added = add_foreign(c, row, page);
          if (!added && c.broken()) return added;
          if (!added) RETURN_IF_ERROR(leave_out(added));
        }
        return Status::ok();
      }));
      for (const ExchangeRow& record : page)
        if (!give(record)) break;
    }
    return Status::ok();
  }

  Status add_foreign(Connection& c, const SqlRow& row, std::vector<ExchangeRow>& page) {
    ASSIGN_OR_RETURN(StoredForeignRecord stored, foreign_record_from_row(row));
    RETURN_IF_ERROR(read_foreign_task(c, stored.foreign_task_id));
    const StoredForeignTask& task = foreign_tasks_.at(stored.foreign_task_id);
    ForeignRecord& record = stored.record;
    record.format = task.format;
    record.task = task.task;
    record.target = task.target;
    if (record.finished_at_us < filter_.since_us) return Status::ok();
    if (filter_.foreign_task && !filter_.foreign_task(record)) return Status::ok();
    RETURN_IF_ERROR(read_origin(c, stored.origin_id));
    record.origin = origins_.at(stored.origin_id);
    page.emplace_back(std::move(record));
    return Status::ok();
  }

  Status read_foreign_task(Connection& c, int64_t id) {
    if (foreign_tasks_.contains(id)) return Status::ok();
    ASSIGN_OR_RETURN(const SqlRow row, c.one("SELECT * FROM foreign_task WHERE foreign_task_id = ?", {id}));
    if (row.empty()) return failed("row ", id, " of table foreign_task is missing: the file is damaged");
    ASSIGN_OR_RETURN(StoredForeignTask task, foreign_task_from_row(row));
    foreign_tasks_.emplace(id, std::move(task));
    return Status::ok();
  }

  Status read_origin(Connection& c, int64_t id) {
    if (origins_.contains(id)) return Status::ok();
    ASSIGN_OR_RETURN(const SqlRow row, c.one("SELECT * FROM origin WHERE origin_id = ?", {id}));
    if (row.empty()) return failed("row ", id, " of table origin is missing: the file is damaged");
    ASSIGN_OR_RETURN(StoredOrigin origin, origin_from_row(row));
    origins_.emplace(id, std::move(origin.origin));
    return Status::ok();
  }

  const SqliteStore& store_;
  const ExchangeFilter& filter_;
  const Sink& sink_;
  std::map<int64_t, JobOut> jobs_;  // by their number in this file
  int64_t only_job_ = 0;            // 0: all
  std::map<int64_t, JobRow::Task> tasks_;
  std::map<int64_t, StoredForeignTask> foreign_tasks_;
  std::map<int64_t, Origin> origins_;
  bool ended_ = false;
};

}  // namespace

Status SqliteStore::for_each_row(const ExchangeFilter& filter,
                                 const std::function<bool(const ExchangeRow&)>& f) const {
  return ExchangeWalk(*this, filter, f).run();
}

Status copy_file_database(const std::string& from, const std::string& to) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> checked, Store::open(from, Store::Mode::kRead));
  ASSIGN_OR_RETURN(const std::string place, follow_links(to));
  std::error_code error;
  if (std::filesystem::exists(place, error)) return invalid_argument(to, ": is there already");
  const std::string temporary = place + ".part";
  std::filesystem::remove(temporary, error);
  ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection,
                   Connection::open(from, Connection::Access::kReadOnly));
  const Status copied = connection->run("VACUUM INTO ?", {temporary});
  if (!copied) {
    std::filesystem::remove(temporary, error);
    return copied.with_context(to + ", a copy of ");  // the message names the source
  }
  std::filesystem::rename(temporary, place, error);
  if (error) return failed(to, ": cannot be made: ", error.message());
  return Status::ok();
}

}  // namespace tuner::db
