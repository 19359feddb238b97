// Workload: what is known of each operator beyond its math (workload_math.h), its key (workload_key.cpp) and
// its checks (workload_check.cpp).
#include "templates/workload/workload.h"

#include <algorithm>

#include "templates/workload/workload_math.h"

namespace tuner {
namespace {

int64_t flops_of(const MatmulWorkload& w) { return 2 * w.batch * w.m * w.n * w.k; }
int64_t flops_of(const Conv2dWorkload& w) {
  return 2 * w.batch * w.out_channels * w.out_height() * w.out_width() * (w.in_channels / w.groups) *
         w.kernel_height * w.kernel_width;
}
int64_t flops_of(const Pool2dWorkload& w) {
  return w.batch * w.channels * w.out_height() * w.out_width() * w.kernel_height * w.kernel_width;
}
// Maximum; subtract, exp; sum; divide.
int64_t flops_of(const SoftmaxWorkload& w) { return 5 * w.rows * w.columns; }
// Sum; centre; square, sum; by the deviation, by gamma, plus beta; and centre once more, as most kernels do.
int64_t flops_of(const LayerNormWorkload& w) { return 8 * w.rows * w.columns; }
int64_t flops_of(const ReduceWorkload& w) { return w.rows * w.columns; }
int64_t flops_of(const TransposeWorkload&) { return 0; }
int64_t flops_of(const ElementwiseWorkload& w) {
  const int parts = w.scale + w.bias + w.residual + (w.activation != Activation::kNone ? 1 : 0);
  return parts * w.rows * w.columns;
}

int64_t flops_of(const ProgramWorkload& w) { return w.flops; }

template <class W>
concept HasConstants = requires(const W& w) {
  w.constant;
};

}  // namespace

DType sum_dtype(DType dtype) {
  if (dtype == DType::kInt8) return DType::kInt32;
  return is_float(dtype) && dtype_bytes(dtype) == 2 ? DType::kFloat32 : dtype;
}

std::span<const DType> out_dtypes(DType dtype) {
  static constexpr DType kFloat[] = {DType::kFloat32}, kHalf[] = {DType::kFloat32, DType::kFloat16},
                         kBrain[] = {DType::kFloat32, DType::kBFloat16},
                         kInt[] = {DType::kInt32, DType::kUInt8, DType::kInt8};
  if (dtype == DType::kInt8) return kInt;
  if (dtype == DType::kBFloat16) return kBrain;
  if (dtype == DType::kFloat16) return kHalf;
  return kFloat;
}

DType left_dtype(DType dtype) { return dtype == DType::kInt8 ? DType::kUInt8 : dtype; }

std::string_view pooling_name(Pooling p) { return p == Pooling::kMax ? "max" : "average"; }

std::string_view row_reduction_name(RowReduction r) {
  constexpr std::string_view kNames[] = {"sum", "max", "min", "mean"};
  return kNames[static_cast<size_t>(r)];
}

std::string_view epilogue_part_name(EpiloguePart p) {
  constexpr std::string_view kNames[] = {"bias", "scale", "residual", "activation"};
  return kNames[static_cast<size_t>(p)];
}

template <class Product>
std::vector<EpiloguePart> epilogue_parts(const Product& w) {
  if (!w.post.empty()) return w.post;
  std::vector<EpiloguePart> parts;
  if (w.bias) parts.push_back(EpiloguePart::kBias);
  if (w.scale) parts.push_back(EpiloguePart::kScale);
  if (w.residual || w.accumulate) parts.push_back(EpiloguePart::kResidual);
  if (w.activation != Activation::kNone) parts.push_back(EpiloguePart::kActivation);
  return parts;
}
template std::vector<EpiloguePart> epilogue_parts(const MatmulWorkload&);
template std::vector<EpiloguePart> epilogue_parts(const Conv2dWorkload&);

template <class Product>
void set_order(Product& w, std::vector<EpiloguePart> parts) {
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i - 1] == EpiloguePart::kResidual && parts[i] == EpiloguePart::kBias)
      std::swap(parts[i - 1], parts[i]);
  w.post.clear();
  if (!std::ranges::is_sorted(parts)) w.post = std::move(parts);
}
template void set_order(MatmulWorkload&, std::vector<EpiloguePart>);
template void set_order(Conv2dWorkload&, std::vector<EpiloguePart>);

namespace {
constexpr std::pair<std::string_view, int64_t> kLayouts[] = {
    {"NCHW", 1}, {"NHWC", 1}, {"NCHW4c", 4}, {"NCHW8c", 8}, {"NCHW16c", 16}};
}

int64_t channel_block(std::string_view layout) {
  for (const auto& [name, block] : kLayouts)
    if (name == layout) return block;
  return 0;
}

bool is_channels_last(std::string_view layout) { return layout == "NHWC"; }

std::string layout_names() {
  std::string names;
  for (const auto& [name, block] : kLayouts)
    names += str(names.empty() ? "" : name == std::rbegin(kLayouts)->first ? " or " : ", ", name);
  return names;
}

std::vector<int64_t> image_shape(std::string_view layout, int64_t n, int64_t c, int64_t h, int64_t w) {
  if (is_channels_last(layout)) return {n, h, w, c};
  const int64_t block = channel_block(layout);
  if (block <= 1) return {n, c, h, w};
  return {n, c / block, h, w, block};
}

std::vector<Expr> image_index(std::string_view layout, const Expr& n, const Expr& c, const Expr& h,
                              const Expr& w) {
  if (is_channels_last(layout)) return {n, h, w, c};
  const int64_t block = channel_block(layout);
  if (block <= 1) return {n, c, h, w};
  return {n, floor_div(c, block), h, w, floor_mod(c, block)};
}

ImagePlace image_place(std::string_view layout, std::span<const Expr> i) {
  if (is_channels_last(layout)) return {.n = i[0], .c = i[3], .h = i[1], .w = i[2]};
  const int64_t block = channel_block(layout);
  return {.n = i[0], .c = block <= 1 ? i[1] : i[1] * block + i[4], .h = i[2], .w = i[3]};
}

std::string_view Workload::op_name() const {
  return std::visit([](const auto& w) { return w.kOp; }, op_);
}

DType Workload::dtype() const {
  return std::visit([](const auto& w) { return w.dtype; }, op_);
}

int64_t Workload::flops() const {
  return std::visit([](const auto& w) { return flops_of(w); }, op_);
}

int64_t Workload::bytes() const {
  int64_t total = 0;
  for (const Buffer& arg : compute().args) total += (arg->role == BufferRole::kInOut ? 2 : 1) * arg->bytes();
  return total;
}

bool Workload::memory_bound() const {
  return std::visit([](const auto& w) { return w.kMemoryBound; }, op_);
}

bool Workload::is_constant(std::string_view operand) const {
  return std::visit(
      [&]<class W>(const W& w) {
        if constexpr (HasConstants<W>)
          return std::find(w.constant.begin(), w.constant.end(), operand) != w.constant.end();
        else
          return false;
      },
      op_);
}

bool Workload::has_constants() const {
  return std::visit(
      []<class W>(const W& w) {
        if constexpr (HasConstants<W>)
          return !w.constant.empty();
        else
          return false;
      },
      op_);
}

Program Workload::compute() const {
  return std::visit([](const auto& w) { return math_of(w); }, op_);
}

}  // namespace tuner
