// Workers: who has registered, what each can measure, and who is here.
//
//   enter         a worker begins; what it held in an earlier life has died with that life
//   begin_sync    each of its Syncs; while the call waits, check() tells whether another has taken over
//
// A worker that is not heard of for `silent_ms` counts as away: nobody plans with it, but it stays registered
// and may be back with its next Sync. After ten minutes it leaves the list. What an absent worker held is
// none of this table's business: leases run out by themselves (lease_table.h).
//
// Pure: no clock, no threads, no random numbers. The caller says what time it is (milliseconds, monotonic),
// thinks up the names of sessions, and holds its own lock around every call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/daemon/work.h"

namespace tuner {

class Workers {
 public:
  explicit Workers(int64_t silent_ms) : silent_ms_(silent_ms) {}

  // What a worker says of itself.
  struct Offer {
    WorkerLife life;
    std::string host;
    std::vector<std::string> targets;   // canonical names
    std::vector<std::string> features;  // of its host: they decide what code it measures (Backend::measures)
    int max_threads = 1;
    bool races = false;
  };
  // Registers the worker under a new session. Its earlier sessions are unknown from now on; returns those of
  // its earlier lives (other incarnations), whose leases are lost. It keeps its count of trials.
  std::vector<WorkerLife> enter(const std::string& session, Offer offer, int64_t now_ms);

  // A Sync of the session, whose worker has room for `capacity` leases, those it holds included. Returns the
  // number of the call; nothing when the session is unknown.
  std::optional<uint64_t> begin_sync(const std::string& session, int capacity, int64_t now_ms);
  enum class Call { kCurrent, kOvertaken, kUnknown };
  // Whether that call still speaks for the worker, or a newer one does. A current call is a sign of life.
  Call check(const std::string& session, uint64_t call, int64_t now_ms);

  const WorkerLife* life(const std::string& session) const;  // null: unknown; good until the next enter()
  void count_trial(const std::string& session);              // it has measured one more

  // Whether the session's worker measures for the target: it offers it, or its CPU runs code for it with
  // enough threads. Races only where it can race. False when the session is unknown.
  bool serves(const std::string& session, WorkKind kind, const std::string& target);
  // The same of any worker on the list.
  bool served(WorkKind kind, const std::string& target);
  // Of the workers that are here:
  int racers(const std::string& target, int64_t now_ms);  // how many race kernels of the target
  int capacity(int64_t now_ms) const;                     // leases they have room for, as they last said

  // CPU targets on offer, each with the most threads that a worker has for it.
  std::map<std::string, int> cpus() const;
  struct Entry {
    Offer offer;
    int64_t trials_done = 0, silent_ms = 0;
  };
  std::vector<Entry> list(int64_t now_ms) const;  // in order of sessions

 private:
  struct Worker {
    Offer offer;
    int64_t last_seen_ms = 0, trials_done = 0;
    int capacity = 0;
    uint64_t latest_call = 0;
    std::map<std::string, bool> serves;  // target -> may it be measured here; filled as asked
  };
  static bool measures(Worker& worker, WorkKind kind, const std::string& target);
  bool here(const Worker& worker, int64_t now_ms) const { return now_ms - worker.last_seen_ms <= silent_ms_; }

  int64_t silent_ms_;
  std::map<std::string, Worker> workers_;  // by session
};

}  // namespace tuner
