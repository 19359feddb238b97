// Rows that come from elsewhere: recognised or stored.
#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

#include "compiler_core/base/clock.h"
#include "db/exchange/identity.h"
#include "db/plausible.h"
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

namespace {

// Search of a job whose row was missing where its trials came from.
constexpr char kUnknownSearch[] = "unknown";

template <class Row>
Status insert(Connection& c, std::string_view table, std::string_view columns, const Row& row) {
  return c.run(str("INSERT INTO ", table, " (", columns, ") VALUES (", placeholders(columns), ")"),
               to_row(row));
}

ImportedRow known() { return {ImportedRow::Fate::kKnown, ""}; }
ImportedRow refused(std::string why) { return {ImportedRow::Fate::kRefused, std::move(why)}; }

class SqliteImporter final : public Importer {
 public:
  SqliteImporter(SqliteStore& store, Origin origin) : store_(store), origin_(std::move(origin)) {}

  Result<std::vector<ImportedRow>> add(const std::vector<ExchangeRow>& rows) override {
    if (broken_) return failed("an import that failed cannot go on");
    std::vector<ImportedRow> fates;
    const Status written = store_.write([&](Connection& c) -> Status {
      fates.clear();
      connection_ = &c;
      RETURN_IF_ERROR(prepare());
      for (const ExchangeRow& row : rows) {
        ASSIGN_OR_RETURN(ImportedRow fate, std::visit([&](const auto& r) { return take(r); }, row));
        fates.push_back(std::move(fate));
      }
      return Status::ok();
    });
    broken_ = !written;
    if (!written) return written;
    return fates;
  }

 private:
  struct JobHere {
    StoredJob stored;
    bool imported = false;
    // Of a job that import made of a pack: its trials by content.
    std::optional<std::unordered_map<int64_t, int64_t>> by_content;
    // The trials that this import told of: number at home, number here. Two copies of a job that both went on
    // have given one number to two trials, and a race means that of its own file.
    std::vector<std::pair<int64_t, int64_t>> told;
  };

  Connection& c() { return *connection_; }
  int64_t next_seq() { return store_.next_seq(); }

  // Once: the jobs of this file by uid. They are few.
  Status prepare() {
    if (prepared_) return Status::ok();
    // Foreign records come in the order of their digests, that is in none: an index of many pages is written
    // to.
    RETURN_IF_ERROR(c().exec("PRAGMA cache_size = -131072"));
    ASSIGN_OR_RETURN(const std::vector<SqlRow> imported, c().all("SELECT * FROM imported_job"));
    std::map<int64_t, std::string> uids;
    for (const SqlRow& row : imported) {
      ASSIGN_OR_RETURN(const StoredImportedJob job, imported_job_from_row(row));
      uids[job.job_seq] = job.uid;
    }
    ASSIGN_OR_RETURN(const std::vector<SqlRow> jobs, c().all("SELECT * FROM job"));
    for (const SqlRow& row : jobs) {
      ASSIGN_OR_RETURN(StoredJob job, job_from_row(row));
      const auto uid = uids.find(job.job_seq);
      const bool is_imported = uid != uids.end();
      std::string key = is_imported ? uid->second : job_uid(job.job);
      jobs_.emplace(std::move(key), JobHere{std::move(job), is_imported, {}, {}});
    }
    prepared_ = true;
    return Status::ok();
  }

  // The row of where things came from, made with the first new thing.
  Result<int64_t> origin_id() {
    if (origin_id_ == 0) {
      const int64_t id = next_seq();
      if (origin_.imported_at_us == 0) origin_.imported_at_us = wall_time_us();
      RETURN_IF_ERROR(insert(c(), "origin", kOriginColumns, StoredOrigin{id, origin_}));
      origin_id_ = id;
    }
    return origin_id_;
  }
  // Foreign records that come by way of another database keep the origin they had there.
  Result<int64_t> origin_id_of(const Origin& origin) {
    if (origin.source.empty() && origin.header.empty()) return origin_id();
    for (const auto& [known, id] : other_origins_)
      if (known == origin) return id;
    const int64_t id = next_seq();
    RETURN_IF_ERROR(insert(c(), "origin", kOriginColumns, StoredOrigin{id, origin}));
    other_origins_.emplace_back(origin, id);
    return id;
  }

  // --- jobs ---
  Result<JobHere*> insert_job(const std::string& uid, const JobRow& job) {
    JobHere here{.stored = {next_seq(), job}, .imported = true, .by_content = {}, .told = {}};
    JobRow& row = here.stored.job;
    close(row);
    const std::string suffix =
        str("-", uid.substr(uid.find('#') == std::string::npos ? 0 : uid.find('#') + 1));
    ASSIGN_OR_RETURN(const SqlRow same_id, c().one(kJobById, {row.id}));
    if (!same_id.empty() || row.id.empty()) row.id += suffix;
    ASSIGN_OR_RETURN(const SqlRow same_again, c().one(kJobById, {row.id}));
    if (!same_again.empty()) row.id = str("import-", here.stored.job_seq);
    if (!row.request_id.empty()) {
      ASSIGN_OR_RETURN(const SqlRow same_request, c().one(kJobByRequest, {row.request_id}));
      if (!same_request.empty()) row.request_id.clear();
    }
    RETURN_IF_ERROR(insert(c(), "job", kJobColumns, here.stored));
    ASSIGN_OR_RETURN(const int64_t origin, origin_id());
    RETURN_IF_ERROR(insert(c(), "imported_job", kImportedJobColumns,
                           StoredImportedJob{here.stored.job_seq, uid, job.id, origin}));
    return &jobs_.emplace(uid, std::move(here)).first->second;
  }

  // Nobody works on an imported job.
  static void close(JobRow& job) {
    if (job.state != JobState::kQueued && job.state != JobState::kRunning) return;
    job.message = str("was ", job_state_name(job.state), " where it came from",
                      job.message.empty() ? "" : ": ", job.message);
    job.state = JobState::kCancelled;
  }

  Status rewrite_job(const StoredJob& stored) {
    SqlRow row = to_row(stored);
    row.push_back(stored.job_seq);
    return c().run(
        "UPDATE job SET job_seq = ?, id = ?, request_id = ?, tasks = ?, trials = ?, search = ?, seed = ?, "
        "options = ?, state = ?, message = ?, submitted_at_us = ?, finished_at_us = ?, tenant = ?, crc = ? "
        "WHERE job_seq = ?",
        row);
  }

  Result<ImportedRow> take(const ExchangedJob& in) {
    if (in.uid.empty() || in.job.tasks.empty()) return refused("a job needs a job_uid and at least one task");
    const auto found = jobs_.find(in.uid);
    if (found == jobs_.end()) {
      ASSIGN_OR_RETURN(JobHere* const made, insert_job(in.uid, in.job));
      (void)made;
      return ImportedRow{};
    }
    JobHere& here = found->second;
    if (!here.imported) return known();
    // What the file tells more: the job went on at home, or its row was missing when its trials came.
    JobRow job = here.stored.job, told = in.job;
    close(told);
    const bool stub = job.search == kUnknownSearch && told.search != kUnknownSearch;
    if (!stub && told.trials <= job.trials && told.finished_at_us <= job.finished_at_us) return known();
    if (stub) {
      job.search = told.search;
      job.seed = told.seed;
      job.submitted_at_us = told.submitted_at_us;
      for (const JobRow::Task& task : told.tasks) {
        const int at = index_of(job, task, -1);
        if (at < 0)
          job.tasks.push_back(task);
        else
          job.tasks[static_cast<size_t>(at)] = task;
      }
    }
    job.trials = told.trials;
    job.options = told.options;
    job.stop = told.stop;
    job.state = told.state;
    job.message = told.message;
    job.finished_at_us = told.finished_at_us;
    here.stored.job = std::move(job);
    RETURN_IF_ERROR(rewrite_job(here.stored));
    return known();
  }

  Result<JobHere*> job_of(const ExchangedTrial& in) {
    const auto found = jobs_.find(in.job_uid);
    if (found != jobs_.end()) return &found->second;
    JobRow stub{.id = in.trial.job_id, .tasks = {in.task}, .search = kUnknownSearch};
    stub.state = JobState::kFinished;
    stub.message = "the row of this job was missing where its trials came from";
    if (in.record) stub.options = in.record->options;
    return insert_job(in.job_uid, stub);
  }

  // --- trials ---
  // The trial's seq here; 0: it is new.
  Result<int64_t> find_trial(JobHere& job, const ExchangedTrial& in, int64_t home, int64_t content) {
    const int64_t job_seq = job.stored.job_seq;
    if (!job.imported && job.stored.job.search == kPackImport) {
      if (!job.by_content) {
        job.by_content.emplace();
        for (int64_t after = 0;;) {
          constexpr int64_t kPage = 4096;
          ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c().all(kTrialsOfJob, {job_seq, after, kPage}));
          for (const SqlRow& row : rows) {
            ASSIGN_OR_RETURN(const StoredTrial trial, trial_from_row(row));
            after = trial.trial.seq;
            job.by_content->emplace(
                content_of(trial.trial, job.stored.job.tasks.at(static_cast<size_t>(trial.trial.task_index))),
                after);
          }
          if (static_cast<int64_t>(rows.size()) < kPage) break;
        }
      }
      const auto at = job.by_content->find(content);
      return at != job.by_content->end() ? at->second : 0;
    }
    if (!job.imported) {
      ASSIGN_OR_RETURN(const SqlRow row, c().one(kTrialBySeq, {home}));
      if (!row.empty()) {
        ASSIGN_OR_RETURN(const StoredTrial trial, trial_from_row(row));
        const TrialRow& t = trial.trial;
        if (trial.job_seq == job_seq && t.template_name == in.trial.template_name &&
            t.template_version == in.trial.template_version && t.config == in.trial.config)
          return t.seq;
      }
    }
    ASSIGN_OR_RETURN(const SqlRow row, c().one(kImportedTrial, {job_seq, home, content}));
    if (row.empty()) return 0;
    ASSIGN_OR_RETURN(const StoredImportedTrial trial, imported_trial_from_row(row));
    return trial.seq;
  }

  Result<int64_t> insert_trial(JobHere& job, const ExchangedTrial& in, int task_index, int64_t home,
                               int64_t content) {
    StoredTrial stored{.trial = in.trial, .job_seq = job.stored.job_seq};
    const std::pair key(job.stored.job_seq, task_index);
    const auto known_id = task_ids_.find(key);
    if (known_id != task_ids_.end()) {
      stored.task_id = known_id->second;
    } else {
      ASSIGN_OR_RETURN(stored.task_id, task_id_of(c(), in.task, [this] { return next_seq(); }));
      task_ids_.emplace(key, stored.task_id);
    }
    TrialRow& t = stored.trial;
    t.seq = next_seq();
    t.task_index = task_index;
    t.state = in.record && in.terminal ? TrialState::kDone : TrialState::kCancelled;
    static const std::string kInsert =
        str("INSERT INTO trial (", kTrialColumns, ") VALUES (", placeholders(kTrialColumns), ")");
    RETURN_IF_ERROR(c().run(kInsert, to_row(stored)));
    ASSIGN_OR_RETURN(const int64_t origin, origin_id());
    static const std::string kInsertImported = str("INSERT INTO imported_trial (", kImportedTrialColumns,
                                                   ") VALUES (", placeholders(kImportedTrialColumns), ")");
    RETURN_IF_ERROR(
        c().run(kInsertImported, to_row(StoredImportedTrial{t.seq, stored.job_seq, home, content, origin})));
    if (job.by_content) job.by_content->emplace(content, t.seq);
    if (!in.record) return t.seq;
    StoredRecord record{next_seq(), t.seq, stored.task_id, in.terminal, *in.record};
    RETURN_IF_ERROR(insert_record(c(), record));
    return t.seq;
  }

  // The record was pruned, and is back.
  Status take_out_of_pruned(const StoredTrial& trial, const StoredRecord& record) {
    return insert(c(), "pruned", kPrunedColumns,
                  PrunedRow{.pruned_id = next_seq(),
                            .job_seq = trial.job_seq,
                            .task_id = trial.task_id,
                            .outcome = std::string(outcome_name(record.record.outcome)),
                            .records = -1,
                            .closed = -1,
                            .run_ms = -record.record.run_ms,
                            .pruned_at_us = wall_time_us()});
  }

  // A record of a trial that is here: an extra sample, the terminal one when there is none yet, or known.
  Result<ImportedRow> add_record(int64_t seq, const ExchangedTrial& in) {
    ASSIGN_OR_RETURN(StoredTrial trial, find_trial_row(c(), seq));
    StoredRecord record{.trial_seq = seq, .task_id = trial.task_id, .record = *in.record};
    ASSIGN_OR_RETURN(const std::vector<StoredRecord> there, records_of(c(), seq));
    if (std::ranges::any_of(there, [&](const StoredRecord& r) { return same_content(r, record); }))
      return known();
    record.record_id = next_seq();
    record.terminal = in.terminal && std::ranges::none_of(there, &StoredRecord::terminal);
    RETURN_IF_ERROR(insert_record(c(), record));
    if (!record.terminal) return ImportedRow{};
    if (trial.trial.state == TrialState::kDone) RETURN_IF_ERROR(take_out_of_pruned(trial, record));
    trial.trial.state = TrialState::kDone;
    RETURN_IF_ERROR(save_trial(c(), trial));
    return ImportedRow{};
  }

  Result<ImportedRow> take(const ExchangedTrial& in) {
    if (in.job_uid.empty() || in.task.workload_key.empty() || in.task.target.empty())
      return refused("a trial needs a job_uid, a workload and a target");
    if (in.record)
      if (const Status numbers = check_numbers(*in.record); !numbers) return refused(numbers.message());
    ASSIGN_OR_RETURN(JobHere* const job, job_of(in));
    int task_index = index_of(job->stored.job, in.task, in.trial.task_index);
    if (task_index < 0 && !job->imported)
      return refused(str("job ", job->stored.job.id, " is of this database and has no task ",
                         in.task.workload_key, " on ", in.task.target));
    if (task_index < 0) {
      task_index = static_cast<int>(job->stored.job.tasks.size());
      job->stored.job.tasks.push_back(in.task);
      RETURN_IF_ERROR(rewrite_job(job->stored));
    }
    const JobRow::Task& task = job->stored.job.tasks[static_cast<size_t>(task_index)];
    const int64_t home = job->stored.job.search == kPackImport ? 0 : in.home_seq;
    const int64_t content = content_of(in.trial, task);
    ASSIGN_OR_RETURN(const int64_t seq, find_trial(*job, in, home, content));
    if (seq == 0) {
      ASSIGN_OR_RETURN(const int64_t made, insert_trial(*job, in, task_index, home, content));
      job->told.emplace_back(in.home_seq, made);
      return ImportedRow{};
    }
    job->told.emplace_back(in.home_seq, seq);
    return in.record ? add_record(seq, in) : known();
  }

  // --- races ---
  // The id here of the trial that has that id at home; empty: it is not here, or the file has two of that
  // number.
  Result<std::string> trial_here(JobHere& job, const std::string& home_id) {
    const Result<int64_t> home = trial_seq(home_id);
    if (!home) return std::string();
    if (!std::ranges::is_sorted(job.told)) std::ranges::sort(job.told);
    const auto of_number = [](const std::pair<int64_t, int64_t>& told) { return told.first; };
    const auto first = std::ranges::lower_bound(job.told, *home, {}, of_number);
    const auto last = std::ranges::upper_bound(job.told, *home, {}, of_number);
    if (first != last) return *first == *std::prev(last) ? trial_id_text(first->second) : std::string();
    if (!job.imported) {
      ASSIGN_OR_RETURN(const SqlRow row, c().one(kTrialBySeq, {*home}));
      if (row.empty()) return std::string();
      ASSIGN_OR_RETURN(const StoredTrial trial, trial_from_row(row));
      return trial.job_seq == job.stored.job_seq ? home_id : std::string();
    }
    ASSIGN_OR_RETURN(const SqlRow row, c().one(kImportedTrialByHome, {job.stored.job_seq, *home}));
    if (row.empty()) return std::string();
    ASSIGN_OR_RETURN(const StoredImportedTrial trial, imported_trial_from_row(row));
    return trial_id_text(trial.seq);
  }

  Result<ImportedRow> take(const ExchangedRace& in) {
    const auto found = jobs_.find(in.job_uid);
    if (found == jobs_.end()) return refused("its job is not here");
    JobHere& job = found->second;
    RaceRow race = in.race;
    race.job_id = job.stored.job.id;
    race.task_index = index_of(job.stored.job, in.task, race.task_index);
    if (race.task_index < 0) return refused(str("job ", race.job_id, " has no such task"));
    std::string missing;
    const auto rename = [&](std::string& id) -> Status {
      ASSIGN_OR_RETURN(std::string here, trial_here(job, id));
      if (here.empty()) missing = id;
      id = std::move(here);
      return Status::ok();
    };
    RETURN_IF_ERROR(rename(race.winner_trial_id));
    for (std::string& id : race.tie_set) RETURN_IF_ERROR(rename(id));
    for (RaceFinalist& f : race.finalists) RETURN_IF_ERROR(rename(f.trial_id));
    if (!race.default_trial_id.empty()) RETURN_IF_ERROR(rename(race.default_trial_id));
    if (!race.stored_trial_id.empty()) RETURN_IF_ERROR(rename(race.stored_trial_id));
    if (!missing.empty()) return refused(str("its trial ", missing, " is not here, or stands for two"));
    if (const Status numbers = check_race(race); !numbers) return refused(numbers.message());
    if (const std::optional<std::string> why = why_contradicts_samples(race))
      return refused(str("race of job ", race.job_id, ", task ", race.task_index, ": it says ", *why));

    ASSIGN_OR_RETURN(const SqlRow winner_row, c().one(kTrialBySeq, {*trial_seq(race.winner_trial_id)}));
    ASSIGN_OR_RETURN(const StoredTrial winner, trial_from_row(winner_row));
    StoredRace stored{race, job.stored.job_seq, winner.task_id};
    ASSIGN_OR_RETURN(const std::vector<SqlRow> there, c().all(kRacesOfJob, {stored.job_seq}));
    for (const SqlRow& row : there) {
      ASSIGN_OR_RETURN(StoredRace other, race_from_row(row));
      other.race.id = stored.race.id = 0;
      ASSIGN_OR_RETURN(const SqlRow a, to_row(other));
      ASSIGN_OR_RETURN(const SqlRow b, to_row(stored));
      if (a == b) return known();
    }
    stored.race.id = next_seq();
    ASSIGN_OR_RETURN(const SqlRow row, to_row(stored));
    RETURN_IF_ERROR(
        c().run(str("INSERT INTO race (", kRaceColumns, ") VALUES (", placeholders(kRaceColumns), ")"), row));
    return ImportedRow{};
  }

  // --- kernels ---
  Result<ImportedRow> take(const KernelRow& in) {
    const Result<bool> added = insert_kernel(c(), in, [this] { return next_seq(); });
    if (!added && added.status().code() == StatusCode::kInvalidArgument) return refused(added.message());
    if (!added) return added.status();
    return *added ? ImportedRow{} : known();
  }

  // --- foreign records ---
  Result<int64_t> foreign_task_id(const ForeignRecord& in) {
    const std::string key = str(in.format, '\n', in.target, '\n', in.task);
    const auto cached = foreign_task_ids_.find(key);
    if (cached != foreign_task_ids_.end()) return cached->second;
    ASSIGN_OR_RETURN(const SqlRow row, c().one(kForeignTaskByKey, {in.format, in.task, in.target}));
    StoredForeignTask task;
    if (!row.empty()) {
      ASSIGN_OR_RETURN(task, foreign_task_from_row(row));
    } else {
      task = {next_seq(), in.format, in.task, in.target};
      RETURN_IF_ERROR(insert(c(), "foreign_task", kForeignTaskColumns, task));
    }
    foreign_task_ids_.emplace(key, task.foreign_task_id);
    return task.foreign_task_id;
  }

  Result<ImportedRow> take(const ForeignRecord& in) {
    if (in.outcome == Outcome::kOk && !is_plausible_call(in.time_ns))
      return refused(str("time_ns: found ", in.time_ns, ", expected ", kPlausibleCall));
    const Digest digest = digest_of({in.format, in.task, in.target, in.document});
    ASSIGN_OR_RETURN(const SqlRow there, c().one(kForeignByDigest, {digest.high, digest.low}));
    if (!there.empty()) return known();
    StoredForeignRecord stored{.digest_high = digest.high, .digest_low = digest.low, .record = in};
    ASSIGN_OR_RETURN(stored.foreign_task_id, foreign_task_id(in));
    ASSIGN_OR_RETURN(stored.origin_id, origin_id_of(in.origin));
    stored.foreign_id = next_seq();
    static const std::string kInsert = str("INSERT INTO foreign_record (", kForeignRecordColumns,
                                           ") VALUES (", placeholders(kForeignRecordColumns), ")");
    RETURN_IF_ERROR(c().run(kInsert, to_row(stored)));
    return ImportedRow{};
  }

  SqliteStore& store_;
  Origin origin_;
  Connection* connection_ = nullptr;  // of the call that is under way
  bool prepared_ = false, broken_ = false;
  int64_t origin_id_ = 0;
  std::vector<std::pair<Origin, int64_t>> other_origins_;
  std::map<std::string, JobHere> jobs_;  // by uid
  std::map<std::pair<int64_t, int>, int64_t> task_ids_;
  std::unordered_map<std::string, int64_t> foreign_task_ids_;
};

}  // namespace

std::unique_ptr<Importer> SqliteStore::importer(Origin origin) {
  return std::make_unique<SqliteImporter>(*this, std::move(origin));
}

}  // namespace tuner::db
