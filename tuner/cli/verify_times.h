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

// Every task must have a certified answer. It is measured in fresh processes, and the new time must lie in the published
// 95 % interval (tuner/verify/published.h has the rule). A measurement that is not inside is repeated, after a pause. Prints a
// block per task, then how many were inside. Exit status 1: a time is OUTSIDE or cannot be judged, or a task has no certified
// answer.
int verify_times(const TimesOptions& options, int verbose);

}  // namespace tuner::cli
