// LeaseTable: which open trial is queued, and which worker may run which one until when. A race and a rerun
// are trials here, too (work.h tells them apart); what a worker must know of each is kept with it, and goes
// with it.
//
// Pure: no clock, no disk, no threads. The caller says what time it is (milliseconds, monotonic), does the
// writing in the store between the two halves of a step, and holds its own lock around every call.
//
//              reserve            grant                 close
//   queued ------------> reserved ------> leased ----------------> forgotten
//      ^                                   |  expire, worker_lost, give_back, fault
//      +------------- requeued ---- lost <-+        (faults used up: lost for good)
//
// A result closes a trial in whatever state it is: work done late is still work done. But it counts only from
// the life of the worker that had its attempt (claim()): who had which is kept with the trial. Attempts,
// tokens and grants come from the store, so they survive a restart; a lease found in the store at start is
// kept for one fresh TTL, and a worker that lived through the restart takes it up again by naming its token.
//
// Blame: a lost lease is a fault of its trial only if the worker had said that it builds or runs it. What
// merely waited at a worker that died is innocent. (Of ten such losses one counts: a candidate that kills its
// worker right at its start may never have been said to run.) A trial that a worker was lost at is a suspect:
// who gets it next has nothing else meanwhile, so that a second loss tells something (poison_ledger.h). A
// worker that is busy gets nothing more until it is idle, and then the suspect; one worker drains for it at a
// time.
//
// A lease has a longest time, which its options decide (longest_s): whoever is at it for longer, or has it
// and does not begin, loses it and is told to stop. What was worked at for so long is a fault of the trial;
// nobody died of it.
//
// Costs: leases are found by owner and queued trials by what they need, so no call looks at trials that it is
// not about; only forget_job() and withdraw() do.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tuner/daemon/tables/lease_queue.h"
#include "tuner/daemon/tables/shares.h"
#include "tuner/daemon/tables/work.h"

namespace tuner {

struct LeaseOptions {
  // With the time in which a dead connection is noticed (server.cpp) and the wait until the next look, below
  // the 15 s after which a dead worker's trial is leased again.
  int64_t ttl_ms = 8'000;
  int64_t restart_grace_ms = 15'000;  // for leases found in the store; 0 where no worker can have survived
  // Faults of one trial before it is given up as device_lost. Two would do to recognise a candidate that
  // kills its workers; workers that are killed at random while they run innocent ones need more.
  int max_faults = 5;
  int max_failed_workers = 3;  // distinct workers that could not measure it: given up, too
};

class LeaseTable {
 public:
  explicit LeaseTable(LeaseOptions options = {}) : options_(options) {}

  struct Trial {
    std::string id, job_id;
    std::string tenant;  // of its job
    int priority = 0;    // of its job
    Work work;
    int attempt = 0;  // leases so far
    int64_t fencing = 0;
    std::vector<Grant> grants;  // of these leases, the latest
    bool suspect = false;       // a worker was lost at it, or at its config: it is leased alone
    // Whether its leases are rows of the store: a trial, or a race of a job; not what somebody waits for.
    bool in_store() const {
      return work.kind == WorkKind::kTrial || (work.kind == WorkKind::kRace && job_id != id);
    }
  };
  struct Held {
    std::string trial_id;
    int attempt = 0;
    int64_t fencing = 0;
    bool at_work = false;  // it is being built or run; else it waits
    bool running = false;  // at work: it is run, not built
  };
  using Owner = WorkerLife;

  enum class Added { kNew, kKnownAlready, kResultCame };  // kResultCame: its record is stored, do not run it
  Added enqueue(const Trial& trial);
  // A closed trial once more, before all others (tuner rerun). kKnownAlready: it is open.
  Added enqueue_again(const Trial& trial);
  // A lease found in the store: kept for the worker it was given to, until that one names it or plainly does
  // not hold it any more (heartbeat), at most for the grace.
  Added restore_leased(const Trial& trial, const std::string& worker_id, int64_t now_ms);

  // Who asks for work. Both are asked at most a few times a call.
  struct Asker {
    std::string worker_id, incarnation;
    std::function<bool(const Needs&)> serves;
    // Does a worker that is here, none of `except`, measure it, too? What failed on this one is left to it.
    std::function<bool(const Needs&, const std::set<std::string>& except)> others;
  };
  // Up to n queued trials that the asker serves, in the order of lease_queue.h; none of those in `held`. They
  // are reserved: grant() or release() each.
  std::vector<Trial> reserve(const Asker& asker, const std::set<std::string>& held, size_t n);
  // False when a result closed it meanwhile: do not deliver it.
  bool grant(const std::string& trial_id, const Owner& owner, int attempt, int64_t fencing, int64_t now_ms);
  void release(const std::string& trial_id);  // back to the front of the queue

  // What a result says of itself, held against the leases of an open trial.
  struct Claim {
    bool granted = false;            // that life had that attempt
    bool current = false;            // and it has it now
    std::optional<int64_t> held_ms;  // since that life first had the trial; empty: before a restart
  };
  // Nothing if the trial is not open here: then the store tells (TrialRow::grants).
  std::optional<Claim> claim(const std::string& trial_id, int attempt, const Owner& life,
                             int64_t now_ms) const;

  struct Heartbeat {
    std::vector<Held> revoked;         // closed or cancelled: stop
    std::vector<std::string> missing;  // leased to this worker, yet it does not hold them: its reply got lost
  };
  // Renews what the worker holds, and notes what it works at. `complete`: it has nothing beside `held`, no
  // unsent result either; what was kept for it since a restart and is not among these is lost at the next
  // expire().
  Heartbeat heartbeat(const Owner& owner, const std::vector<Held>& held, int64_t now_ms,
                      bool complete = false);
  // Its owner sent a result that could not be stored: the lease lives on, because the result comes again.
  void renew(const std::string& trial_id, const Owner& owner, int64_t now_ms);

  // Takes the job's queued trials (or races) out, as if they had never been enqueued, and returns their ids.
  // Those with a worker stay.
  std::vector<std::string> withdraw(const std::string& job_id, WorkKind kind = WorkKind::kTrial);

  // The job of the trial when it was open here. Otherwise remembers that its result came. `device_ms`: how
  // long a device worked for it, by its worker's word; nothing: as long as the worker said to be at it.
  std::optional<std::string> close(const std::string& trial_id, std::optional<double> device_ms = {});

  struct Loss {
    std::string trial_id;
    int attempt = 0;
    bool retry =
        false;  // requeue in the store, then requeued(); else store a device_lost record, then close()
    std::string message;       // for people
    bool told_anyway = false;  // its job hears of it by another line than `message`
    // The life that was lost while it built or ran the trial, if that is how it was lost.
    struct Death {
      WorkerLife life;
      bool running = false;  // else building
      bool alone = false;    // it had nothing else
    };
    std::optional<Death> death;
  };
  // Leases past their time. A stall of the daemon itself (no call for half a TTL) must not cost the workers
  // their leases: everybody then gets one fresh TTL instead.
  std::vector<Loss> expire(int64_t now_ms);
  // The worker is known to be dead: all it held is lost now.
  std::vector<Loss> worker_lost(const Owner& owner);
  // The worker gives the lease back unmeasured. Nothing if it is not this worker's lease with that token.
  std::optional<Loss> give_back(const Owner& owner, const Held& held, const std::string& why);
  // The worker could not measure it although it tried: another worker is to have it first. Nothing if the
  // trial is not leased.
  std::optional<Loss> fault(const std::string& trial_id, const std::string& worker_id,
                            const std::string& why);
  // The result of the owner's lease was unusable: it counts as lost at the next expire(). No effect if it is
  // not this owner's.
  void drop(const std::string& trial_id, const Owner& owner);
  void requeued(const std::string& trial_id);  // no-op when a result closed it meanwhile

  // What tenants may have, and had; how many trials of each wait.
  void set_shares(ShareByTenant shares) { shares_.set(std::move(shares)); }
  const Shares& shares() const { return shares_; }
  std::map<std::string, int64_t> waiting_by_tenant() const { return queue_.waiting_by_tenant(); }
  // What the queued trials and races of a job need.
  std::vector<LeaseQueue::JobLine> waiting_of(const std::string& job_id) const {
    return queue_.lines_of(job_id);
  }
  // Those of them with these needs, by id.
  std::vector<std::string> waiting_of(const std::string& job_id, const Needs& needs) const {
    return queue_.ids_of(job_id, needs);
  }

  // Owners of leases that were closed or forgotten since the last call: if they did not send the result
  // themselves, they are to hear of it (heartbeat).
  std::set<Owner> take_revoked() { return std::exchange(revoked_, {}); }

  const Trial* find(const std::string& trial_id) const;   // null when not open; good until the next call
  const Owner* owner(const std::string& trial_id) const;  // null when nobody has it
  void forget_job(const std::string& job_id);
  // Open trials for which `is` holds. Looks at all: for rare events.
  std::vector<std::string> find_all(const std::function<bool(const Trial&)>& is) const;
  size_t leases_of(const Owner& owner) const;
  size_t open_trials() const { return trials_.size(); }
  size_t queued() const { return queue_.size(); }
  size_t leased() const;  // with a worker, or kept for one since a restart
  // Since when the trial that is next in its queue has waited, the longest of all queues, to within the time
  // between two calls of expire(); now when none waits.
  int64_t oldest_queued_ms(int64_t now_ms) const;

 private:
  enum class State : uint8_t { kQueued, kReserved, kLeased, kLost };
  struct Entry {
    Trial trial;
    State state = State::kQueued;
    double charged_ms = -1;       // what its tenant was charged for the lease; negative: nothing
    int64_t granted_ms = 0;       // when it was leased
    int64_t at_work_ms = 0;       // since when it is at work
    int64_t overdue_fencing = 0;  // leases up to this token lasted too long: whoever has one is to stop
    std::optional<Owner> owner;   // leased: nobody yet after a restart
    std::string kept_for;         // the worker that had it before the restart
    bool at_work = false, running = false;
    bool alone = false;                         // reserved or leased as a suspect
    std::map<Owner, int64_t> first_granted_ms;  // since this daemon began
    std::optional<Owner> drains;                // suspect: who is becoming idle for it
    int64_t drains_since_ms = 0;
    int64_t expires_ms = 0;
    int faults = 0, innocent_losses = 0;
    std::set<std::string> lost_workers;    // that were lost while they worked at it
    std::set<std::string> failed_workers;  // that could not measure it
    bool dropped = false;
  };
  using Trials = std::unordered_map<std::string, Entry>;

  Added add(Entry entry, bool first);
  // The lease is over, and a device worked so long for it; nothing: as long as its worker said to be at it.
  void settle(Entry& entry, std::optional<double> device_ms);
  void put_in_queue(Entry& entry, bool first);
  void take_from_queue(const Entry& entry);
  void reserve(Entry& entry, std::vector<Trial>& reserved);
  void take_from_owner(Entry& entry);
  bool is_kept_for(const Entry& entry, const Owner& owner) const;
  // Of the queued suspects one that the asker serves. True: it is for this asker, who gets it if it is idle
  // and nothing else if not.
  bool reserve_suspect(const Asker& asker, const std::set<std::string>& held, std::vector<Trial>& reserved);
  void remove(Trials::iterator entry);
  void remember_closed(const std::string& trial_id);
  Loss lose_with_worker(Entry& entry, const std::string& why);
  Loss lose(Entry& entry, const std::string& why);
  // Whether the lease, or the work at it, has taken longer than it may.
  static bool overdue(const Entry& entry, int64_t now_ms);
  Loss lose_overdue(Entry& entry);
  std::vector<Loss> expire_of(const std::set<std::string>& leased, bool stalled, int64_t now_ms);

  LeaseOptions options_;
  Trials trials_;
  LeaseQueue queue_;
  Shares shares_;
  std::map<Owner, std::set<std::string>> leases_;  // by owner
  std::set<std::string> suspects_;                 // those that are queued
  std::set<Owner> alone_;                          // owners that have a suspect, and nothing else
  std::set<Owner> revoked_;
  std::map<std::string, std::set<std::string>> unclaimed_;  // leased before a restart: by worker id
  // Closed trials, the latest 65,536: one that is being loaded from the store may be among them.
  std::set<std::string> closed_;
  std::deque<std::string> closed_order_;
  std::optional<int64_t> first_expire_ms_, last_expire_ms_;
  int64_t now_ms_ = 0;  // as far as calls told
};

}  // namespace tuner
