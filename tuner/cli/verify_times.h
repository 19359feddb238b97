// tuner verify FILE --times: are published times true? Measures the tuned kernel of each task again and
// compares.
#pragma once

#include <string>

namespace tuner::cli {

struct TimesOptions {
  bool asked = false;
  std::string file, target, db, daemon;
  int processes = 3;
  bool json = false;
};

// Every task's best config must come of a race. It is measured in fresh processes, as a ratio to the sentinel
// kernel of the same run, and the ratio is looked up in the published 95 % interval. Prints a line a task,
// then how many were inside and how wide the intervals are. Exit code 1: one or more outside, or a task
// without a race.
int verify_times(const TimesOptions& options, int verbose);

}  // namespace tuner::cli
