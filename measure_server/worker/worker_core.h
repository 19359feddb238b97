// WorkerCore: what a worker holds and owes. Leases come in by apply(), go through building and running, and
// leave as results that are kept, spooled on disk, until the daemon says it has them.
//
// Free of gRPC, processes and clocks of its own, so tests drive it step by step. Every method may be called
// from any thread. All messages may be lost, repeated or late: a request says everything anew, and a reply is
// applied by difference.
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

namespace tuner {

class WorkerCore {
 public:
  struct Options {
    int slots = 4;                  // leases held at once: one runs, the others are built or wait
    int cpus = 1;                   // this worker may use
    int64_t (*now_ms)() = nullptr;  // monotonic; default: steady_clock
  };
  // `spool` outlives this; what it holds is owed from the start.
  WorkerCore(Options options, Spool& spool);

  // --- the daemon's side ---
  void set_session(std::string session);
  std::string session() const;
  v1::SyncRequest make_request(int wait_ms) const;
  void apply(const v1::SyncReply& reply);
  // Called (without locks) when there is something the daemon should hear at once: a result, or a drain.
  void on_news(std::function<void()> f) { news_ = std::move(f); }

  // --- the build thread's side ---
  // Where builds take place: on cores no run has, or on that of the runs, only while there is nothing to run.
  enum class Builds : uint8_t { kBesideRuns, kInsteadOfRuns };
  // The next lease to build, in the order they came; empty after stop(). Waits while a run uses every core,
  // so no build disturbs it. kInsteadOfRuns waits until nothing is running or built, and no run begins until
  // its caller (one thread) asks for the next one.
  std::optional<v1::Lease> next_to_build(Builds builds = Builds::kBesideRuns);
  // It is built: may run now. False: revoked meanwhile, forget it.
  bool built(const v1::Lease& lease, const std::string& digest, double build_ms, double queue_ms);

  // --- the run thread's side ---
  struct Built {
    v1::Lease lease;
    std::string digest;
    double build_ms = 0, queue_ms = 0;
    double best_ns = 0;  // of the task, the latest news
  };
  // The next built lease, in the order they came; empty after stop(). One that uses every core waits until no
  // build is going on.
  std::optional<Built> next_to_run();

  // The result of a lease, in whatever phase: on disk before this returns. Results of revoked leases are kept
  // too: the daemon decides what they are worth. The error is the spool's: the lease is then still held and
  // the caller stops.
  Status finish(const v1::Lease& lease, const v1::MeasureRecord& record);

  // The result of a race. Not spooled: one that a crash of this worker takes along is run again by whoever is
  // there.
  void finish_race(const v1::Lease& lease, const v1::RaceResult& result);

  // How far a race is, for the daemon's people.
  void tell_course(const v1::Lease& lease, const v1::RaceCourse& course);

  // Called (without locks) when a running lease was revoked. Set both callbacks before any thread starts.
  void on_revoked_run(std::function<void(const std::string& trial_id)> f) { revoked_run_ = std::move(f); }

  bool holds(const v1::Lease& lease) const;
  void drain();  // takes no new lease; idle() once the held ones are done and acknowledged
  bool draining() const;
  bool idle() const;
  void stop();                                          // wakes every waiting thread with nothing
  int64_t held_since_ms(const v1::Lease& lease) const;  // when the lease came

 private:
  struct Held {
    v1::Lease lease;
    v1::LeasePhase phase = v1::WAITING;
    std::optional<v1::RaceCourse> course;  // of a race that runs
    std::string digest;
    double build_ms = 0, queue_ms = 0;
    bool built = false;
    int64_t since_ms = 0;
    uint64_t order = 0;
  };
  using Key = std::pair<std::string, int>;  // trial, attempt
  static Key key(const v1::Lease& lease) { return {lease.trial_id(), lease.attempt()}; }
  Held* next_locked(bool built);
  bool uses_every_core(const v1::Lease& lease) const;
  double best_locked(const v1::Lease& lease) const;

  const Options options_;
  Spool& spool_;
  std::function<void(const std::string&)> revoked_run_;
  std::function<void()> news_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string session_;
  std::map<Key, Held> held_;
  std::map<Key, v1::MeasureRecord> owed_;
  std::map<Key, v1::RaceResult> owed_races_;
  std::map<std::pair<std::string, std::string>, double> best_ns_;  // by workload key and target
  uint64_t order_ = 0;
  bool building_instead_ = false;  // of runs
  int spooling_ = 0;               // appends to the spool going on
  bool draining_ = false, stopped_ = false;
};

// Threads a target's kernels use: its -threads option, 1 when it has none or is a GPU.
int threads_of(const std::string& target);

}  // namespace tuner
