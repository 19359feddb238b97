#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/ir/stmt.h"
#include "templates/workload/parts/product.h"

namespace tuner {

template <class W>
class OperatorFacts;

// out[b, i, j] = act((sum over k of a[b, i, k] * b[b, k, j] + bias[j]) * scale[j] + residual[b, i, j]); bias,
// scale, residual and act are optional. Operands may be stored transposed. Types: parts/product.h.
struct MatmulWorkload {
  static constexpr std::string_view kOp = "matmul";
  static constexpr bool kMemoryBound = false;
  static const OperatorFacts<MatmulWorkload>& facts();
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool transpose_a = false;        // a stored [K, M]
  bool transpose_b = false;        // b stored [N, K]
  bool bias = false;               // [N]
  bool scale = false;              // [N]
  bool residual = false;           // [batch, M, N]
  bool accumulate = false;         // the residual lies on out; not both
  std::vector<EpiloguePart> post;  // order of the parts, if not the usual one
  Activation activation = Activation::kNone;
  DType dtype = DType::kFloat32;
  bool allow_tf32 = false;            // only of float32
  std::optional<DType> narrow_out;    // type of out if it is not that of the sums
  std::vector<std::string> constant;  // of "a", "b", "bias"; sorted

  DType out_dtype() const { return narrow_out.value_or(sum_dtype(dtype)); }
};

// Its math with a as float32 in a stage of its own, "wide": what a loop broadcasts is not converted each
// time.
Program matmul_of_wide(const MatmulWorkload& w);
// The same where the product of two numbers is that of tensor cores, by 1 or 3 terms (tf32_product of
// ir/intrinsic.h).
Program matmul_of_tf32(const MatmulWorkload& w, int terms);

}  // namespace tuner
