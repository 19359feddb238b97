// Makes the content of a pack for one task: inputs, reference answers, and compiled candidates.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "db/store.h"
#include "measure_server/runner/pack_file.h"
#include "measure_server/runner/reference_file.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

struct PackOptions {
  int candidates = 100;  // per task, at most; fewer if its space or the filter leaves no more
  uint64_t seed = 0;     // seeds the random draws
  // CUDA tasks: percentage of the candidates drawn at random; the others are the best by estimated time
  // (pack_draws.h).
  int random_percent = 20;
  int known = 0;               // so many of the store's fastest configs come first
  std::string known_hardware;  // by records of this machine alone; empty: all are of one
  // CUDA tasks: compile the emulator's CPU Programs of the kernels for this host. Their records have the
  // target "... -emulated", never the GPU.
  bool emulate = false;
  int threads = 0;  // threads that compile; 0: one per CPU
};

// How the candidates were chosen, for people.
struct PackCounts {
  int64_t drawn = 0;
  std::map<PackPick, int64_t> picked;  // number of candidates by the reason they are in
  std::string last_refusal;            // why a config was refused, usually by the filter
};

// Limits for one task: bytes of inputs and outputs (float32) with their reference answers (float64), and
// floating-point operations of its reference answer, which is made on the CPU.
inline constexpr double kMostPackTaskBytes = 16.0 * (int64_t{1} << 30), kMostPackTaskFlops = 5e13;

// How a pack holds the answer of this output of a workload: whole, or, where that is large, as sums and
// samples.
ReferenceKind packed_reference_kind(const Workload& workload, const Buffer& output);

// InvalidArgument: the task's inputs and reference answer are too large to make here, with size and limit; or
// it is a program of a user's, which packs do not hold.
Status check_pack_size(const CliTask& task);

// Puts in the default config of each template that serves the task, then what `store` (null: none) knows,
// then configs in the order of pack_draws.h, except those that the static filter refuses. The same seed and
// store give the same pack. Errors: no template serves the task, its reference answer cannot be made, or no
// config compiles here. The message has the last reason, so a missing NVRTC shows at once.
Result<PackTask> pack_task(const CliTask& task, const PackOptions& options, const Store* store,
                           PackCounts& counts);

}  // namespace tuner
