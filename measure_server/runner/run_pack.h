// runner run-pack: measures the candidates of a pack by its plan and writes what it finds, a line of JSON
// each, as it goes.
//
// Candidates run as under a worker: this process starts a runner of its own (--serve) and asks it. Cubins run
// on the first GPU, shared objects on this CPU. A candidate that crashes, hangs or is wrong is measured once
// and does not go on to the next round.
#pragma once

#include <string>

namespace tuner {

struct RunPackOptions {
  std::string pack, output;
  double deadline_s = 0;  // of the whole run; 0: the plan's
};

// The exit status: 0 done, or the deadline reached with something measured; 1 nothing measured, or what
// stopped it is told on stderr; 2 wrong use: no such pack or a damaged one, an output that holds something
// else or that another process writes. An output that exists is gone on with: what stands in it is not
// measured again.
int run_pack(const RunPackOptions& options);

}  // namespace tuner
