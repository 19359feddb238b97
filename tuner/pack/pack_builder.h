// What `tuner pack` puts into a pack: inputs, reference answers, and compiled candidates of one task.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "measure_server/runner/pack_file.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

struct PackOptions {
  int candidates = 100;  // of each task at most; fewer when its space or the filter leaves no more
  uint64_t seed = 0;     // of the draws
  // CUDA tasks: share of the candidates drawn evenly, the others are the best by estimated time
  // (pack_draws.h).
  int random_percent = 20;
  // CUDA tasks: the kernels as the emulator's CPU Programs, compiled for this host. Their records are of the
  // target "... -emulated", never of the GPU.
  bool emulate = false;
  int threads = 0;  // that compile; 0: as many as there are CPUs
};

// How the candidates came about, for people.
struct PackCounts {
  int64_t drawn = 0;
  std::map<PackPick, int64_t> picked;  // candidates, by why they are in
  std::string last_refusal;            // why a config was not taken: the filter, mostly
};

// Most that inputs and outputs (float32) and their reference answers (float64) of one task may take together,
// and most floating-point operations of its reference answer, which is made on the CPU.
inline constexpr double kMostPackTaskBytes = 16.0 * (int64_t{1} << 30), kMostPackTaskFlops = 5e13;

// InvalidArgument, with size and limit: a task whose inputs and reference answer are not to be made here.
Status check_pack_size(const CliTask& task);

// The default config of each template that serves the task first, then configs in the order of pack_draws.h;
// what the static filter refuses is not taken. The same seed gives the same pack. Errors: no
// template serves the task, its reference answer cannot be made, or no config compiles here (the message has
// the last reason, so a missing NVRTC shows at once).
Result<PackTask> pack_task(const CliTask& task, const PackOptions& options, PackCounts& counts);

}  // namespace tuner
