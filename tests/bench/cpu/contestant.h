// Contestant: one way to compute a case, ours or a library's, ready to be called again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "templates/workload/tolerance.h"

namespace tuner {

enum class ContestantKind : uint8_t {
  kOurs,       // a kernel of ours
  kPeer,       // a library at its best: ratios are against the fastest of these
  kReference,  // a library as it is found (old kernels chosen by default): told, never counted
  kProbe,      // a ceiling of the machine: work of known size, timed in the same rounds
};

struct Contestant {
  std::string name;
  ContestantKind kind = ContestantKind::kPeer;
  std::string algorithm = "direct";   // as of templates/schedule_template.h
  std::string detail;                 // the kernel a library chose, the config of ours
  std::function<void(int set)> call;  // one call on set `set` of its operands
  // Fills the output of set 0 with what no kernel writes, and reads it in the plain layout. A probe has none.
  std::function<void()> poison;
  std::function<std::vector<double>()> answer;  // empty: it could not be read
  std::optional<Tolerance> tolerance;           // of its answer; none: that of the direct sums
  // Puts all operands of set 0 out of the caches. None: this cannot be done, or, of a probe, there are none.
  std::function<void()> flush;
  double work = 0;  // of a probe: operations or bytes of one call

  // Filled by take_turns().
  int64_t calls = 0;       // in a batch
  int next_set = 0;        // of a rotation: which one the next call is on
  std::vector<double> ns;  // per call, one a round
  // Filled by whoever checks it.
  double max_error = 0;  // in tolerances
};

// A peer that cannot take part, and why.
struct MissingPeer {
  std::string name, why;
};

}  // namespace tuner
