// Desk: one thread that answers Syncs, all that have come together in one turn.
//
//   begin    who speaks, what it holds, gives back, and how its races stand
//   results  all in one commit, then acknowledged (result_intake.h)
//   leases   what each may have is chosen, all in one commit, then granted (leasing.h)
//   answer   those with news; the others wait here as values until there is some
//
// So the busier the daemon is, the more calls share a commit. The desk also takes back leases that ran out.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "measure.pb.h"
#include "tuner/daemon/edge/metrics.h"
#include "tuner/daemon/edge/sync_call.h"
#include "tuner/daemon/rooms/build_office.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/coordinator_options.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/job_news.h"
#include "tuner/daemon/rooms/leasing.h"
#include "tuner/daemon/rooms/locked.h"
#include "tuner/daemon/rooms/loss_office.h"
#include "tuner/daemon/rooms/result_intake.h"

namespace tuner {

class Desk {
 public:
  // All of these outlive the desk.
  struct Parts {
    Guarded<FarmState>& farm;
    const Clock& clock;
    const CoordinatorOptions& options;
    DaemonMetrics& metrics;
    JobNews& news;
    BuildOffice& builds;
    LossOffice& losses;
    ResultIntake& results;
    Leasing& leasing;
  };
  explicit Desk(Parts parts) : of_(parts) {}
  ~Desk();  // stops
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  // Starts the thread, unless turns are made by hand.
  void start();
  // After FarmState::stopping is set: answers every call that waits, and ends the thread. Calls that come
  // later are refused. Calling it twice is fine.
  void stop();

  // Any thread, without the lock of the farm (Coordinator::sync, cancel_sync).
  uint64_t sync(const v1::SyncRequest& request, v1::SyncReply* reply, SyncCall::Done done);
  void cancel_sync(uint64_t call);
  // Something may be leased or answered. With the lock of the farm or without it.
  void wake();

  // By hand: one turn of what has come; and whether something has come since.
  void turn();
  bool some_came() const { return Locked(inbox_)->some(); }

 private:
  struct Batch;
  // What has come since the last turn. Taken inside the lock of the farm, never around it.
  struct Inbox {
    SyncCalls arrived;
    std::set<uint64_t> gone;
    bool woken = false, stopping = false, stopped = false;
    uint64_t last_call = 0;
    bool some() const { return !arrived.empty() || !gone.empty() || woken; }
    Batch take();
  };
  void loop();
  void answer(SyncCalls arrived, const std::set<uint64_t>& gone);
  void drop_gone(const std::set<uint64_t>& gone, SyncCalls& arrived);
  void begin_calls(SyncCalls& arrived);
  bool begin_call(FarmState& farm, SyncCall& call, std::vector<LeaseTable::Loss>& losses);
  void take_courses(FarmState& farm, const SyncCall& call);
  void look_after_leases();
  bool speaks(FarmState& farm, SyncCall& call);
  void tell_revoked(FarmState& farm);
  void finish_or_wait(SyncCalls arrived);

  const Parts of_;
  Guarded<Inbox> inbox_;
  std::condition_variable come_;  // for the thread: the inbox has something
  // The thread's own: Syncs that wait, by session, and since when it has not looked after leases.
  WaitingSyncs waiting_;
  SyncCalls finished_;  // in this turn: their callers are told at its end
  int64_t looked_ms_ = 0;
  std::thread thread_;
};

}  // namespace tuner
