// Step masks: conditions of asynchronous copies in a loop, decided once before it.
//
//   for k_tile                                           unsigned data_inside[4];
//     unrolled round: copy                               for round: { if (c(0)) data_inside[round] |= 1; if
//                                                        (c(1)) ... |= 2; ... }
//       c(k_tile / 2) ? x[..] : 0                  ->    for k_tile
//                                                          unrolled round: copy (data_inside[round] & bits[k_tile]) != 0 ? x[..] : 0
//
// A convolution asks of each pixel and each position of its kernel whether they lie in the image: four
// comparisons and two sums. But the steps of the loop are of few kinds, one for each position, so that a
// register holds all answers for a pixel, and a step asks for a bit of it. Which bit is a table in constant
// memory. The answers are those of the conditions, so nothing else knows of it.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/codegen_cuda/copy_steps.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::cuda {

struct StepMask {
  Var var;           // in the body: the bits that are left; the condition is that there are some
  std::string name;  // "data_inside"
  Stmt over;         // the loop of rounds that it has an element for
  const VarNode* before = nullptr;  // the serial loop that it is made before
  std::vector<Expr> kinds;          // the condition in each kind of steps: bit 0, bit 1...
  Steps steps;
  std::vector<int64_t> kind_of_step;  // position in `kinds`
};

// The body with conditions replaced by masks, where they pay. `body`: simplified.
Stmt with_step_masks(const Stmt& body, const GpuKernel& kernel, std::vector<StepMask>& masks);

}  // namespace tuner::cuda
