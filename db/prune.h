// Which records of a task may be removed: those on which no answer rests.
//
// What stays, of every task (workload, target):
//   - the trials that a race names: finalists, winner, default, the answer before it
//   - the fastest `keep` trials of each template on each machine, compiler and harness
//   - the first trial of each job: the default config
//   - every trial of a job that has not ended, and every record that is newer than the rules say
// A trial is pruned whole: all its records or none. Its own row stays, so that names such as j3.17 stay, and
// so that a search that continues does not propose its config again. What was removed is counted in the table
// `pruned`: usage and outcomes still tell of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tuner {

struct PruneRules {
  int64_t keep = 100;              // at least 1
  int64_t until_record_id = 0;     // only records up to this: those that an export holds
  int64_t finished_before_us = 0;  // only records that finished before; 0: of any time
};

struct PruneCount {
  int64_t records = 0;                              // removed, or to be removed
  int64_t trials = 0;                               // whose records they were
  int64_t kept = 0;                                 // records that stay
  double run_s = 0;                                 // wall clock of the removed runs
  bool more = false;                                // the call ended at its limit: call again
  PruneCount& operator+=(const PruneCount& other);  // all but `more`
};

// A record as the rules see it.
struct PruneCandidate {
  int64_t record_id = 0, trial_seq = 0;
  bool ranked = false;  // terminal, correct, not cut: it can be an answer
  bool needed = false;  // by a race, an open job, or as the default config
  double time_ns = 0;
  std::string group;  // template and environment
  int64_t finished_at_us = 0;
};

// Returns the ids of the records to remove, in ascending order.
std::vector<int64_t> records_to_prune(const std::vector<PruneCandidate>& records, const PruneRules& rules);

}  // namespace tuner
