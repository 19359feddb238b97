// WorkBook: what a worker holds and owes, as those see it who keep in touch with its daemon (Talk) and look
// after its health (Fitness). Leases are in a WorkerCore, orders of a builder in a BuilderCore.
#pragma once

#include <string>

#include "measure.pb.h"

namespace tuner {

class WorkBook {
 public:
  virtual ~WorkBook() = default;

  virtual void set_session(std::string session) = 0;
  virtual std::string session() const = 0;
  // A request repeats all that is held and owed; a reply is applied as a difference. Both may be lost or
  // late.
  virtual v1::SyncRequest make_request(int wait_ms) = 0;
  virtual void apply(const v1::SyncReply& reply) = 0;
  // False: something began to be built or run since the latest request, and the daemon should hear of it
  // soon.
  virtual bool phases_told() const = 0;
  // Nothing is held or owed.
  virtual bool idle() const = 0;
  virtual bool draining() const = 0;  // takes nothing new, and leaves once idle

  // Takes nothing new, begins nothing, and gives back what waits. `why` is for people. Another call gives
  // back what was delivered meanwhile.
  virtual void set_unfit(const std::string& why) = 0;
  virtual void set_fit() = 0;
};

}  // namespace tuner
