// Workload: what is to be computed: operator, shapes, types, layouts, epilogue. It does not say how, where,
// or how long to search.
//
// key() is canonical text that starts with its version and parses back. It is the key of the database and of
// the reference cache.
//   v1 conv2d n=1 ic=512 ih=7 iw=7 oc=512 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 act=relu
//      dtype=float32 layout=NCHW const=weight                                                  (on one line)
//   (out_layout=NCHW16c follows layout if it differs; allow_tf32=1 follows dtype if it is so; scale=1, then residual=1,
//   residual=last or accumulate=1 follow bias if there are any; post=scale,bias,activation follows act if that is the order; out_dtype=uint8 follows dtype if out is
//   not of the type of the sums; act=clip:0:6 has numbers)
//   v1 matmul b=1 m=1024 n=1024 k=1024 ta=0 tb=0 bias=0 act=none dtype=float32 const=b
//   v1 pool2d n=1 c=64 ih=112 iw=112 kh=3 kw=3 stride=2,2 pad=1,1,1,1 pooling=max dtype=float32 layout=NCHW
//   (include_pad=1 follows pooling if an average counts padding)
//   v1 softmax rows=4096 columns=1024 dtype=float32
//   v1 layer_norm rows=4096 columns=768 eps=1e-05 dtype=float32
//   v1 reduce rows=4096 columns=1024 reduction=mean dtype=float32
//   v1 transpose rows=4096 columns=1024 dtype=float32
//   v1 elementwise rows=4096 columns=1024 scale=1 bias=1 residual=0 act=relu dtype=float32
//   v1 program in=float32[1,64,56,56],float32[64,1,1] Mul(0,1) LeakyRelu(2){alpha=0.1f}
//
// templates/README.md says how to add an operator.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "templates/workload/activation.h"

namespace tuner {

namespace graph {
struct Graph;
}

enum class RowReduction : uint8_t { kSum, kMax, kMin, kMean };
enum class Pooling : uint8_t { kMax, kAverage };
std::string_view pooling_name(Pooling p);             // "max", "average"
std::string_view row_reduction_name(RowReduction r);  // "sum", "max", "min", "mean"

// What follows the sum of a product, in the usual order.
enum class EpiloguePart : uint8_t { kBias, kScale, kResidual, kActivation };
inline constexpr EpiloguePart kEpilogueParts[] = {EpiloguePart::kBias, EpiloguePart::kScale,
                                                  EpiloguePart::kResidual, EpiloguePart::kActivation};
std::string_view epilogue_part_name(EpiloguePart p);  // "bias", "scale", "residual", "activation"

// Types of products (matmul, conv2d). `dtype` is the type of b (the weights); sums are wider:
//
//   dtype      a (data)               b (weight)   sums, bias, and out unless said   out_dtype may also be
//   float32    float32                float32      float32
//   bfloat16   bfloat16               bfloat16     float32: products are exact       bfloat16
//   float16    float16                float16      float32: products are exact       float16
//   int8       uint8 (activations)    int8         int32: exact; at most 2^16        uint8, int8
//                                                  terms, so that none overflows
//
// With `allow_tf32` numbers of float32 may lose their last 13 bits before they are multiplied, to 10 bits behind the leading one,
// which is what tensor cores take. It is a permission: a template that does not use it serves the task as well.
//
// residual has the type of out. With `accumulate` it lies on out: out holds it before the call, and the sum after it,
//
//   out = act(sum + bias + old content of out)
//
// which is out += a * b where there is no activation. To bfloat16 and float16 the value is rounded at the end, to the nearest, ties
// to even. To uint8 and int8 it is requantised, by two operands more, scale (float32, one a channel) and
// zero_point (one number of out's type):
//
//   out = saturate(round(act(float32(sum + bias[c]) * scale[c])) + zero_point)
//
// in float32, rounded to the nearest integer, ties to even; the integer then goes to the nearest that out
// holds, not a number to the lowest. Those are the steps of ONNX's QLinearMatMul and QLinearConv, with scale
// = (scale of a) * (scale of b) / (scale of out) and their relu before the rounding. A zero point of a is the
// caller's to fold into bias: bias[c] - (zero point of a) * (sum of b's column c); a convolution that pads
// needs 0 there. A residual is a number of 8 bits then, too, with two operands of its own, residual_scale (float32, one
// number) and residual_zero_point (one number of out's type):
//
//   out = saturate(round(act(float32(sum + bias[c]) * scale[c]
//                            + residual_scale * float32(residual - residual_zero_point))) + zero_point)
//
// where both products are rounded before they are added.
// Such a residual lies apart, never on out. Of the activations relu and clip then can be had, the numbers of
// clip in steps of out; int32 has relu alone.
//
// Where out is not of 8 bits and sums are of floats, `scale` multiplies by one number (float32) a channel, and `post` says
// in which order the parts come that there are, if not in the usual one:
//
//   out = act((sum + bias) * scale + residual)      usual
//   out = act(sum * scale + bias)                   post = {kScale, kBias, kActivation}
//   out = act(sum + bias) + residual                post = {kBias, kActivation, kResidual}: skip connections of YOLO
//
// Of a bias and a residual beside each other the bias is named first: one key for one meaning.
DType sum_dtype(DType dtype);
std::span<const DType> out_dtypes(DType dtype);  // what out may be; that of the sums first
DType left_dtype(DType dtype);                   // of a, of data

// out[b, i, j] = act((sum over k of a[b, i, k] * b[b, k, j] + bias[j]) * scale[j] + residual[b, i, j]); bias, scale,
// residual and act are optional. Operands may be stored transposed. Types: above.
struct MatmulWorkload {
  static constexpr std::string_view kOp = "matmul";
  static constexpr bool kMemoryBound = false;
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

// out[n, oc, oh, ow] = act((sum over ic, kh, kw of data[n, ic, oh*sh + kh*dh - top, ow*sw + kw*dw - left] *
// weight[oc, ic, kh, kw] + bias[oc]) * scale[oc] + residual[n, oc, oh, ow])
//
// Layouts are those of the arguments in memory: NCHW; NHWC, with the channels of a pixel side by side; or NCHW4c, NCHW8c,
// NCHW16c with channels in blocks: [N, C/16, H, W, 16]. Shapes in files and keys name the extents as NCHW.
// Weights are always [OC, IC/groups, KH, KW]; templates pack constant weights ahead in their own order.
struct Conv2dWorkload {
  static constexpr std::string_view kOp = "conv2d";
  static constexpr bool kMemoryBound = false;
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
  DType dtype = DType::kFloat32;      // types: at matmul
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

// True if a product's sums are scaled into 8 bits.
template <class Product>
bool requantises(const Product& w) {
  return w.dtype == DType::kInt8 && w.out_dtype() != DType::kInt32;
}

// The parts of its epilogue, in their order.
template <class Product>
std::vector<EpiloguePart> epilogue_parts(const Product& w);
extern template std::vector<EpiloguePart> epilogue_parts(const MatmulWorkload&);
extern template std::vector<EpiloguePart> epilogue_parts(const Conv2dWorkload&);
// Sets `post` so that the parts, which must be those there are, come in this order.
template <class Product>
void set_order(Product& w, std::vector<EpiloguePart> parts);
extern template void set_order(MatmulWorkload&, std::vector<EpiloguePart>);
extern template void set_order(Conv2dWorkload&, std::vector<EpiloguePart>);
// True where the order is the usual one but for the residual, which is last: what `residual=last` of a key says.
template <class Product>
bool adds_residual_last(const Product& w) {
  return w.residual && !w.post.empty() && w.post.back() == EpiloguePart::kResidual &&
         std::ranges::is_sorted(w.post.begin(), w.post.end() - 1);
}

// out[n, c, oh, ow] = max or average over kh, kw of data[n, c, oh*sh + kh - top, ow*sw + kw - left], over the
// elements inside the image; with count_include_pad an average also counts padding, as zeros. Padding is less
// than the kernel, so every window has an element of the image. Global pooling uses a kernel of the image's
// size. Layouts are as for conv2d, the same for data and out.
struct Pool2dWorkload {
  static constexpr std::string_view kOp = "pool2d";
  static constexpr bool kMemoryBound = true;
  int64_t batch = 1, channels = 1, in_height = 1, in_width = 1;
  int64_t kernel_height = 1, kernel_width = 1;
  std::array<int64_t, 2> stride{1, 1};         // vertical, horizontal
  std::array<int64_t, 4> padding{0, 0, 0, 0};  // top, left, bottom, right
  Pooling pooling = Pooling::kMax;
  bool count_include_pad = false;  // only for averages
  DType dtype = DType::kFloat32;
  std::string layout = "NCHW";

  int64_t out_height() const { return (in_height + padding[0] + padding[2] - kernel_height) / stride[0] + 1; }
  int64_t out_width() const { return (in_width + padding[1] + padding[3] - kernel_width) / stride[1] + 1; }
};

// Returns the channels of a block: 1 for NCHW and NHWC, 16 for NCHW16c; 0 for an unknown layout.
int64_t channel_block(std::string_view layout);
// True if the channels of a pixel lie side by side: NHWC.
bool is_channels_last(std::string_view layout);
std::string layout_names();  // "NCHW, NHWC, NCHW4c, NCHW8c or NCHW16c"
// Returns the shape in memory of an image in that layout: {N, C, H, W}, {N, H, W, C}, or {N, C/block, H, W, block}.
std::vector<int64_t> image_shape(std::string_view layout, int64_t n, int64_t c, int64_t h, int64_t w);
// Returns the indices of one element of that image.
std::vector<Expr> image_index(std::string_view layout, const Expr& n, const Expr& c, const Expr& h,
                              const Expr& w);
// The other way round: which element it is that lies there.
struct ImagePlace {
  Expr n, c, h, w;
};
ImagePlace image_place(std::string_view layout, std::span<const Expr> index);

// The operators below work on a matrix [rows, columns] row by row, or element by element. They do little
// arithmetic per element, so traffic counts (Workload::bytes()). None of their operands is worth packing
// ahead, so none is constant.

// out[i, j] = exp(x[i, j] - max of row i) / (sum of these exps over row i)
struct SoftmaxWorkload {
  static constexpr std::string_view kOp = "softmax";
  static constexpr bool kMemoryBound = true;
  int64_t rows = 1, columns = 1;
  DType dtype = DType::kFloat32;
};

// out[i, j] = (x[i, j] - mean) / sqrt(variance + epsilon) * gamma[j] + beta[j], with mean and variance (the
// mean of the squared differences from the mean) over row i.
struct LayerNormWorkload {
  static constexpr std::string_view kOp = "layer_norm";
  static constexpr bool kMemoryBound = true;
  int64_t rows = 1, columns = 1;
  double epsilon = 1e-5;
  DType dtype = DType::kFloat32;
};

// out[i] = sum, max, min or mean over j of x[i, j]
struct ReduceWorkload {
  static constexpr std::string_view kOp = "reduce";
  static constexpr bool kMemoryBound = true;
  int64_t rows = 1, columns = 1;
  RowReduction reduction = RowReduction::kSum;
  DType dtype = DType::kFloat32;
};

// out[j, i] = x[i, j]
struct TransposeWorkload {
  static constexpr std::string_view kOp = "transpose";
  static constexpr bool kMemoryBound = true;
  int64_t rows = 1, columns = 1;  // of x
  DType dtype = DType::kFloat32;
};

// out[i, j] = act(x[i, j] * scale[j] + bias[j] + residual[i, j]); scale, bias, residual and act are optional.
// A tensor of any shape without broadcast is one row of all its elements.
struct ElementwiseWorkload {
  static constexpr std::string_view kOp = "elementwise";
  static constexpr bool kMemoryBound = true;
  int64_t rows = 1, columns = 1;
  bool scale = false;     // [columns]
  bool bias = false;      // [columns]
  bool residual = false;  // [rows, columns]
  Activation activation = Activation::kNone;
  DType dtype = DType::kFloat32;
};

// Operators of a network as one kernel: what no other workload computes. compiler_core/graph/fragment.h tells what the text says
// and how operands are called. Made by program_workload().
struct ProgramWorkload {
  static constexpr std::string_view kOp = "program";
  static constexpr bool kMemoryBound = true;
  std::string text;  // canonical
  std::shared_ptr<const graph::Graph> fragment;
  DType dtype = DType::kFloat32;  // of out
  int64_t flops = 0;
};

class Workload {
 public:
  using Op = std::variant<MatmulWorkload, Conv2dWorkload, Pool2dWorkload, SoftmaxWorkload, LayerNormWorkload,
                          ReduceWorkload, TransposeWorkload, ElementwiseWorkload, ProgramWorkload>;

  Workload() = default;
  template <class W>
  requires std::constructible_from<Op, W> Workload(W w) : op_(std::move(w)) {}

  std::string_view op_name() const;  // "matmul", "conv2d", ...
  std::string key() const;
  // Returns the operations on elements, for reporting. Matrix product and convolution: multiply and add count
  // as two, padding counts as work, the epilogue does not count. Other operators: each operation of the math
  // counts one per element (exp, comparison and division too). That is one per element of a window for
  // pool2d, 5 for softmax, 8 for layer_norm, 1 for reduce, 0 for transpose, and one per optional part for
  // elementwise.
  int64_t flops() const;
  // Returns the compulsory traffic in bytes: each argument read or written once, an accumulated one both. No kernel moves less if the
  // data start in memory.
  int64_t bytes() const;
  // True if times should be compared with bytes() instead of flops(): each operator's kMemoryBound.
  bool memory_bound() const;
  bool is_constant(std::string_view operand) const;
  bool has_constants() const;
  DType dtype() const;  // type of the elements that are multiplied
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&op_);
  }

  // The alternatives, for std::visit.
  const Op& op() const { return op_; }

  // Returns the unscheduled math. Arguments are inputs and constants in file order (a, b, bias | data,
  // weight, bias | x, gamma, beta | x, scale, bias, residual), then "out". For products, residual, scale,
  // zero_point, residual_scale and residual_zero_point follow bias, whatever the order of their epilogue; with
  // `accumulate` out is in and out.
  Program compute() const;

 private:
  Op op_;
};

// A fragment of a graph (compiler_core/graph/fragment.h), or its text, as a workload. InvalidArgument: it is none, or too large.
Result<Workload> program_workload(graph::Graph fragment);
Result<Workload> program_from_text(std::string_view text);
// Reads Workload::key() back. The result is valid; InvalidArgument names the word that is wrong.
Result<Workload> workload_from_key(std::string_view key);
// Returns "matmul, conv2d, ...", for messages.
std::string operator_names();
// Checks that shapes are at least 1, the padded input is not smaller than the dilated kernel, byte sizes are
// below 2^40, and epsilon is not so small that it vanishes. The message says which fails.
Status validate(const Workload& workload);

}  // namespace tuner
