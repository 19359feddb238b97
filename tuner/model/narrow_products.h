// Products of weights in 16 bits: what `tuner compile --precision bfloat16` makes of the steps of a model.
#pragma once

#include "compiler_core/base/dtype.h"
#include "compiler_core/target.h"
#include "tuner/model/partition.h"

namespace tuner {

// OK if the CPU multiplies numbers of the type with an instruction of its own. InvalidArgument, one line for
// people: it does not, or the target is no CPU.
Status check_has_unit(const Target& target, DType dtype);

// Lets every product of float32 with constant weights multiply numbers of `dtype`; sums, bias and what
// follows stay float32. Weights are rounded here. What a product reads is rounded by a step before it, once
// for all products that read it, or by the product that makes it where only such products read that.
// Convolutions, and products of two values that a run computes, stay as they are.
// `model`: steps of partition(), before layouts. Returns how many products changed.
size_t narrow_products(ModelSteps& model, DType dtype);

// True for a step that narrow_products() changed.
bool is_narrowed(const ModelStep& step);

}  // namespace tuner
