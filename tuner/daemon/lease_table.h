// LeaseTable: which open trial is queued, and which worker may run which one until when. A race and a rerun
// are trials here, too (work.h tells them apart); what a worker must know of each is kept with it, and goes
// with it.
//
// Pure: no clock, no disk, no threads. The caller says what time it is (milliseconds, monotonic), does the
// writing in the store between the two halves of a step, and holds its own lock around every call.
//
//              reserve            grant                 close
//   queued ------------> reserved ------> leased ----------------> forgotten
//      ^                                   |  expire, worker_lost
//      +------------- requeued ---- lost <-+        (attempts used up, or poison: lost for good)
//
// A result closes a trial in whatever state it is: work done late is still work done. The attempt and the
// fencing token come from the store, so they survive a restart; a lease found in the store at start is kept
// for one fresh TTL, and a worker that lived through the restart takes it up again by naming its token.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/daemon/work.h"

namespace tuner {

struct LeaseOptions {
  int64_t ttl_ms = 15'000;
  int64_t restart_grace_ms = 15'000;  // for leases found in the store; 0 where no worker can have survived
  int max_attempts = 5;               // leases of one trial before it is given up as device_lost
  int poison_workers = 2;  // distinct workers lost while they held it: it is poison, given up at once
};

class LeaseTable {
 public:
  explicit LeaseTable(LeaseOptions options = {}) : options_(options) {}

  struct Trial {
    std::string id, job_id;
    Work work;
    int attempt = 0;  // leases so far
    int64_t fencing = 0;
  };
  struct Held {
    std::string trial_id;
    int attempt = 0;
    int64_t fencing = 0;
  };
  using Owner = WorkerLife;

  enum class Added { kNew, kKnownAlready, kResultCame };  // kResultCame: its record is stored, do not run it
  Added enqueue(const Trial& trial);
  // A closed trial once more, before all others (tuner rerun). kKnownAlready: it is open.
  Added enqueue_again(const Trial& trial);
  Added restore_leased(const Trial& trial, int64_t now_ms);

  // Up to n queued trials, oldest first, that `serves` accepts; none of those in `held`. They are
  // reserved: grant() or release() each.
  using Serves = std::function<bool(const Work&)>;
  std::vector<Trial> reserve(const Serves& serves, const std::set<std::string>& held, size_t n);
  bool has_work(const Serves& serves, const std::set<std::string>& held) const;
  // False when a result closed it meanwhile: do not deliver it.
  bool grant(const std::string& trial_id, const Owner& owner, int attempt, int64_t fencing, int64_t now_ms);
  void release(const std::string& trial_id);  // back to the front of the queue

  struct Heartbeat {
    std::vector<Held> revoked;         // closed or cancelled: stop
    std::vector<std::string> missing;  // leased to this worker, yet it does not hold them: its reply got lost
  };
  // Renews what the worker holds.
  Heartbeat heartbeat(const Owner& owner, const std::vector<Held>& held, int64_t now_ms);

  // Takes the job's queued trials out, as if they had never been enqueued, and returns their ids. Those with
  // a worker stay, and so do the job's races.
  std::vector<std::string> withdraw(const std::string& job_id);

  // The job of the trial when it was open here. Otherwise remembers that its result came.
  std::optional<std::string> close(const std::string& trial_id);

  struct Loss {
    std::string trial_id;
    int attempt = 0;
    bool retry =
        false;  // requeue in the store, then requeued(); else store a device_lost record, then close()
    std::string message;  // for people
  };
  // Leases past their time. A stall of the daemon itself (no call for half a TTL) must not cost the workers
  // their leases: everybody then gets one fresh TTL instead.
  std::vector<Loss> expire(int64_t now_ms);
  // The worker is known to be dead: all it held is lost now.
  std::vector<Loss> worker_lost(const Owner& owner);
  // The lease's result was unusable: it counts as lost at the next expire().
  void drop(const std::string& trial_id);
  void requeued(const std::string& trial_id);  // no-op when a result closed it meanwhile

  const Trial* find(const std::string& trial_id) const;  // null when not open; good until the next call
  void forget_job(const std::string& job_id);
  size_t leases_of(const Owner& owner) const;
  size_t open_trials() const { return trials_.size(); }

 private:
  enum class State { kQueued, kReserved, kLeased, kLost };
  struct Entry {
    Trial trial;
    State state = State::kQueued;
    std::optional<Owner> owner;  // leased: nobody yet after a restart
    int64_t expires_ms = 0;
    std::set<std::string> lost_workers;
    bool dropped = false;
  };
  Loss lose(Entry& entry, const std::string& why);

  LeaseOptions options_;
  std::map<std::string, Entry> trials_;
  std::deque<std::string> queue_;  // ids; those not kQueued any more are skipped
  std::map<std::string, std::string>
      closed_;  // trial -> job (empty: closed while unknown), until the job is forgotten
  std::optional<int64_t> last_expire_ms_;
};

}  // namespace tuner
