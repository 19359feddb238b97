// Store: the database behind jobs, trials, measure records and tuned configs. Values: records.h.
//
// An engine implements the virtual functions: reads and writes, no decisions. What is decided from rows
// (which race answers, what is read page by page) stands once for all engines, in store.cpp and tuned.cpp.
// SQLite is the one engine today: sqlite/. tests/db/store_fixture.h is where another joins the tests.
//
// What callers rely on, of every engine:
//   durable   when a write returns OK it is on disk; whoever is killed then loses nothing of it
//   whole     a write is stored whole or not at all, and no other write comes in between
//   numbered  seq, record_id, race id and the like come from one counter, in the order of commits: who has
//             read up to a number has read all there will ever be up to it
//   steady    a read sees one moment, unless it says "page by page"
//   kept      rows are added; only the state of jobs and trials changes
//   checked   a damaged row is an error that names it, never a wrong answer
//   quick     no call reads a whole table but those that return it; best() without counts takes microseconds
//   threads   every method may be called from any thread; one process writes, any number read
// Keys are canonical text (Workload::key(), Target::name(), Config::to_text()): stored, never looked into.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/records.h"

namespace tuner {

class ExchangeStore;
class TaskView;

// Which jobs are asked for: one of these, or all.
struct JobQuery {
  std::string id;
  std::string request_id;
  // The latest with the same tasks, search and seed that was submitted here; imported ones do not count.
  struct Search {
    std::vector<JobRow::Task> tasks;
    std::string name;
    uint64_t seed = 0;
  };
  std::optional<Search> search;
};

// What becomes of a job. finished_at_us is set to now when the state is a final one, else to 0.
struct JobChange {
  JobState state = JobState::kQueued;
  std::optional<std::string> message;
  int least_trials = 0;  // `trials` is raised to this, never lowered
  std::optional<StopOptions> stop;
};

// Which trials are asked for: those named, or of a job, or all.
struct TrialQuery {
  std::vector<std::string> ids;
  std::string job;
  int64_t after = 0;  // those with a larger seq
  int64_t limit = 0;  // at most so many; 0: no limit
};

class Store {
 public:
  enum class Mode { kRead, kWrite };
  // `path` is a file of SQLite, or the URL of a server (none is served as yet: InvalidArgument).
  //
  // kWrite creates (the folder only of default_db_path()) and migrates. Refused with InvalidArgument: a newer
  // schema, damage, a file of another program, a missing folder, a hard link, a network filesystem. Aborted:
  // another process has it open for writing; the message names its pid. Failed: the disk. kRead works beside
  // a writer, after one that was killed, and from a read-only folder. NotFound: no file, or an empty one.
  static Result<std::unique_ptr<Store>> open(const std::string& path, Mode mode);
  virtual ~Store() = default;
  virtual const std::string& where() const = 0;  // the path or URL, for messages

  // --- jobs ---
  // The same request_id twice keeps the first; an empty one never repeats. `id` must be new.
  virtual Status add_job(const JobRow& job) = 0;
  virtual Status update_job(std::string_view job_id, const JobChange& change) = 0;
  virtual Result<std::vector<JobRow>> jobs(const JobQuery& query = {}) const = 0;  // oldest first
  virtual Result<int64_t> trials_done(std::string_view job_id) const = 0;          // of all its tasks

  // --- trials ---
  // A proposed batch (perhaps empty). Fills id and seq. With `proposal`, the call of the search that gave it:
  // stored with it; fills its seq, count and first_trial_seq. Trials are of its job and task.
  virtual Status add_trials(std::vector<TrialRow>& trials, ProposalRow* proposal = nullptr) = 0;
  // In one commit: those that are still queued, in the order given, the others are left out. queued ->
  // leased, attempt + 1, a new fencing token.
  virtual Result<std::vector<TrialRow>> lease_trials(const std::vector<std::string>& trial_ids,
                                                     std::string_view worker_id) = 0;
  // leased -> queued. NotFound unless it is leased with that attempt.
  virtual Status requeue_trial(std::string_view trial_id, int attempt) = 0;
  virtual Status cancel_open_trials(std::string_view job_id) = 0;  // queued and leased -> cancelled
  // In seq order, named ones in the order given. NotFound: one of the names, or the job.
  virtual Result<std::vector<TrialWithRecord>> trials(const TrialQuery& query) const = 0;
  virtual Result<std::vector<ProposalRow>> proposals(std::string_view job_id) const = 0;  // in seq order

  // --- records ---
  // Stores records of open trials as their terminal ones; a record for a closed trial is kept as an extra
  // sample; the very same record again changes nothing. NotFound: an unknown trial. InvalidArgument: a number
  // that is not finite, or an ok record without samples.
  virtual Status add_records(const std::vector<MeasureRecord>& records) = 0;
  // Every record of a trial, extra samples too, oldest first.
  virtual Result<std::vector<MeasureRecord>> records(std::string_view trial_id) const = 0;
  // Terminal records of the job's trials with record_id > `after`, in that order.
  virtual Result<std::vector<ObservedRecord>> records_after(std::string_view job_id, int64_t after) const = 0;
  // The largest record_id there is; 0: no record yet.
  virtual Result<int64_t> last_record_id() const = 0;

  // --- tasks: what is known of one (workload, target), of any job and all algorithms ---
  // Every one that was ever proposed a trial whose times mean that, oldest first; without algorithms.
  virtual Result<std::vector<JobRow::Task>> tasks(Constants constants = Constants::kWarm) const = 0;
  // Calls `f` with what is known of the task at one moment (task_view.h), and returns what it returns. Does
  // not call it when no trial of the task was ever proposed.
  virtual Status with_task(const JobRow::Task& task,
                           const std::function<Status(const TaskView&)>& f) const = 0;
  // At most `most` trials of the task whose terminal record has an id up to `until`, chosen by
  // donor_sample.h.
  virtual Result<std::vector<TrialWithRecord>> sample_records(const JobRow::Task& task, int64_t until,
                                                              int most) const = 0;
  // The fastest right and uncut trial of this very config. NotFound when there is none.
  virtual Result<TrialWithRecord> fastest_of_config(const JobRow::Task& task, std::string_view template_name,
                                                    int template_version, std::string_view config) const = 0;

  // --- races ---
  // Fills id. InvalidArgument: a number that is not finite, a winner that is no finalist, samples that do not
  // match.
  virtual Status add_race(RaceRow& race) = 0;
  virtual Result<std::vector<RaceRow>> races(std::string_view job_id) const = 0;  // oldest first

  // --- learned ---
  // Fills id, and made_at_us where it is 0.
  virtual Status add_learned(LearnedRow& row) = 0;
  // The newest of that kind, operator and target. NotFound when there is none.
  virtual Result<LearnedRow> learned(std::string_view kind, std::string_view op,
                                     std::string_view target) const = 0;

  // --- events (for Watch) ---
  // Appends; returns its sequence number. `json` is opaque here.
  virtual Result<int64_t> add_event(std::string_view job_id, std::string_view json) = 0;
  virtual Result<std::vector<std::pair<int64_t, std::string>>> events(std::string_view job_id,
                                                                      int64_t after_seq, int limit) const = 0;

  // --- exchange: rows that come from elsewhere or go there (exchange/exchange_store.h) ---
  virtual ExchangeStore& exchange() = 0;
  virtual const ExchangeStore& exchange() const = 0;

  // --- built on the above, the same for every engine ---
  Result<JobRow> job(std::string_view job_id) const;
  Result<JobRow> job_by_request(std::string_view request_id) const;
  // JobQuery::search: what `submit` continues.
  Result<JobRow> find_job(const std::vector<JobRow::Task>& tasks, std::string_view search,
                          uint64_t seed) const;
  Status set_job_state(std::string_view job_id, JobState state, std::string_view message);
  // Raises `trials`, sets `stop`; state back to queued.
  Status extend_job(std::string_view job_id, int trials, const StopOptions& stop);
  Result<std::vector<TrialWithRecord>> trials(std::string_view job_id) const;
  Result<TrialWithRecord> trial(std::string_view trial_id) const;
  // Page by page: every trial with a record, oldest first (empty job_id: of all jobs). `f` returns false to
  // stop.
  Status for_each_record(std::string_view job_id, const std::function<bool(const TrialWithRecord&)>& f) const;
  // The same of one task.
  Status for_each_record_of(const JobRow::Task& task,
                            const std::function<bool(const TrialWithRecord&)>& f) const;
  // The winner of the task's certified race, with its time and interval. A race outranks all trials until the
  // next race: one lucky trial of a search that was stopped changes nothing. A race whose winner took part in
  // a later certified one has been decided anew there; of several that have not (databases put together), the
  // one with the fastest winner counts.
  // Without a certified race the fastest ok, uncut record; ties go to the older. NotFound when there is none.
  // Of trials of the named templates only, unless there are none.
  // What was measured again counts as it was then: when the newest race is of another compiler, harness or
  // machine than that record, and its job had the same config among its trials, only records of the race's
  // environment are looked at (tuner revalidate).
  // Without `counted`, trials and outcomes stay 0 and empty: they are counted over all records of the task,
  // the rest is found in microseconds however many there are.
  Result<TunedConfig> best(std::string_view workload_key, std::string_view target,
                           const std::vector<std::string>& templates = {}, bool counted = true,
                           Constants constants = Constants::kWarm) const;
};

// A copy of the database as it stands, made beside a writer if there is one; appears when it is whole. `to`
// must not be there. The first to open the copy for writing makes its write-ahead log.
Status copy_database(const std::string& from, const std::string& to);

// $XDG_DATA_HOME/tuner/tuner.db, or ~/.local/share/tuner/tuner.db.
std::string default_db_path();

}  // namespace tuner
