// Store: jobs, trials, measure records and tuned configs in one SQLite file. schema.sql tells the tables.
//
// One process opens it for writing (an OS lock on FILE-lock refuses a second and names the first); any number
// read. In the writing process one connection, behind one mutex and with group commit, does all writes and
// all checkpoints (Debian 12's SQLite 3.40 can corrupt a WAL that two connections checkpoint at once). Every
// method may be called from any thread. When a write returns OK it is on disk (synchronous=FULL). Rows are
// added; of a trial only its state changes. Keys are canonical text (Workload::key(), Target::name(),
// Config::to_text()); this module stores them, never looks inside. Every row read is checked against its
// checksum; a damaged one is an error that names it, never a wrong answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/records.h"

namespace tuner {

class Store {
 public:
  enum class Mode { kRead, kWrite };
  // kWrite creates (the folder only of default_db_path()) and migrates. Refused with InvalidArgument: a newer
  // schema, damage, a file of another program, a missing folder, a hard link, a network filesystem. Aborted:
  // another process has it open for writing; the message names its pid. Failed: the disk. kRead works beside
  // a writer, after one that was killed, and from a read-only folder. NotFound: no file, or an empty one.
  static Result<std::unique_ptr<Store>> open(const std::string& path, Mode mode);
  virtual ~Store() = default;

  // --- jobs ---
  // The same request_id twice keeps the first (job_by_request tells which); an empty one never repeats. `id`
  // must be new.
  virtual Status add_job(const JobRow& job) = 0;
  virtual Result<JobRow> job_by_request(std::string_view request_id) const = 0;
  // Sets finished_at_us to now when the state is a final one, else to 0.
  virtual Status set_job_state(std::string_view job_id, JobState state, std::string_view message) = 0;
  // Raises `trials`, sets `stop`; state back to queued.
  virtual Status extend_job(std::string_view job_id, int trials, const StopOptions& stop) = 0;
  virtual Result<JobRow> job(std::string_view job_id) const = 0;
  virtual Result<std::vector<JobRow>> jobs() const = 0;
  virtual Result<int64_t> trials_done(std::string_view job_id) const = 0;  // of all its tasks
  // The latest job with the same tasks, search and seed: what `submit` continues. Imported ones do not count.
  virtual Result<JobRow> find_job(const std::vector<JobRow::Task>& tasks, std::string_view search,
                                  uint64_t seed) const = 0;

  // --- trials ---
  // All of a proposed batch or none. Fills id and seq.
  virtual Status add_trials(std::vector<TrialRow>& trials) = 0;
  // queued -> leased, attempt + 1, a new fencing token. NotFound when it is not queued any more.
  virtual Result<TrialRow> lease_trial(std::string_view trial_id, std::string_view worker_id) = 0;
  // The same for several, in one commit: those that are still queued, in the order given; the others are left
  // out.
  virtual Result<std::vector<TrialRow>> lease_trials(const std::vector<std::string>& trial_ids,
                                                     std::string_view worker_id) = 0;
  // leased -> queued. NotFound unless it is leased with that attempt.
  virtual Status requeue_trial(std::string_view trial_id, int attempt) = 0;
  // A call of the search and the trials it gave (perhaps none), all or nothing. Fills seq, count and
  // first_trial_seq of the proposal, id and seq of the trials. Trials are of its job and task.
  virtual Status add_proposal(ProposalRow& proposal, std::vector<TrialRow>& trials) = 0;
  virtual Result<std::vector<ProposalRow>> proposals(std::string_view job_id) const = 0;  // in seq order
  virtual Status cancel_open_trials(std::string_view job_id) = 0;  // queued and leased -> cancelled
  // Stores records of open trials as their terminal ones, in one transaction; a record for a closed trial is
  // kept as an extra sample; the very same record again changes nothing. Returns OK when all of that is on
  // disk; else none of it is (NotFound: an unknown trial; InvalidArgument: a number that is not finite, or an
  // ok record without samples).
  virtual Status add_records(const std::vector<MeasureRecord>& records) = 0;
  virtual Result<std::vector<TrialWithRecord>> trials(std::string_view job_id) const = 0;  // in seq order
  virtual Result<TrialWithRecord> trial(std::string_view trial_id) const = 0;
  // Every record of a trial, extra samples too, oldest first.
  virtual Result<std::vector<MeasureRecord>> records(std::string_view trial_id) const = 0;
  // Terminal records of the job's trials with record_id > `after`, in that order. No record with a smaller id
  // can appear later: what one call returned and the next one goes on from is the whole sequence, without
  // gaps.
  virtual Result<std::vector<ObservedRecord>> records_after(std::string_view job_id, int64_t after) const = 0;
  // The largest record_id there is; 0: no record yet.
  virtual Result<int64_t> last_record_id() const = 0;
  // Every (workload, target) that was ever proposed a trial whose times mean that, oldest first; without
  // algorithms.
  virtual Result<std::vector<JobRow::Task>> tasks(Constants constants = Constants::kWarm) const = 0;
  // At most `most` trials of a task, of any job, whose terminal record has an id up to `until`: a third are
  // the fastest, the others an even choice of the rest, the failed ones last. The same call gives the same
  // rows, whatever came later.
  virtual Result<std::vector<TrialWithRecord>> sample_records(const JobRow::Task& task, int64_t until,
                                                              int most) const = 0;
  // Every trial with a record, oldest first, for `records export` (empty job_id: all jobs). `f` returns false
  // to stop.
  virtual Status for_each_record(std::string_view job_id,
                                 const std::function<bool(const TrialWithRecord&)>& f) const = 0;
  // The same of one (workload, target), of every job and all algorithms; an index finds them.
  virtual Status for_each_record_of(const JobRow::Task& task,
                                    const std::function<bool(const TrialWithRecord&)>& f) const = 0;

  // --- races ---
  // Fills id. InvalidArgument: a number that is not finite, a winner that is no finalist, samples that do not
  // match.
  virtual Status add_race(RaceRow& race) = 0;
  virtual Result<std::vector<RaceRow>> races(std::string_view job_id) const = 0;  // oldest first

  // --- tuned configs ---
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
  virtual Result<TunedConfig> best(std::string_view workload_key, std::string_view target,
                                   const std::vector<std::string>& templates = {}, bool counted = true,
                                   Constants constants = Constants::kWarm) const = 0;

  // The fastest right and uncut trial of this very config, whatever job it is of. NotFound when there is
  // none.
  virtual Result<TrialWithRecord> fastest_of_config(const JobRow::Task& task, std::string_view template_name,
                                                    int template_version, std::string_view config) const = 0;

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
};

// $XDG_DATA_HOME/tuner/tuner.db, or ~/.local/share/tuner/tuner.db.
std::string default_db_path();

}  // namespace tuner
