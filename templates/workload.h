// Workload: what is to be computed: operator, shapes, types, layouts, epilogue. Nothing of how, where or how
// long to search.
//
// key() is canonical text, starts with its version and parses back; it is the key of the database and of the
// reference cache.
//   v1 conv2d n=1 ic=512 ih=7 iw=7 oc=512 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 act=relu
//      dtype=float32 layout=NCHW const=weight                                                  (on one line)
//   v1 matmul b=1 m=1024 n=1024 k=1024 ta=0 tb=0 bias=0 act=none dtype=float32 const=b
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

enum class Activation : uint8_t { kNone, kRelu };

// out[b, i, j] = act(sum over k of a[b, i, k] * b[b, k, j] + bias[j]). Operands are stored transposed where
// said.
struct MatmulWorkload {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool transpose_a = false;  // a stored [K, M]
  bool transpose_b = false;  // b stored [N, K]
  bool bias = false;         // [N]
  Activation activation = Activation::kNone;
  DType dtype = DType::kFloat32;
  std::vector<std::string> constant;  // of "a", "b", "bias", sorted
};

// out[n, oc, oh, ow] = act(sum over ic, kh, kw of data[n, ic, oh*sh + kh*dh - top, ow*sw + kw*dw - left] *
// weight[oc, ic, kh, kw] + bias[oc])
struct Conv2dWorkload {
  int64_t batch = 1, in_channels = 1, in_height = 1, in_width = 1;
  int64_t out_channels = 1, kernel_height = 1, kernel_width = 1;
  std::array<int64_t, 2> stride{1, 1};         // vertical, horizontal
  std::array<int64_t, 4> padding{0, 0, 0, 0};  // top, left, bottom, right
  std::array<int64_t, 2> dilation{1, 1};
  int64_t groups = 1;
  bool bias = false;  // [OC]
  Activation activation = Activation::kNone;
  DType dtype = DType::kFloat32;
  std::string layout = "NCHW";
  std::vector<std::string> constant;  // of "data", "weight", "bias", sorted

  int64_t out_height() const {
    return (in_height + padding[0] + padding[2] - dilation[0] * (kernel_height - 1) - 1) / stride[0] + 1;
  }
  int64_t out_width() const {
    return (in_width + padding[1] + padding[3] - dilation[1] * (kernel_width - 1) - 1) / stride[1] + 1;
  }
};

class Workload {
 public:
  Workload() = default;
  Workload(MatmulWorkload w) : op_(std::move(w)) {}
  Workload(Conv2dWorkload w) : op_(std::move(w)) {}

  std::string_view op_name() const;  // "matmul", "conv2d"
  std::string key() const;
  // Multiply and add counted as two; padding counted as work; epilogue not counted.
  int64_t flops() const;
  bool is_constant(std::string_view operand) const;
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&op_);
  }

  // The math, unscheduled: arguments inputs and constants in file order (a, b, bias | data, weight, bias),
  // then "out".
  Program compute() const;

 private:
  std::variant<MatmulWorkload, Conv2dWorkload> op_;
};

Result<Workload> workload_from_key(std::string_view key);
// Shapes at least 1, padded input not smaller than the dilated kernel, byte sizes below 2^40: the message
// says which.
Status validate(const Workload& workload);

}  // namespace tuner
