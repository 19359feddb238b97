#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/stmt.h"
#include "templates/workload/parts/activation.h"

namespace tuner {

template <class W>
class OperatorFacts;

// The types of weights that it can have. int4: 0 to 15, of which a zero point is taken away.
enum class NBitsType : uint8_t { kInt4 };

// out[i, j] = act(sum over k of a[i, k] * (b[j, k] - zero[j, k / group]) * scales[j, k / group] + bias[j])
//
// A product whose weights are whole numbers of 4 bits, in groups along k: ONNX Runtime's MatMulNBits. Weights
// are as that has them, two in a byte, the first in the low half:
//
//   b            uint8     [n, groups, group / 2]     groups = ceil(k / group); whole groups, also the last
//   scales       float32   [n, groups]
//   zero_points  uint8     [n, ceil(groups / 2)]      two in a byte; 8 for all where there are none
//
// What stands in b beyond k counts for nothing.
struct MatmulNBitsWorkload {
  static constexpr std::string_view kOp = "matmul_nbits";
  static constexpr bool kMemoryBound = false;
  static const OperatorFacts<MatmulNBitsWorkload>& facts();
  int64_t m = 1, n = 1, k = 1;
  int64_t group = 32;  // a power of two, 16 to 256
  NBitsType b_dtype = NBitsType::kInt4;
  bool zero_points = false;
  bool bias = false;  // [n]
  Activation activation = Activation::kNone;
  DType dtype = DType::kFloat32;      // of a, scales, bias and out
  std::vector<std::string> constant;  // of "b", "bias", "scales", "zero_points"; sorted

  int64_t groups() const { return ceil_div(k, group); }
};

// The same in the form that vectors compute fastest. Eight weights in a row of k are a word of 32 bits. A
// weight stays at its place in the word, where it is 16^e times as much, and the number that it is multiplied
// by is as many times less, which is exact. So a vector of words becomes a vector of weights by one `and` and
// one conversion. Zero points are taken away from a group's sum, by the sum of the group's part of a.
//
//   words[j, t]       int32     the eight weights from k = 8 t on
//   spread[i, t, e]   float32   a[i, 8 t + e] / 16^e; of the last of a word, which is shifted down, as it is;
//                               0 beyond k
//   minus[i, g]       float32   the sum of a's group g, times -8; where there are zero points, times -1
//   zeros[j, g]       uint8     the zero points, a byte each, where there are some
//   part[g, i, j]     float32   sum over t, e of a group of spread[i, t, e] * (its place in words[j, t])
//   acc[i, j]         float32   sum over g of (part + zeros * minus) * scales[j, g]
Program matmul_nbits_of_words(const MatmulNBitsWorkload& w);

}  // namespace tuner
