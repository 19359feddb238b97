// Store: the database behind jobs, trials, measure records and tuned configs. records.h has the values.
//
// An engine implements the virtual functions: reads and writes, but no decisions. What is decided from rows
// (which race answers, reading page by page) is the same for all engines and lives in store.cpp and
// tuned.cpp. SQLite (sqlite/) is the only engine today. tests/db/store_fixture.h is where another engine
// joins the tests.
//
// What callers may rely on with every engine:
//   durable   a write that returned OK is on disk; killing the process afterwards loses nothing of it
//   whole     a write is stored completely or not at all, and no other write comes in between
//   numbered  all ids (seq, record_id, race id) come from one counter, in the order of commits: a reader that
//             has read up to a number has read all there will ever be up to it
//   steady    a read sees one moment, unless it says "page by page"
//   kept      rows are added; what changes is how far jobs, trials and open races are (state, lease, message,
//             budget). A record, a race's result and an event never change. Only prune() removes anything:
//             records, never trials
//   checked   a damaged row is an error (Failed) that names it, never a wrong answer
//   quick     a call reads a whole table only if it returns it; best() without counts takes microseconds
//   threads   every method may be called from any thread; one process writes, any number read
// Keys are canonical text (Workload::key(), Target::name(), Config::to_text()). The store never looks inside.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/integrity.h"
#include "db/records.h"

namespace tuner {

// The end of messages that ask for another file: "with --db", the option of our commands, unless the program
// says another way, in words that live as long as the process, before it opens a database.
std::string_view how_a_database_is_given();
void set_how_a_database_is_given(const char* words);

class Store;
// From now on each database that is opened is shown to `made`, and what that returns lives as long as the
// Store: the bridge to what this folder knows nothing of. Once, at a program's start.
void set_beside_stores(std::function<std::shared_ptr<void>(const Store&)> made);

class ExchangeStore;
class TargetFamily;
class TaskView;
struct DeathRow;
struct OpenRaceRow;
struct PruneCount;
struct PruneRules;
struct QuarantineRow;

// Selects jobs by one of these; empty selects all.
struct JobQuery {
  std::string id;
  std::string request_id;
  int64_t newest = 0;  // the latest so many; reads no others
  // The latest job with the same tasks, search, seed and tenant that was submitted here. Imported jobs do not
  // count.
  struct Search {
    std::vector<JobRow::Task> tasks;
    std::string name;
    uint64_t seed = 0;
    std::string tenant;
  };
  std::optional<Search> search;
};

// A change of a job. finished_at_us becomes now if the new state is final, and 0 otherwise.
struct JobChange {
  JobState state = JobState::kQueued;
  std::optional<std::string> message;
  int least_trials = 0;  // raises `trials` to this; never lowers it
  std::optional<StopOptions> stop;
};

// Selects trials by id or by job; empty selects all.
struct TrialQuery {
  std::vector<std::string> ids;  // or names: "t812", "j3.17"
  std::string job;
  int64_t after = 0;  // only those with a larger seq
  int64_t limit = 0;  // at most this many; 0: no limit
  bool open = false;  // only those of a job that are queued or leased
  // Fills TrialRow::number. Of trials by id that counts, for each, the trials before it in its job; of a job,
  // those up to `after`, once. Not with `open`, nor for all jobs.
  bool numbered = false;
};

// A trial that a worker wants to lease.
struct LeaseWish {
  std::string trial_id, worker_id;
  std::string incarnation;  // the worker's present life
};

class Store {
 public:
  enum class Mode { kRead, kWrite };
  // `path` is an SQLite file, or the URL of a server (not supported yet: InvalidArgument).
  //
  // kWrite creates the database (and the folder, but only that of default_db_path()) and migrates an older
  // one. InvalidArgument: a newer schema, damage, another program's file, a missing folder, a hard link, or a
  // network filesystem. Aborted: another process has it open for writing; the message names its pid. Failed:
  // the disk.
  // kRead works beside a writer, after a writer was killed, and from a read-only folder. NotFound: no file,
  // or an empty one.
  static Result<std::unique_ptr<Store>> open(const std::string& path, Mode mode);
  virtual ~Store() = default;
  // Goes before anything of this does, and is asked for nothing (set_beside_stores).
  void keep_beside(std::shared_ptr<void> what) { beside_ = std::move(what); }
  virtual const std::string& where() const = 0;  // the path or URL, for messages

  // --- jobs ---
  // A second job with the same request_id is ignored; an empty request_id never repeats. `id` must be new.
  // The kernels are those that its tasks name: they are stored in the same write, and none of them where the
  // job is not. One that its tenant has brought before is not stored again. InvalidArgument: a digest that is
  // none, or a document that is empty or too large.
  virtual Status add_job(const JobRow& job, const std::vector<KernelRow>& kernels) = 0;
  Status add_job(const JobRow& job) { return add_job(job, {}); }
  virtual Status update_job(std::string_view job_id, const JobChange& change) = 0;
  virtual Result<std::vector<JobRow>> jobs(const JobQuery& query = {}) const = 0;  // oldest first
  virtual Result<int64_t> trials_done(std::string_view job_id) const = 0;          // over all its tasks
  virtual Result<std::vector<UsageRow>> usage() const = 0;  // by tenant; reads all records

  // --- trials ---
  // Stores a proposed batch, which may be empty, and fills id and seq. `proposal` describes the search call
  // that made it; it is stored in the same write, and its seq, count and first_trial_seq are filled. The
  // trials must be of its job and task.
  virtual Status add_trials(std::vector<TrialRow>& trials, ProposalRow* proposal = nullptr) = 0;
  // Leases, in one commit, those of the trials that are still queued, in the given order; leaves out the
  // others. Each goes from queued to leased, with attempt + 1 and a new fencing token.
  virtual Result<std::vector<TrialRow>> lease_trials(const std::vector<LeaseWish>& wishes) = 0;
  // Puts trials back from leased to queued, in one commit, and returns how many; leaves out those that are
  // not leased with that attempt.
  virtual Result<int64_t> requeue_trials(const std::vector<std::pair<std::string, int>>& attempts) = 0;
  virtual Status cancel_open_trials(std::string_view job_id) = 0;  // queued and leased -> cancelled
  // Returns trials in seq order, or named ones in the given order. NotFound: one of the names, or the job.
  virtual Result<std::vector<TrialWithRecord>> trials(const TrialQuery& query) const = 0;
  virtual Result<std::vector<ProposalRow>> proposals(std::string_view job_id) const = 0;  // in seq order

  // --- records ---
  // Stores the records. The record of an open trial becomes its terminal one, of whatever attempt it is: the
  // measurement is as good as that of a later lease. A record for a closed trial is kept as an extra sample;
  // repeating the very same record changes nothing. NotFound: an unknown trial.
  // InvalidArgument: a number that is not finite, or an ok record without samples.
  virtual Status add_records(const std::vector<MeasureRecord>& records) = 0;
  // Returns every record of a trial with its extra samples, oldest first.
  virtual Result<std::vector<MeasureRecord>> records(std::string_view trial_id) const = 0;
  // Returns the terminal records of the job's trials with record_id > `after`, in that order, at most `most`.
  static constexpr int64_t kAll = INT64_MAX;
  virtual Result<std::vector<ObservedRecord>> records_after(std::string_view job_id, int64_t after,
                                                            int64_t most) const = 0;
  Result<std::vector<ObservedRecord>> records_after(std::string_view job_id, int64_t after) const {
    return records_after(job_id, after, kAll);
  }
  // Returns the largest record_id; 0 if there is no record.
  virtual Result<int64_t> last_record_id() const = 0;

  // --- tasks: what is known of one (workload, target) over all jobs and algorithms ---
  // Returns every task with a trial whose times have these constants, oldest first. `algorithms` stays empty.
  virtual Result<std::vector<JobRow::Task>> tasks(Constants constants = Constants::kWarm) const = 0;
  // The same of one workload: the targets that it was measured for. Reads these alone.
  virtual Result<std::vector<JobRow::Task>> tasks_of(std::string_view workload_key,
                                                     Constants constants) const = 0;
  // Calls `f` with what is known of the task at one moment (task_view.h), and returns its result. Does not
  // call `f` if the task never had a trial.
  virtual Status with_task(const JobRow::Task& task,
                           const std::function<Status(const TaskView&)>& f) const = 0;
  // Returns at most `most` trials of the task whose terminal record has an id up to `until`. donor_sample.h
  // chooses.
  virtual Result<std::vector<TrialWithRecord>> sample_records(const JobRow::Task& task, int64_t until,
                                                              int most) const = 0;
  // Returns correct, uncut trials of this very config, the fastest first, `most` at most.
  virtual Result<std::vector<TrialWithRecord>> trials_of_config(const JobRow::Task& task,
                                                                std::string_view template_name,
                                                                int template_version, std::string_view config,
                                                                int most) const = 0;

  // --- races ---
  // Fills id. InvalidArgument: a number that is not finite, a winner that is not a finalist, or samples whose
  // numbers do not match.
  virtual Status add_race(RaceRow& race) = 0;
  virtual Result<std::vector<RaceRow>> races(std::string_view job_id) const = 0;  // oldest first

  // --- races under way (open_race.h): rows, so that they outlive the daemon ---
  // Stores a race that was decided on. Its id must be new; state, attempt, fencing and worker_id are ignored.
  virtual Status open_race(const OpenRaceRow& race) = 0;
  // Leases the race if it is queued: attempt + 1 and a new fencing token. NotFound: it is not queued.
  virtual Result<OpenRaceRow> lease_race(std::string_view race_id, std::string_view worker_id,
                                         std::string_view incarnation) = 0;
  // Puts the race back from leased to queued. NotFound unless it is leased with that attempt.
  virtual Status requeue_race(std::string_view race_id, int attempt) = 0;
  // Ends the race with its result, of which it fills id, in one commit; without one, `message` says why.
  // Ending it again changes nothing, so a result that is sent twice is stored once. NotFound: no such race.
  virtual Status end_race(std::string_view race_id, RaceRow* result, std::string_view message) = 0;
  // Returns the races of the job that have not ended, oldest first.
  virtual Result<std::vector<OpenRaceRow>> open_races(std::string_view job_id) const = 0;
  // Returns the leases that the race had, whether or not it has ended. NotFound: no such race.
  virtual Result<std::vector<Grant>> race_grants(std::string_view race_id) const = 0;

  // --- quarantine: results that cannot be (quarantine.h). No other read of this store looks at them ---
  // Fills id.
  virtual Status add_quarantine(QuarantineRow& row) = 0;
  // Returns the rows of a trial or race, or all if `lease_id` is empty, oldest first.
  virtual Result<std::vector<QuarantineRow>> quarantine(std::string_view lease_id) const = 0;

  // --- the poison ledger (death.h) ---
  // Appends the rows in one commit and fills their ids.
  virtual Status add_deaths(std::vector<DeathRow>& rows) = 0;
  virtual Result<std::vector<DeathRow>> deaths() const = 0;  // all, oldest first

  // --- documents of kernels ---
  // What that tenant has brought; without `tenant`: what anybody has, of the first tenant by name. NotFound:
  // nothing.
  virtual Result<KernelRow> kernel(std::string_view digest,
                                   const std::optional<std::string>& tenant = {}) const = 0;
  // Bytes of all documents that the tenant has brought.
  virtual Result<int64_t> kernel_bytes(std::string_view tenant) const = 0;
  // One by one, oldest first, until `f` returns false. A damaged row is an error, unless `damaged` takes it.
  virtual Status for_each_kernel(const std::function<bool(const KernelRow&)>& f,
                                 const std::function<void(const Status&)>& damaged = {}) const = 0;

  // --- learned ---
  // Fills id, and made_at_us if it is 0.
  virtual Status add_learned(LearnedRow& row) = 0;
  // Returns the newest row of that kind, operator and target. NotFound if there is none.
  virtual Result<LearnedRow> learned(std::string_view kind, std::string_view op,
                                     std::string_view target) const = 0;

  // --- events (for Watch) ---
  // Appends an event and returns its sequence number. The store does not look into `json`.
  virtual Result<int64_t> add_event(std::string_view job_id, std::string_view json) = 0;
  virtual Result<std::vector<std::pair<int64_t, std::string>>> events(std::string_view job_id,
                                                                      int64_t after_seq, int limit) const = 0;

  // --- integrity ---
  // Reads every row once, page by page, and says whether each is what was written and whether tables and
  // indexes agree. Damage is no error, it is in the report. `after_page` hears how many rows have been read,
  // and may sleep: a check in the background takes its time.
  virtual Result<IntegrityReport> check_integrity(
      std::stop_token stop = {}, const std::function<void(int64_t)>& after_page = [](int64_t) {}) const = 0;
  // Writes a database with what is here at this moment, whoever writes meanwhile. It appears at `path` when
  // it is whole. `after_pages` hears of how many are written, of how many. InvalidArgument: a file of that
  // name is there. Aborted: stopped.
  virtual Status backup(const std::string& path, std::stop_token stop = {},
                        const std::function<void(int64_t, int64_t)>& after_pages = {}) const = 0;

  // --- pruning (prune.h): records on which no answer rests ---
  // What prune() would remove of the task now.
  virtual Result<PruneCount> prunable(const JobRow::Task& task, const PruneRules& rules) const = 0;
  // Removes about `most` records at most, in small commits: killed in the middle, the rest is still there.
  // Aborted: jobs of the task go on again and again meanwhile.
  virtual Result<PruneCount> prune(const JobRow::Task& task, const PruneRules& rules, int64_t most) = 0;

  // --- exchange: rows to and from other databases and files (exchange/exchange_store.h) ---
  virtual ExchangeStore& exchange() = 0;
  virtual const ExchangeStore& exchange() const = 0;

  // --- built on the functions above, the same for every engine ---
  Result<std::vector<TrialRow>> lease_trials(const std::vector<std::string>& trial_ids,
                                             std::string_view worker_id);
  // NotFound unless the trial is leased with that attempt.
  Status requeue_trial(std::string_view trial_id, int attempt);
  // These give NotFound if there is no such job or trial.
  Result<JobRow> job(std::string_view job_id) const;
  Result<JobRow> job_by_request(std::string_view request_id) const;
  // Finds a job as JobQuery::search does: the one that `submit` continues.
  Result<JobRow> find_job(const std::vector<JobRow::Task>& tasks, std::string_view search, uint64_t seed,
                          std::string_view tenant = "") const;
  Status set_job_state(std::string_view job_id, JobState state, std::string_view message);
  // Raises `trials`, sets `stop`, and queues the job again.
  Status extend_job(std::string_view job_id, int trials, const StopOptions& stop);
  Result<std::vector<TrialWithRecord>> trials(std::string_view job_id) const;  // numbered
  // By its name or id ("j3.17", "t812"), numbered.
  Result<TrialWithRecord> trial(std::string_view trial_id) const;
  // Page by page: calls `f` with every trial that has a record, oldest first, until it returns false. An
  // empty job_id selects all jobs.
  Status for_each_record(std::string_view job_id, const std::function<bool(const TrialWithRecord&)>& f) const;
  // Like for_each_record(), for one task.
  Status for_each_record_of(const JobRow::Task& task,
                            const std::function<bool(const TrialWithRecord&)>& f) const;
  // The races of the task in its latest jobs, newest job first, `most` at most.
  Result<std::vector<RaceRow>> races_of_task(const JobRow::Task& task, int64_t most) const;
  // A page of the task's trials in the order of their records: those behind record `after`, at most `most`.
  // Records of several workers come in another order than their trials.
  Result<std::vector<TrialWithRecord>> records_of_task(const JobRow::Task& task, int64_t after,
                                                       int64_t most) const;
  // Returns the tuned config of the task: the winner of its certified race, with the race's time and
  // interval. NotFound if nothing correct was measured.
  //
  // A race outranks all trials until the next race, so one lucky trial of a stopped search changes nothing. A
  // race is superseded if its winner took part in a later race that is certified, or that had another
  // compiler, harness or machine. If several are not superseded (merged databases), the one with the fastest
  // winner counts.
  //
  // Without a certified race the fastest ok, uncut record wins; the older one if equal. If `templates` is not
  // empty, only trials of these templates count.
  //
  // Revalidation (tuner revalidate): if the newest race has another compiler, harness or machine than that
  // record, and its job also measured the record's config, only records of the race's environment count.
  //
  // Without `counted`, trials and outcomes stay empty, and trial_name is the id. Counting reads all records
  // of the task; the rest takes microseconds however many there are.
  Result<TunedConfig> best(std::string_view workload_key, std::string_view target,
                           const std::vector<std::string>& templates = {}, bool counted = true,
                           Constants constants = Constants::kWarm) const;
  // The same of the records of one class of the family's devices (device_records.h). Records of candidates
  // that never reached a device are counted, too; those that were pruned are not.
  Result<TunedConfig> best_of_class(const JobRow::Task& task, const TargetFamily& family,
                                    std::string_view device_class, const std::vector<std::string>& templates,
                                    bool counted) const;
  // The first of trials_of_config(). NotFound if there is none.
  Result<TrialWithRecord> fastest_of_config(const JobRow::Task& task, std::string_view template_name,
                                            int template_version, std::string_view config) const;
  // Returns what its fastest correct, uncut trial says of this very config, without any race. NotFound if
  // there is none.
  Result<TunedConfig> measured_config(const JobRow::Task& task, std::string_view template_name,
                                      int template_version, std::string_view config) const;

 protected:
  // For destructors of stores: what lies beside may look into the store until it is gone.
  void drop_beside() { beside_.reset(); }

 private:
  // `family` is null: of any device.
  Result<TunedConfig> best_of(const JobRow::Task& task, const TargetFamily* family,
                              std::string_view device_class, const std::vector<std::string>& templates,
                              bool counted) const;

  std::shared_ptr<void> beside_;
};

// Copies the database as it stands, also beside a writer. The copy appears when it is complete; `to` must not
// exist. The first process that opens the copy for writing creates its write-ahead log.
Status copy_database(const std::string& from, const std::string& to);

// $XDG_DATA_HOME/tuner/tuner.db, or ~/.local/share/tuner/tuner.db.
std::string default_db_path();

}  // namespace tuner
