// Scheduled Programs become programs of the NPU.
//
// Loops run here, while compiling: a program is a straight list of instructions. Each of these becomes one:
//   a nest of loops around a store into a shared buffer      `load`: a rectangle of an argument
//   up to two loops around the intrinsic npu.rows            `matmul`: its rows, for the same weights
//   a loop around npu.terms                                  `matmul_os`: its terms
//   loops over results and taps around npu.channels          `macc`: its rows and taps
//   npu.zero                                                 nothing: the first product does not add
//   a nest around a maximum into a shared buffer             `pool`; its beginning is nothing, as above
//   a loop around a sum of two with scales (out_stage.h)     `add`
//   two loops around a row's softmax or norm (row_math.h)    `softmax`, `norm`
//   a nest around a copy of a shared buffer to an argument   `store`
//   a nest of loops around a store into an argument          `store_sums`, requantised (out_stage.h)
// Shared buffers are in the scratchpad, fragments in the accumulators. A fragment has several places, which
// it takes in turn each time it is set to 0: while one is stored, products go into another. Copies that
// pipeline() made stand where it put them, which decides how far the load queue runs ahead; its groups and
// waits are not needed, since tokens follow from what instructions touch (npu/tokens.h).
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/npu/kernel_file.h"
#include "compiler_core/npu/machine.h"

namespace tuner {

struct NpuProgram {
  npu::KernelFile kernel;
  // For people: what stood in the Program, and in which iterations of the loops around. One per instruction
  // that begins something else than the one before: its number, and the line.
  std::vector<std::pair<uint32_t, std::string>> notes;
};

// InvalidConfig: what the device has no instruction for, or has no room for.
Result<NpuProgram> lower_to_npu(const Program& program, const npu::Machine& machine);

}  // namespace tuner
