// Measure records: stored once, read with their trials.
#include <algorithm>
#include <cmath>
#include <limits>

#include "db/plausible.h"
#include "db/record_fields.h"
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

namespace {

// Holds every number against what the description says of it. Options are only told apart from no numbers at
// all: records of other programs may hold any.
class NumberCheck {
 public:
  explicit NumberCheck(const MeasureRecord& record) : record_(record) {}
  void operator()(const Field& f, double v) {
    if (f.rule == Rule::kError) return;  // storable() makes a number of it
    if (!std::isfinite(v) || (f.rule != Rule::kFinite && v < 0))
      refuse(f.name, " is ", v, ", expected a finite number", f.rule == Rule::kFinite ? "" : " >= 0");
  }
  void operator()(const Field& f, int v) {
    if (v < f.least || v > f.most)
      refuse(f.name, " is ", v, ", expected an integer from ", f.least, " to ", f.most);
  }
  void operator()(const Field& f, const std::vector<double>& values) {
    for (const double v : values) {
      if (f.rule != Rule::kCallTime)
        (*this)(f, v);
      else if (!is_plausible_call(v))
        refuse(f.name, " has ", v, ", expected ", kPlausibleCall);
    }
  }
  void operator()(const Field&, bool) {}
  void operator()(const Field&, const std::string&) {}
  void operator()(const Field&, Outcome) {}
  template <class Get>
  void derived(const Field&, const Get&) {}
  void time(const Field&, int64_t) {}
  template <class Part>
  void part(const char*, const Part& p) {
    describe(p, *this);
  }
  void object(const Field&, const MeasureOptions& o) {
    FiniteOnly only{*this};
    describe(o, only);
  }
  const Status& status() const { return status_; }

 private:
  struct FiniteOnly {
    NumberCheck& check;
    void operator()(const Field& f, double v) const {
      if (!std::isfinite(v)) check.refuse("options hold ", v, " as ", f.name, ", expected a finite number");
    }
    void operator()(const Field&, int) const {}
    void operator()(const Field&, int64_t) const {}
    void operator()(const Field&, Constants) const {}
  };
  template <class... Args>
  void refuse(const Args&... args) {
    if (status_) status_ = invalid_argument("record of trial ", record_.trial_id, ": ", args...);
  }
  const MeasureRecord& record_;
  Status status_;
};

}  // namespace

Status check_numbers(const MeasureRecord& r) {
  NumberCheck check(r);
  describe(r, check);
  RETURN_IF_ERROR(check.status());
  if (r.outcome == Outcome::kOk && r.run_ns.empty())
    return invalid_argument("record of trial ", r.trial_id, ": outcome ok without a sample");
  return Status::ok();
}

namespace {

// The error of an answer with a NaN in it is not a number SQLite keeps; it stands for "as wrong as can be".
MeasureRecord storable(MeasureRecord r) {
  if (!std::isfinite(r.max_error)) r.max_error = std::numeric_limits<double>::max();
  return r;
}

}  // namespace

// The row without what the database adds, to recognise a record that comes again.
bool same_content(StoredRecord a, StoredRecord b) {
  a.record_id = b.record_id = 0;
  a.terminal = b.terminal = true;
  return to_row(a) == to_row(b);
}

Status insert_record(Connection& connection, const StoredRecord& record) {
  static const std::string kInsert =
      str("INSERT INTO record (", record_columns(), ") VALUES (", placeholders(record_columns()), ")");
  return connection.run(kInsert, to_row(record));
}

Result<std::vector<StoredRecord>> records_of(Connection& connection, int64_t seq) {
  ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, connection.all(kRecordsOfTrial, {seq}));
  std::vector<StoredRecord> records;
  for (const SqlRow& row : rows) {
    ASSIGN_OR_RETURN(StoredRecord record, record_from_row(row));
    records.push_back(std::move(record));
  }
  return records;
}

Status SqliteStore::add_records(const std::vector<MeasureRecord>& records) {
  for (const MeasureRecord& record : records) RETURN_IF_ERROR(check_numbers(record));
  return write([&](Connection& c) -> Status {
    for (const MeasureRecord& record : records) {
      ASSIGN_OR_RETURN(const int64_t seq, trial_seq(record.trial_id));
      ASSIGN_OR_RETURN(StoredTrial trial, find_trial_row(c, seq));
      StoredRecord stored{.trial_seq = seq, .task_id = trial.task_id, .record = storable(record)};
      ASSIGN_OR_RETURN(const std::vector<StoredRecord> known, records_of(c, seq));
      if (std::ranges::any_of(known, [&](const StoredRecord& k) { return same_content(k, stored); }))
        continue;
      stored.record_id = next_seq();
      stored.terminal = trial.trial.state == TrialState::kQueued || trial.trial.state == TrialState::kLeased;
      RETURN_IF_ERROR(insert_record(c, stored));
      if (!stored.terminal) continue;
      trial.trial.state = TrialState::kDone;
      RETURN_IF_ERROR(save_trial(c, trial));
    }
    return Status::ok();
  });
}

Result<const std::string*> Owners::job_id(Connection& connection, int64_t job_seq) {
  const auto known = jobs_.find(job_seq);
  if (known != jobs_.end()) return &known->second;
  ASSIGN_OR_RETURN(const SqlRow row, connection.one(kJobBySeq, {job_seq}));
  if (row.empty()) return failed("row ", job_seq, " of table job is missing: the file is damaged");
  ASSIGN_OR_RETURN(const StoredJob job, job_from_row(row));
  return &jobs_.emplace(job_seq, job.job.id).first->second;
}

Result<const JobRow::Task*> Owners::task(Connection& connection, int64_t task_id) {
  const auto known = tasks_.find(task_id);
  if (known != tasks_.end()) return &known->second;
  ASSIGN_OR_RETURN(StoredTask task, find_task_row(connection, task_id));
  return &tasks_.emplace(task_id, std::move(task.task)).first->second;
}

Result<TrialWithRecord> with_record(Connection& connection, StoredTrial stored) {
  Owners owners;
  return with_record(connection, std::move(stored), owners);
}

Result<TrialWithRecord> with_record(Connection& connection, StoredTrial stored, Owners& owners) {
  TrialWithRecord out{.trial = std::move(stored.trial)};
  ASSIGN_OR_RETURN(const std::string* const job_id, owners.job_id(connection, stored.job_seq));
  out.trial.job_id = *job_id;
  ASSIGN_OR_RETURN(const JobRow::Task* const task, owners.task(connection, stored.task_id));
  out.task = *task;
  ASSIGN_OR_RETURN(const SqlRow record_row, connection.one(kTerminalRecord, {out.trial.seq}));
  if (!record_row.empty()) {
    ASSIGN_OR_RETURN(StoredRecord record, record_from_row(record_row));
    out.record = std::move(record.record);
    out.record_id = record.record_id;
  }
  return out;
}

Result<std::vector<MeasureRecord>> SqliteStore::records(std::string_view trial_id) const {
  ASSIGN_OR_RETURN(const int64_t seq, trial_seq(trial_id));
  return read([&](Connection& c) -> Result<std::vector<MeasureRecord>> {
    ASSIGN_OR_RETURN(const StoredTrial stored, find_trial_row(c, seq));
    ASSIGN_OR_RETURN(std::vector<StoredRecord> found, records_of(c, stored.trial.seq));
    std::vector<MeasureRecord> out;
    out.reserve(found.size());
    for (StoredRecord& record : found) out.push_back(std::move(record.record));
    return out;
  });
}

namespace {

// By what people call it: "j3.17".
Result<StoredTrial> named_trial(Connection& c, const std::string& name, const TrialName& parts) {
  ASSIGN_OR_RETURN(const StoredJob job, find_job_row(c, parts.job_id));
  ASSIGN_OR_RETURN(const SqlRow row, c.one(kTrialByNumber, {job.job_seq, parts.number - 1}));
  if (!row.empty()) return trial_from_row(row);
  ASSIGN_OR_RETURN(const SqlRow all, c.one(kTrialsOfJobUpTo, {job.job_seq, INT64_MAX}));
  return not_found("no trial \"", name, "\": job ", parts.job_id, " has ", std::get<int64_t>(all.at(0)),
                   " trials");
}

Result<int64_t> trials_up_to(Connection& c, int64_t job_seq, int64_t seq) {
  ASSIGN_OR_RETURN(const SqlRow row, c.one(kTrialsOfJobUpTo, {job_seq, seq}));
  return std::get<int64_t>(row.at(0));
}

Result<std::vector<StoredTrial>> stored_trials(Connection& c, const TrialQuery& query) {
  std::vector<StoredTrial> out;
  for (const std::string& id : query.ids) {
    StoredTrial& trial = out.emplace_back();
    if (const std::optional<TrialName> parts = trial_name_parts(id)) {
      ASSIGN_OR_RETURN(trial, named_trial(c, id, *parts));
      trial.trial.number = parts->number;
    } else {
      ASSIGN_OR_RETURN(const int64_t seq, trial_seq(id));
      ASSIGN_OR_RETURN(trial, find_trial_row(c, seq));
      if (!query.numbered) continue;
      ASSIGN_OR_RETURN(trial.trial.number, trials_up_to(c, trial.job_seq, trial.trial.seq));
    }
  }
  if (!query.ids.empty()) return out;
  const int64_t limit = query.limit > 0 ? query.limit : -1;
  std::vector<SqlRow> rows;
  if (query.job.empty()) {
    ASSIGN_OR_RETURN(rows, c.all(kTrialsOfAll, {query.after, limit}));
  } else {
    ASSIGN_OR_RETURN(const StoredJob job, find_job_row(c, query.job));
    ASSIGN_OR_RETURN(rows,
                     c.all(query.open ? kOpenTrialsOfJob : kTrialsOfJob, {job.job_seq, query.after, limit}));
  }
  for (const SqlRow& row : rows) {
    ASSIGN_OR_RETURN(out.emplace_back(), trial_from_row(row));
  }
  if (!query.numbered || query.job.empty() || query.open || out.empty()) return out;
  ASSIGN_OR_RETURN(int64_t number, trials_up_to(c, out.front().job_seq, query.after));
  for (StoredTrial& trial : out) trial.trial.number = ++number;
  return out;
}

}  // namespace

Result<std::vector<TrialWithRecord>> SqliteStore::trials(const TrialQuery& query) const {
  return read([&](Connection& c) -> Result<std::vector<TrialWithRecord>> {
    ASSIGN_OR_RETURN(std::vector<StoredTrial> stored, stored_trials(c, query));
    std::vector<TrialWithRecord> out;
    out.reserve(stored.size());
    Owners owners;
    for (StoredTrial& trial : stored) {
      ASSIGN_OR_RETURN(out.emplace_back(), with_record(c, std::move(trial), owners));
    }
    return out;
  });
}

Result<std::vector<ObservedRecord>> SqliteStore::records_after(std::string_view job_id, int64_t after,
                                                               int64_t most) const {
  // The writer numbers records in the order it commits them, so a snapshot holds all up to its largest
  // number.
  return read([&](Connection& c) -> Result<std::vector<ObservedRecord>> {
    ASSIGN_OR_RETURN(const StoredJob job, find_job_row(c, job_id));
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kRecordsAfter, {after, job.job_seq, most}));
    std::vector<ObservedRecord> out;
    for (const SqlRow& row : rows) {
      ASSIGN_OR_RETURN(StoredRecord stored, record_from_row(row));
      out.push_back({stored.record_id, std::move(stored.record)});
    }
    return out;
  });
}

Result<int64_t> SqliteStore::last_record_id() const {
  return read([&](Connection& c) -> Result<int64_t> {
    ASSIGN_OR_RETURN(const SqlRow row, c.one("SELECT max(record_id) FROM record"));
    const auto* last = row.empty() ? nullptr : std::get_if<int64_t>(&row[0]);
    return last != nullptr ? *last : 0;
  });
}

}  // namespace tuner::db
