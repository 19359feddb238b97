// How a user's kernel of a GPU is launched, and kernels that come compiled ("language": "cuda", "ptx" or "cubin"
// in job files, docs/own_kernels.md).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/ir/foreign_code.h"
#include "templates/space/config_space.h"
#include "templates/space/formula.h"

namespace tuner {

struct SourceKernel;

// Expressions over sizes and knobs.
struct SourceLaunch {
  std::vector<Formula> grid, block;     // 1 to 3 each: x, y, z
  std::optional<Formula> shared_bytes;  // of dynamic shared memory; nothing: none
};

// A kernel that somebody compiled for one config.
struct ReadyKernel {
  std::vector<size_t> places;  // of its value in each of SourceKernel::knobs
  std::string file, function;  // function: its symbol
  SourceLaunch launch;
};
inline constexpr size_t kMostReadyKernels = 512;  // of a job

// The one of that config; null if there is none.
const ReadyKernel* ready_kernel(const SourceKernel& kernel, const Config& config);

// The launch under that config. InvalidArgument in one line that begins with the key: an expression has no value,
// or no device takes such a launch.
Result<ForeignLaunch> launch_of(const SourceKernel& kernel, const Config& config);

// Requires of the space that devices with so much shared memory for a block take each launch, and, of ready
// kernels, that there is one. `known`: names of sizes and knobs in the space. InvalidArgument: an expression that
// the space cannot have.
Status require_launch(const SourceKernel& kernel, const Formula::Space& known, int64_t most_shared_bytes,
                      ConfigSpace& space);

// What must hold of the launch and of ready kernels; all but names, knobs and constraints. InvalidArgument in one
// line that begins with the key.
Status check_launch(const SourceKernel& kernel);

}  // namespace tuner
