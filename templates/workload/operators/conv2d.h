#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/ir/stmt.h"
#include "templates/workload/parts/image.h"
#include "templates/workload/parts/product.h"

namespace tuner {

template <class W>
class OperatorFacts;
struct Epilogue;
namespace te {
class Builder;
}

// out[n, oc, oh, ow] = act((sum over ic, kh, kw of data[n, ic, oh*sh + kh*dh - top, ow*sw + kw*dw - left] *
// weight[oc, ic, kh, kw] + bias[oc]) * scale[oc] + residual[n, oc, oh, ow])
//
// Layouts (parts/image.h) are those of the arguments in memory. Weights are always [OC, IC/groups, KH, KW];
// templates pack constant weights ahead in their own order. Types: parts/product.h.
struct Conv2dWorkload {
  static constexpr std::string_view kOp = "conv2d";
  static constexpr bool kMemoryBound = false;
  static const OperatorFacts<Conv2dWorkload>& facts();
  int64_t batch = 1, in_channels = 1, in_height = 1, in_width = 1;
  int64_t out_channels = 1, kernel_height = 1, kernel_width = 1;
  std::array<int64_t, 2> stride{1, 1};         // vertical, horizontal
  std::array<int64_t, 4> padding{0, 0, 0, 0};  // top, left, bottom, right
  std::array<int64_t, 2> dilation{1, 1};
  int64_t groups = 1;
  bool bias = false;               // [OC]
  bool scale = false;              // [OC]
  bool residual = false;           // of out's shape
  bool accumulate = false;         // the residual lies on out; not both
  std::vector<EpiloguePart> post;  // order of the parts, if not the usual one
  Activation activation = Activation::kNone;
  DType dtype = DType::kFloat32;
  bool allow_tf32 = false;            // only of float32
  std::optional<DType> narrow_out;    // type of out if it is not that of the sums
  std::string layout = "NCHW";        // layout of data
  std::string out_layout = "NCHW";    // layout of out and residual
  std::vector<std::string> constant;  // of "data", "weight", "bias"; sorted

  DType out_dtype() const { return narrow_out.value_or(sum_dtype(dtype)); }
  int64_t out_height() const {
    return (in_height + padding[0] + padding[2] - dilation[0] * (kernel_height - 1) - 1) / stride[0] + 1;
  }
  int64_t out_width() const {
    return (in_width + padding[1] + padding[3] - dilation[1] * (kernel_width - 1) - 1) / stride[1] + 1;
  }
};

// Its math over a multiple of channels: where theirs are not one, zeros fill up data and weight, in the
// stages "filled" and "filled_weight", for images without blocks and one group.
Program conv2d_of_filled(const Conv2dWorkload& w, int64_t multiple);
// declare_epilogue() of parts/product_math.h for templates that pack none of these operands ahead: a constant
// bias is read as it is.
Epilogue declare_unpacked_epilogue(te::Builder& b, Conv2dWorkload w);

}  // namespace tuner
