// Plays another search on the recorded rows of a task, as if it had measured them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/search/search_strategy.h"
#include "tuner/study/task_records.h"

namespace tuner {

struct WhatIfOptions {
  size_t trials = 256;  // every proposal counts as a trial, recorded or not
  size_t batch = 16;    // proposed at a time; a whole batch is observed before the next
  int seeds = 10;       // seeds 0 to seeds - 1
};

// One seed. `share`: best recorded time of the task / best time found, after each trial; 0 before the first.
// The strategy observes only proposals that are recorded.
struct WhatIfRun {
  std::vector<double> share;
  int64_t proposed = 0, recorded = 0;
};

struct WhatIfResult {
  std::vector<WhatIfRun> runs;  // one per seed
  int64_t proposed() const;
  int64_t recorded() const;
  // Share of the proposals that are recorded; the result rests on these alone. 0 without proposals.
  double coverage() const;
};

// InvalidArgument: no such strategy.
Result<WhatIfResult> play_whatif(const SearchSpace& space, const TaskRecords& records,
                                 std::string_view strategy, const WhatIfOptions& options);

// What a task of a job itself found: its results in the order they came, as one run. `optimum_ns`: the task's
// best recorded time.
Result<WhatIfResult> found_by_job(const Store& store, const std::string& job, int task, double optimum_ns);

// The numbers of trials at which results are told: 32, 64, ... and all.
std::vector<size_t> whatif_marks(size_t trials);

// The share after `trials` trials over the runs (a shorter run counts with its last): its mean, 95 % interval
// (Student's t; with one run, all of 0 to 1), and smallest value.
struct WhatIfMark {
  double mean = 0, low = 0, high = 1, worst = 0;
};
WhatIfMark mark_after(const WhatIfResult& result, size_t trials);

}  // namespace tuner
