// WorkerCore: what a worker holds and owes. Leases come in by apply(), go through building and running, and
// leave as results. Results are kept, spooled on disk, until the daemon has acknowledged them.
//
// It uses no gRPC and no processes, and its clock can be replaced, so tests drive it step by step. Any thread
// may call any method. All messages may be lost, repeated or late: a request repeats everything, and a reply
// is applied as a difference.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "measure.pb.h"
#include "measure_server/worker/spool.h"
#include "measure_server/worker/work_book.h"

namespace tuner {

// What a build has brought: an artifact in the cache, and what the builder says of it.
struct BuiltCandidate {
  std::string digest;
  double build_ms = 0, queue_ms = 0;
  std::string toolchain;              // that made it; empty: this worker's own
  double absolute = 0, relative = 0;  // tolerance of its answers
  bool direct = false;                // it computes the sums as they are written
};

class WorkerCore final : public WorkBook {
 public:
  struct Options {
    int slots = 4;  // leases held at once: one runs, the others are built or wait
    int cpus = 1;   // how many CPUs this worker may use
    // Of a runner: artifacts are made by builders elsewhere. A lease may be fetched once the daemon has told
    // what became of its build (LeaseBuilt), which the callback gets first, without locks. Null: they are
    // built here.
    std::function<void(const v1::LeaseBuilt&)> take_built = nullptr;
    // True for a lease that runs on a device of its own; null: none does.
    std::function<bool(const v1::Lease&)> on_device = nullptr;
    int64_t (*now_ms)() = nullptr;  // monotonic; default: steady_clock
  };
  // `spool` must outlive this. What it holds is owed from the start.
  WorkerCore(Options options, Spool& spool);

  // --- the daemon's side ---
  void set_session(std::string session) override;
  std::string session() const override;
  // Results of at most about a megabyte travel at once; the others follow.
  v1::SyncRequest make_request(int wait_ms) override;
  void apply(const v1::SyncReply& reply) override;
  // Sets a callback (called without locks) for news that the daemon should hear at once: a result, a drain,
  // leases given back, fit or not.
  void on_news(std::function<void()> f) { news_ = std::move(f); }
  // Sets a callback (called without locks) for a lease that began to be built or to run: news that may wait a
  // little. phases_told(): the latest request has them all.
  void on_phase(std::function<void()> f) { phase_began_ = std::move(f); }
  bool phases_told() const override;

  // --- the build thread's side ---
  // Where builds take place: on cores without runs, or on the runs' core while there is nothing to run.
  enum class Builds : uint8_t { kBesideRuns, kInsteadOfRuns, kForDevice };
  // Waits for the next lease to build, in order of arrival; empty after stop(). Waits while a run uses every
  // core, so no build disturbs it. kInsteadOfRuns waits until nothing is running or ready to run, and no run
  // begins until its caller (one thread) asks for the next one. kForDevice, on cores without runs and in any
  // number of threads, takes only what runs on a device, and waits while something runs on the CPUs or is
  // ready to: many builds at once would disturb it.
  std::optional<v1::Lease> next_to_build(Builds builds = Builds::kBesideRuns);
  // Asks whether a reference answer may be made by many threads, which would disturb a run on the CPUs. False
  // while one is under way or ready; otherwise none begins before end_many_threads(). Runs on a device do.
  bool begin_many_threads();
  void end_many_threads();
  // Reports that a lease is built and may run. Returns false if it was revoked meanwhile: forget it.
  bool built(const v1::Lease& lease, const BuiltCandidate& candidate);
  // What was told of its build is of no use any more: the daemon tells again.
  void await_again(const v1::Lease& lease);

  // --- the run thread's side ---
  struct Built : BuiltCandidate {
    v1::Lease lease;
    double best_ns = 0;  // the task's best time, by the latest news
  };
  // Waits for the next built lease, in order of arrival; empty after stop(). A lease that uses every core
  // waits until no build is running.
  std::optional<Built> next_to_run();

  // Says that a running lease waits for its device (WAITING for the daemon: nothing of it runs), or goes on.
  void wait_for_device(const v1::Lease& lease, bool waits);

  // Says that a lease has run; its result comes with finish(). It is WAITING again, but never runs once more,
  // and nobody else is blamed beside it.
  void ran(const v1::Lease& lease);

  struct Finished {
    v1::Lease lease;
    v1::MeasureRecord record;
  };
  // Takes the results of leases in any phase; they are on disk when this returns OK. Results of revoked
  // leases are kept too: the daemon decides what they are worth. An error comes from the spool: the result is
  // then owed from memory alone, so nothing is lost unless this process dies too. The caller should call
  // set_unfit().
  Status finish(const std::vector<Finished>& results);
  Status finish(const v1::Lease& lease, const v1::MeasureRecord& record) { return finish({{lease, record}}); }
  Status finish_race(const v1::Lease& lease, const v1::RaceResult& result);

  // --- when this worker cannot work ---
  // Takes no new leases, begins nothing, and gives back what is not being built or run. `why` is for people.
  // Another call gives back what was delivered meanwhile.
  void set_unfit(const std::string& why) override;
  void set_fit() override;
  // Gives a lease back unmeasured, whatever its phase. `found`: because this release has its template in that
  // other version.
  void give_back(const v1::Lease& lease, const std::optional<v1::TemplateVersion>& found = {});
  // Writes what is owed from memory alone to the spool. OK: all that is owed is on disk.
  Status spool_again();

  // Tells the daemon's watchers how far a race is.
  void tell_course(const v1::Lease& lease, const v1::RaceCourse& course);

  // Sets a callback (called without locks) for a running lease that was revoked. Set both callbacks before
  // any thread starts.
  void on_revoked_run(std::function<void(const std::string& trial_id)> f) { revoked_run_ = std::move(f); }

  bool holds(const v1::Lease& lease) const;
  void drain();  // take no new lease; idle() becomes true once the held ones are done and
                 // acknowledged, and the daemon has heard which are given back
  bool draining() const override;
  bool idle() const override;
  void stop();                                          // wakes every waiting thread with an empty result
  int64_t held_since_ms(const v1::Lease& lease) const;  // when the lease arrived

 private:
  struct Held {
    v1::Lease lease;
    v1::LeasePhase phase = v1::WAITING;
    std::optional<v1::RaceCourse> course;  // progress of a running race
    BuiltCandidate candidate;
    bool answered = false;  // of a runner: what became of its build has been told
    bool built = false, ran = false, waits_for_device = false;
    int64_t since_ms = 0;
    uint64_t order = 0;
  };
  using Key = std::pair<std::string, int>;  // trial, attempt
  static Key key(const v1::Lease& lease) { return {lease.trial_id(), lease.attempt()}; }
  Held* next_locked(bool built, bool on_device_only = false);
  bool on_device(const v1::Lease& lease) const { return options_.on_device && options_.on_device(lease); }
  // Several builds at once are going on.
  bool builds_many_locked() const;
  bool uses_every_core(const v1::Lease& lease) const;
  double best_locked(const v1::Lease& lease) const;
  v1::HeldLease& return_locked(const Held& held);
  bool return_waiting_locked(bool only_unanswered = false);
  bool builds_elsewhere() const { return options_.take_built != nullptr; }
  void take_acks_locked(const v1::SyncReply& reply);
  Status keep_owed_locked();
  // On disk before anybody is told, outside the lock: an fsync may take long. Meanwhile the spool may not be
  // cleared.
  Status spool(const std::function<Status()>& append, const std::function<void()>& owe_locked);
  void tell_phase() const {
    if (phase_began_) phase_began_();
  }

  const Options options_;
  Spool& spool_;
  std::function<void(const std::string&)> revoked_run_;
  std::function<void()> news_, phase_began_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string session_;
  std::map<Key, Held> held_;
  std::map<Key, v1::MeasureRecord> owed_;
  std::map<Key, v1::RaceResult> owed_races_;
  struct Returned {
    v1::HeldLease lease;
    bool told = false;  // by a request; the reply to it shows that the daemon has heard
  };
  std::map<Key, Returned> returned_;
  std::string unfit_;                      // why; empty: fit
  uint64_t phases_ = 0, told_phases_ = 0;  // how many began; of those, in the latest request
  bool unspooled_ = false;                 // something is owed from memory alone
  std::map<std::pair<std::string, std::string>, double> best_ns_;  // key: workload key and target
  uint64_t order_ = 0;
  bool building_instead_ = false;  // a build uses the runs' core
  int many_threads_ = 0;           // begun and not ended
  int spooling_ = 0;               // appends to the spool that are running
  bool draining_ = false, stopped_ = false;
};

// Returns the threads that a target's kernels use: its -threads option; 1 without one, and for a GPU.
int threads_of(const std::string& target);

}  // namespace tuner
