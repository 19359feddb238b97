// runner run-pack: measures the candidates of a pack by its plan and writes each result as a line of JSON at
// once.
//
// Candidates run as they do under a worker: this process starts its own runner (--serve) and asks it. Cubins
// run on the first GPU, shared objects on this CPU. A candidate that crashes, hangs or is wrong is measured
// once and does not enter the next round.
#pragma once

#include <string>

namespace tuner {

struct RunPackOptions {
  std::string pack, output;
  double deadline_s = 0;  // for the whole run; 0: as in the plan
};

// Returns the exit status. 0: done, or the deadline came with something measured. 1: nothing measured, or
// stopped by an error told on stderr. 2: wrong use, such as a missing or damaged pack, or an output that
// holds something else or that another process writes. An existing output is continued: its results are not
// measured again.
int run_pack(const RunPackOptions& options);

}  // namespace tuner
