// The turns of a heat, for any kind of device: who has one when, which are taken anew, which count.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// A candidate that takes part in a heat and works only while it has a turn.
class Contestant {
 public:
  virtual ~Contestant() = default;
  // The first turn loads the candidate, runs it once, and finds how many calls fill a sample. Each later turn
  // warms up and takes RaceRequest::samples samples. False: it has left the race, and finish() says why.
  virtual bool take_turn() = 0;
  virtual bool turn_was_calm() const = 0;  // the latest one, by its own pulses
  // Lets it run once more and judges. The reply has the samples of all turns but the first.
  virtual RunReply finish() = 0;
  // Valid after finish(): samples with the other kind of constants; the pulses beside each sample that ranks,
  // 0 where none was timed.
  virtual const std::vector<double>& other_ns() const = 0;
  virtual const std::vector<double>& pulses_ns() const = 0;
  virtual bool peer_gone() const = 0;
};

// The sentinels at one moment; 0: not timed.
struct Beside {
  double compute_ns = 0, memory_ns = 0;
};

// Gives each contestant `rounds` turns with sentinels between them; each round begins with another one. A
// turn that was disturbed is taken anew, for a second in all. `warm_up` is called when all are loaded. Sets
// `go_on` to false if the peer is gone. The caller sets RaceReply::run_ms.
RaceReply run_heat(const RaceRequest& request, std::span<const std::unique_ptr<Contestant>> contestants,
                   const std::function<void()>& warm_up, const std::function<Beside()>& sentinels,
                   bool& go_on);

}  // namespace tuner
