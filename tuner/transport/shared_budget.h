// SharedBudget: what all connections of a process may do together (SharedLimits), and who pays when they do
// more.
//
// It knows its members, one a connection. While more requests or resets come than allowed, members that send
// more than their fair share are to be read more slowly (Member::wait_ms), so the whole comes down to what is
// allowed and nobody else notices. A young member that resets beyond a handful meanwhile is condemned
// instead: whoever is closed and comes back has nothing to gain. When unfinished requests hold too many
// bytes, the member whose hold most is condemned: waiting would not free them.
//
// No clock and no thread: the caller gives the time and calls from one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tuner/transport/frame_limits.h"

namespace tuner::transport {

class SharedBudget {
 public:
  SharedBudget(const SharedLimits& limits, int64_t now_ms);
  SharedBudget(const SharedBudget&) = delete;  // members point to it
  SharedBudget& operator=(const SharedBudget&) = delete;

  // One connection's part. Registers itself for as long as it lives; the budget outlives it.
  class Member {
   public:
    explicit Member(SharedBudget* budget);  // nullptr: a member of nothing, never condemned
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    void request(int64_t now_ms);
    void reset(int64_t now_ms, bool young);
    // Bytes of unfinished requests that came (> 0), or are unfinished no longer (< 0).
    void bytes(int64_t change);

    // For how long not to read this one, because it uses more than its share of what is used up. 0: read on.
    int64_t wait_ms(int64_t now_ms) const;
    int64_t unfinished_bytes() const { return unfinished_bytes_; }
    const FrameVerdict& verdict() const { return verdict_; }

   private:
    friend class SharedBudget;
    void condemn(Cause cause, std::string reason);

    // How many events the current second and the one before had.
    struct Recent {
      int64_t second = 0;
      int64_t now = 0, before = 0;
      void add(int64_t now_ms);
      int64_t at(int64_t now_ms) const;
    };
    SharedBudget* budget_;
    size_t index_ = 0;  // in the budget's list
    Recent requests_, resets_;
    int64_t unfinished_bytes_ = 0;
    FrameVerdict verdict_;
  };

  // Returns true once after a member was condemned: then look at all of them.
  bool take_condemned();
  int64_t unfinished_bytes() const { return unfinished_bytes_; }

 private:
  // Requests or resets of all members.
  struct Kind {
    TokenBucket bucket;
    Rate rate;
    Member::Recent Member::*recent;  // where a member counts them
    int64_t share = 0;               // what a member may have had recently, while the bucket is in debt
    int64_t share_until_ms = 0;      // then it is worked out again
  };
  int64_t wait_ms(Kind& kind, const Member& member, int64_t now_ms);
  void too_many_bytes();

  const SharedLimits limits_;
  Kind requests_, resets_;
  int64_t unfinished_bytes_ = 0;  // of those not condemned
  std::vector<Member*> members_;
  bool condemned_ = false;
};

}  // namespace tuner::transport
