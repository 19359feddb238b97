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

// Every task's answer must be certified. It is measured in fresh processes, and the time looked up in the
// published 95 % interval; where the pulse says that the core now runs at another clock (1.5 %), the interval
// is stretched by what that explains, and the line says so. Prints a line a task, then how many were inside
// and how wide the intervals are. Exit code 1: one or more outside or too disturbed to be judged, or a task
// without a certified answer.
int verify_times(const TimesOptions& options, int verbose);

}  // namespace tuner::cli
