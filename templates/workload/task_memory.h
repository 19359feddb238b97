// What measuring a task takes from a machine, known before anything is allocated.
#pragma once

#include <cstdint>

#include "compiler_core/base/status.h"
#include "templates/workload/workload.h"

namespace tuner {

struct TaskMemory {
  int64_t operand_bytes = 0;  // inputs and outputs as a kernel gets them: the least that a candidate takes
  int64_t making_bytes = 0;   // peak of the process that makes inputs and reference answer
  int64_t disk_bytes = 0;     // files with both; a reference kept as sums takes less
};

// Computed from the shapes alone. making_bytes is what task_data() (measure_server/worker) takes; the test of
// task_data compares the two.
TaskMemory task_memory(const Workload& workload);

// Resident in a candidate's process before it is given operands: the runner's code, its data, guard pages.
// Seen with a product of 37.1 MiB of operands: out of memory at a limit of 51.2 MiB, measured at 56.3 (tuner
// submit, 2026-11-27).
inline constexpr int64_t kCandidateProgramBytes = int64_t{15} << 20;

// What is available. INT64_MAX: not judged.
struct Room {
  int64_t candidate_bytes = INT64_MAX;  // limit of a candidate, MeasureOptions::memory_limit_bytes
  int64_t program_bytes = 0;         // what a candidate takes there beside operands, kCandidateProgramBytes
  int64_t memory_bytes = INT64_MAX;  // available_memory() of the machine that makes the reference answer
  int64_t disk_bytes = INT64_MAX;    // available_disk() of that machine's cache
};

// InvalidArgument if the task cannot be measured in that room: what it takes, what there is, what to do.
Status fits(const Workload& workload, const Room& room);

}  // namespace tuner
