// Maker: makes artifacts and the data of tasks, as files in the shared cache. A builder process does so on
// this machine (BuilderClient); a runner fetches what builders elsewhere have made (RemoteMaker).
#pragma once

#include <chrono>

#include "compiler_core/base/status.h"
#include "measure_server/worker/builder_protocol.h"

namespace tuner {

class Maker {
 public:
  virtual ~Maker() = default;
  // DeadlineExceeded: not within `limit`. Failed: the candidate, or what makes it, broke; the message says
  // how. Unavailable: this host cannot make anything now. NotFound: what was made elsewhere is not to be had
  // any more, and has to be awaited again. Used by one thread.
  virtual Result<BuildReply> ask(const BuildRequest& request, std::chrono::milliseconds limit) = 0;
  // What it can make for this host.
  virtual const BuildReply& hello() const = 0;
};

}  // namespace tuner
