// tuner verify FILE --times: are the published times true? Measures the tuned kernel of each task again and
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

// Every task must have a certified answer. It is measured in fresh processes, and the new time must lie in
// the published 95 % interval. If the pulse says that the core now runs at another clock (by 1.5 %), the
// interval is stretched by what that explains, and the line says so. Prints one line per task, then how many
// were inside and how wide the intervals are. Exit status 1: a time is outside or too disturbed to judge, or
// a task has no certified answer.
int verify_times(const TimesOptions& options, int verbose);

}  // namespace tuner::cli
