// What a workload must satisfy.
#include <algorithm>
#include <cmath>
#include <span>

#include "compiler_core/graph/pool_window.h"
#include "templates/workload/limits.h"
#include "templates/workload/workload_math.h"

namespace tuner {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 40;
constexpr double kLeastEpsilon = 1e-12, kMostEpsilon = 1;

Status at_least(std::string_view name, int64_t value, int64_t lowest) {
  if (value >= lowest && value <= kMaxExtent) return Status::ok();
  return invalid_argument(name, ": expected an integer from ", lowest, " to 2^31, found ", value);
}

Status shape_fits(std::string_view name, std::initializer_list<int64_t> shape, DType dtype) {
  __int128 bytes = dtype_bytes(dtype);
  for (const int64_t extent : shape) {
    bytes *= extent;
    if (bytes >= kMaxBytes)
      return invalid_argument(name, ": expected fewer than 2^40 bytes, the shape asks for more");
  }
  return Status::ok();
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : ",") + w;
  return text;
}

Status only(const std::vector<std::string>& constant, std::initializer_list<std::string_view> operands) {
  for (const std::string& name : constant)
    if (std::find(operands.begin(), operands.end(), name) == operands.end()) {
      std::string known;
      for (const std::string_view o : operands) known += str(known.empty() ? "" : ", ", o);
      return invalid_argument("constant: expected names of operands (", known, "), found \"", name, "\"");
    }
  if (std::adjacent_find(constant.begin(), constant.end(), std::greater_equal<>()) != constant.end())
    return invalid_argument("constant: expected each operand once, in alphabetical order, found ",
                            listed(constant));
  return Status::ok();
}

Status float32_only(DType dtype) {
  if (dtype == DType::kFloat32) return Status::ok();
  return invalid_argument("dtype: expected float32, found ", dtype);
}

// flops() must not overflow.
Status countable(std::initializer_list<int64_t> factors) {
  __int128 product = 2;
  for (const int64_t f : factors) {
    product *= f;
    if (product > (int64_t{1} << 62))
      return invalid_argument("shape: expected at most 2^62 floating-point operations, found more");
  }
  return Status::ok();
}

Status check_layout_of(std::string_view name, const std::string& layout, std::string_view which,
                       int64_t channels) {
  const int64_t block = channel_block(layout);
  if (block == 0) return invalid_argument(name, ": expected ", layout_names(), ", found ", layout);
  if (channels % block == 0) return Status::ok();
  return invalid_argument(name, ": ", layout, " needs a multiple of ", block, which, " channels, found ",
                          channels);
}

Status check_activation(const Activation& a) {
  if (has_good_numbers(a)) return Status::ok();
  return invalid_argument("activation: expected finite numbers, for clip the lower one first, found ",
                          activation_text(a));
}

std::string listed(const std::vector<EpiloguePart>& parts) {
  std::string text;
  for (const EpiloguePart part : parts) text += str(text.empty() ? "" : ",", epilogue_part_name(part));
  return text.empty() ? "none" : text;
}

// The order of the parts, where it is not the usual one.
template <class Product>
Status check_order(const Product& w) {
  if (w.post.empty()) return Status::ok();
  if (requantises(w))
    return invalid_argument("post: expected none with out_dtype ", w.out_dtype(), ", found ", listed(w.post));
  Product usual = w;
  usual.post.clear();
  const std::vector<EpiloguePart> parts = epilogue_parts(usual);
  if (!std::ranges::is_permutation(parts, w.post))
    return invalid_argument("post: expected the parts there are, each once (", listed(parts), "), found ",
                            listed(w.post));
  set_order(usual, w.post);
  if (usual.post == w.post) return Status::ok();
  return invalid_argument("post: expected ",
                          usual.post.empty() ? str("none for what the usual order says, ", listed(parts))
                                             : str(listed(usual.post), ", which says the same"),
                          "; found ", listed(w.post));
}

// What follows the sum of a product.
template <class Product>
Status check_epilogue(const Product& w) {
  RETURN_IF_ERROR(check_activation(w.activation));
  const bool narrow = requantises(w);
  if (w.residual && w.accumulate)
    return invalid_argument("accumulate: expected one of residual and accumulate, found both");
  if (narrow && w.accumulate)
    return invalid_argument("accumulate: expected none with out_dtype ", w.out_dtype(),
                            ", where a residual lies apart (residual)");
  if (w.scale && w.dtype == DType::kInt8)
    return invalid_argument("scale: expected none for int8",
                            narrow ? ", which has one where out has 8 bits" : "");
  RETURN_IF_ERROR(check_order(w));
  const ActivationKind kind = w.activation.kind;
  if (w.dtype != DType::kInt8 || kind == ActivationKind::kNone || kind == ActivationKind::kRelu ||
      (narrow && kind == ActivationKind::kClip))
    return Status::ok();
  return invalid_argument("activation: expected none", narrow ? ", relu or clip" : " or relu",
                          " with out_dtype ", w.out_dtype(), ", found ", activation_text(w.activation));
}

// 2^16 products of a uint8 and an int8 are at most 2^16 * 255 * 128 = 2^31 - 2^23 in size: what is left to
// int32 takes a bias and a residual of 2^22 each, which the caller keeps to.
template <class Product>
Status check_types(const Product& w, std::string_view terms_name, int64_t terms) {
  constexpr int64_t kMostInt8Terms = 1 << 16;
  if (w.dtype != DType::kFloat32 && w.dtype != DType::kBFloat16 && w.dtype != DType::kInt8 &&
      w.dtype != DType::kFloat16)
    return invalid_argument("dtype: expected float32, bfloat16, float16 or int8, found ", w.dtype);
  if (w.allow_tf32 && w.dtype != DType::kFloat32)
    return invalid_argument("allow_tf32: expected only with float32, found ", w.dtype);
  if (w.dtype == DType::kInt8 && terms > kMostInt8Terms)
    return invalid_argument(terms_name, ": expected at most 65536 for int8, found ", terms,
                            "; sums of more products overflow int32");
  const std::span<const DType> allowed = out_dtypes(w.dtype);
  if (std::ranges::find(allowed, w.out_dtype()) == allowed.end()) {
    std::string names;
    for (const DType each : allowed) names += str(names.empty() ? "" : ", ", each);
    return invalid_argument("out_dtype: expected one of ", names, " for ", w.dtype, ", found ",
                            w.out_dtype());
  }
  return check_epilogue(w);
}

Status check(const MatmulWorkload& w) {
  RETURN_IF_ERROR(at_least("batch", w.batch, 1));
  RETURN_IF_ERROR(at_least("m (rows of a)", w.m, 1));
  RETURN_IF_ERROR(at_least("n (columns of b)", w.n, 1));
  RETURN_IF_ERROR(at_least("k (columns of a)", w.k, 1));
  RETURN_IF_ERROR(check_types(w, "k (columns of a)", w.k));
  RETURN_IF_ERROR(shape_fits("a", {w.batch, w.m, w.k}, left_dtype(w.dtype)));
  RETURN_IF_ERROR(shape_fits("b", {w.batch, w.k, w.n}, w.dtype));
  RETURN_IF_ERROR(shape_fits("out", {w.batch, w.m, w.n}, w.out_dtype()));
  RETURN_IF_ERROR(countable({w.batch, w.m, w.n, w.k}));
  return w.bias ? only(w.constant, {"a", "b", "bias"}) : only(w.constant, {"a", "b"});
}

Status check(const Conv2dWorkload& w) {
  const struct {
    std::string_view name;
    int64_t value;
  } extents[] = {{"data[0] (batch)", w.batch},
                 {"data[1] (channels)", w.in_channels},
                 {"data[2] (height)", w.in_height},
                 {"data[3] (width)", w.in_width},
                 {"weight[0] (output channels)", w.out_channels},
                 {"weight[2] (kernel height)", w.kernel_height},
                 {"weight[3] (kernel width)", w.kernel_width},
                 {"stride[0] (vertical)", w.stride[0]},
                 {"stride[1] (horizontal)", w.stride[1]},
                 {"dilation[0] (vertical)", w.dilation[0]},
                 {"dilation[1] (horizontal)", w.dilation[1]},
                 {"groups", w.groups}};
  for (const auto& [name, value] : extents) RETURN_IF_ERROR(at_least(name, value, 1));
  constexpr std::string_view kSides[] = {"padding[0] (top)", "padding[1] (left)", "padding[2] (bottom)",
                                         "padding[3] (right)"};
  for (size_t i = 0; i < 4; ++i) RETURN_IF_ERROR(at_least(kSides[i], w.padding[i], 0));
  if (w.in_channels % w.groups != 0)
    return invalid_argument("groups: expected a divisor of the ", w.in_channels, " input channels, found ",
                            w.groups);
  if (w.out_channels % w.groups != 0)
    return invalid_argument("groups: expected a divisor of the ", w.out_channels, " output channels, found ",
                            w.groups);
  const int64_t height = w.in_height + w.padding[0] + w.padding[2],
                width = w.in_width + w.padding[1] + w.padding[3];
  const int64_t tall = w.dilation[0] * (w.kernel_height - 1) + 1,
                wide = w.dilation[1] * (w.kernel_width - 1) + 1;
  if (height < tall)
    return invalid_argument("data[2] (height): ", height, " with padding, expected at least ", tall,
                            " for a kernel of ", w.kernel_height, " rows at dilation ", w.dilation[0]);
  if (width < wide)
    return invalid_argument("data[3] (width): ", width, " with padding, expected at least ", wide,
                            " for a kernel of ", w.kernel_width, " columns at dilation ", w.dilation[1]);
  RETURN_IF_ERROR(check_layout_of("layout", w.layout, " input", w.in_channels));
  RETURN_IF_ERROR(check_layout_of("out_layout", w.out_layout, " output", w.out_channels));
  RETURN_IF_ERROR(shape_fits("data", {w.batch, w.in_channels, height, width}, left_dtype(w.dtype)));
  RETURN_IF_ERROR(shape_fits(
      "weight", {w.out_channels, w.in_channels / w.groups, w.kernel_height, w.kernel_width}, w.dtype));
  RETURN_IF_ERROR(shape_fits("out", {w.batch, w.out_channels, w.out_height(), w.out_width()}, w.out_dtype()));
  RETURN_IF_ERROR(countable({w.batch, w.out_channels, w.out_height(), w.out_width(), w.in_channels / w.groups,
                             w.kernel_height, w.kernel_width}));
  RETURN_IF_ERROR(
      check_types(w, "terms of a sum", w.in_channels / w.groups * w.kernel_height * w.kernel_width));
  return w.bias ? only(w.constant, {"data", "weight", "bias"}) : only(w.constant, {"data", "weight"});
}

Status check(const Pool2dWorkload& w) {
  const struct {
    std::string_view name;
    int64_t value;
  } extents[] = {{"data[0] (batch)", w.batch},
                 {"data[1] (channels)", w.channels},
                 {"data[2] (height)", w.in_height},
                 {"data[3] (width)", w.in_width},
                 {"kernel[0] (height)", w.kernel_height},
                 {"kernel[1] (width)", w.kernel_width},
                 {"stride[0] (vertical)", w.stride[0]},
                 {"stride[1] (horizontal)", w.stride[1]}};
  for (const auto& [name, value] : extents) RETURN_IF_ERROR(at_least(name, value, 1));
  constexpr std::string_view kSides[] = {"padding[0] (top)", "padding[1] (left)", "padding[2] (bottom)",
                                         "padding[3] (right)"};
  for (size_t i = 0; i < 4; ++i) RETURN_IF_ERROR(at_least(kSides[i], w.padding[i], 0));
  const int64_t height = w.in_height + w.padding[0] + w.padding[2],
                width = w.in_width + w.padding[1] + w.padding[3];
  if (height < w.kernel_height)
    return invalid_argument("data[2] (height): ", height, " with padding, expected at least ",
                            w.kernel_height, ", the rows of the kernel");
  if (width < w.kernel_width)
    return invalid_argument("data[3] (width): ", width, " with padding, expected at least ", w.kernel_width,
                            ", the columns of the kernel");
  for (size_t i = 0; i < 2; ++i) {
    const graph::PoolWindow along{.extent = i == 0 ? w.in_height : w.in_width,
                                  .kernel = i == 0 ? w.kernel_height : w.kernel_width,
                                  .stride = w.stride[i],
                                  .before = w.padding[i],
                                  .behind = w.padding[i + 2],
                                  .windows = i == 0 ? w.out_height() : w.out_width()};
    RETURN_IF_ERROR(check_pool_window(
        along, {std::string(kSides[i]), std::string(kSides[i + 2]), i == 0 ? "rows" : "columns"}));
  }
  if (w.count_include_pad && w.pooling == Pooling::kMax)
    return invalid_argument("count_include_pad: expected only with pooling average, found it with max");
  RETURN_IF_ERROR(float32_only(w.dtype));
  RETURN_IF_ERROR(check_layout_of("layout", w.layout, "", w.channels));
  RETURN_IF_ERROR(shape_fits("data", {w.batch, w.channels, height, width}, w.dtype));
  return countable({w.batch, w.channels, w.out_height(), w.out_width(), w.kernel_height, w.kernel_width});
}

// What all operators on rows share.
template <class W>
Status check_matrix(const W& w) {
  RETURN_IF_ERROR(at_least("rows", w.rows, 1));
  RETURN_IF_ERROR(at_least("columns", w.columns, 1));
  RETURN_IF_ERROR(float32_only(w.dtype));
  return shape_fits("x", {w.rows, w.columns}, w.dtype);
}

Status check(const SoftmaxWorkload& w) { return check_matrix(w); }
Status check(const LayerNormWorkload& w) {
  RETURN_IF_ERROR(check_matrix(w));
  // Below, float32 loses it beside any variance, and a constant row divides by almost nothing.
  if (w.epsilon >= kLeastEpsilon && w.epsilon <= kMostEpsilon) return Status::ok();
  return invalid_argument("epsilon: expected a number from ", kLeastEpsilon, " to ", kMostEpsilon, ", found ",
                          w.epsilon);
}
Status check(const ReduceWorkload& w) { return check_matrix(w); }
Status check(const TransposeWorkload& w) { return check_matrix(w); }
Status check(const ElementwiseWorkload& w) {
  RETURN_IF_ERROR(check_activation(w.activation));
  return check_matrix(w);
}
Status check(const ProgramWorkload& w) { return check_program(w); }

}  // namespace

Status validate(const Workload& workload) {
  return std::visit([](const auto& w) { return check(w); }, workload.op());
}

}  // namespace tuner
