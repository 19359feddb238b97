// What operators on bytes share: a byte stands for (byte - zero point) * scale, with one scale and one zero
// point a tensor.
#pragma once

#include <initializer_list>

#include "compiler_core/graph/families.h"

namespace tuner::graph {

// InvalidArgument: one of these inputs, where it is given, has several numbers.
Status check_single(const Use& use, std::initializer_list<size_t> inputs);
// The one number of an input.
Expr single(const Use& use, const MathWriter& m, size_t input);
// A zero point in 32 bits, 0 where it is not given.
Expr single_zero(const Use& use, const MathWriter& m, size_t input);
// What a byte stands for: input `x`, whose scale and zero point are behind it.
Expr real_of(const Use& use, const MathWriter& m, size_t x, const Expr& byte);
// A result in units of its scale as a byte: rounded to the nearest, of two the even one, and saturated.
Expr quantized(const Use& use, const MathWriter& m, const Expr& units, size_t zero);

}  // namespace tuner::graph
