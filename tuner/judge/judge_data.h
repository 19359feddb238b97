// The inputs that a judged kernel meets, and the right answers to them.
//
// The first set is the one it is timed on. The others are kept back: one is new in every element; those
// beside it differ from the first in one element or in a few, so that a kernel that looks at a sample of
// its inputs is told that nothing changed; in the last most elements are the least or the greatest of the
// first set. Every element is drawn as those of the first set are, so all are inputs that the job file
// allows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "measure_server/runner/runner_protocol.h"
#include "templates/workload/workload.h"

namespace tuner {

struct JudgeData {
  // Files below `folder`, by argument.
  std::vector<RunRequest::Data> inputs, references;
  std::vector<RunRequest::InputSet> others;
  CheckSpec check;
};

// Makes them with `seed` and writes them below `folder`. The workload's own function answers, or the arrays
// that it brings: these answer the first set alone, and there are no others. InvalidConfig: the function
// does not compile, crashes or does not end.
Result<JudgeData> make_judge_data(const Workload& truth, uint64_t seed, int threads,
                                  const std::string& folder);

// The sets of bytes alone, the first one first; `dtypes` and `may_differ` tell of each list of bytes what
// its elements are and whether another seed gives others. Made for tests.
std::vector<std::vector<std::string>> judge_inputs(const std::vector<std::string>& first,
                                                   const std::vector<std::string>& second,
                                                   const std::vector<DType>& dtypes, uint64_t seed);

}  // namespace tuner
