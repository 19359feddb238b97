// conv2d_implicit_gemm_cuda: float32 convolution as a matrix product, on the ordinary cores of any NVIDIA
// GPU, NCHW.
//
//   out[oc, q] = act(sum over kh, kw, ic of filter[kh, kw, ic, oc] * columns[kh, kw, ic, q] + bias[oc])
//
//   q: the pixels (n, oh, ow) of all images, one after the other
//   columns[kh, kw, ic, q] = data[n, ic, oh*sh + kh*dh - top, ow*sw + kw*dw - left], 0 in the padding
//   filter[kh, kw, ic, oc] = weight[oc, ic, kh, kw]
//
// Neither exists in memory: their tiles are put together in shared memory, and the schedule is that of a
// product (product_schedule.h). A step is some channels at one position of the kernel, so that what a thread
// copies of it has one address and one guard for its pixel. A 1x1 kernel with stride 1 is a plain product.
//
// Serves stride, padding, dilation, residuals, any sizes. Constant weights are packed ahead, in the order of
// the tiles of `filter`. Declines grouped convolution, types other than float32, and few input channels: a
// step would be mostly zeros.
#include "compiler_core/te/te.h"
#include "templates/cuda/cuda_templates.h"
#include "templates/cuda/product_schedule.h"
#include "templates/workload/parts/product_math.h"

namespace tuner {
namespace {

using cuda::Product;
using cuda::ProductKnobs;

constexpr int64_t kLeastChannels = 8;

int64_t pixels(const Conv2dWorkload& w) { return w.out_height() * w.out_width(); }

// The kernel is one element, and pixels of out lie as those of data.
bool is_product(const Conv2dWorkload& w) {
  return w.kernel_height == 1 && w.kernel_width == 1 && w.stride == std::array<int64_t, 2>{1, 1} &&
         w.padding == std::array<int64_t, 4>{0, 0, 0, 0};
}

Product product_of(const Conv2dWorkload& w) {
  const bool packed = Workload(w).is_constant("weight");
  return {.m = w.out_channels,
          .n = w.batch * pixels(w),
          .k = w.in_channels,
          .steps = w.kernel_height * w.kernel_width,
          .packed_a = packed,
          .transposes_a = !packed,
          .vector_a = packed                                  ? 4
                      : w.kernel_height * w.kernel_width == 1 ? cuda::vector_width({w.in_channels})
                                                              : 1,
          .vector_b = is_product(w) ? cuda::vector_width({pixels(w)}) : 1,
          .vector_out = cuda::vector_width({pixels(w)})};
}

// 0 <= at < size, as far as `first` and `last`, the least and the largest value of `at`, leave a doubt.
Expr inside(const Expr& condition, const Expr& at, int64_t first, int64_t last, int64_t size) {
  Expr result = condition;
  if (last >= size) result = result && at < size;
  if (first < 0) result = result && at >= 0;
  return result;
}

class Conv2dImplicitGemmCuda final : public ScheduleTemplate<Conv2dWorkload, ProductKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "conv2d_implicit_gemm_cuda"; }
  int version() const override { return 4; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (w.groups != 1) return declined("needs groups = 1, got ", w.groups);
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    if (w.accumulate) return declined("has no accumulate yet: give the residual apart (\"residual\")");
    if (w.layout != "NCHW") return declined("needs layout NCHW, got ", w.layout);
    if (w.out_layout != "NCHW") return declined("needs out_layout NCHW, got ", w.out_layout);
    if (w.in_channels < kLeastChannels)
      return declined("needs at least ", kLeastChannels, " input channels, got ", w.in_channels);
    return supported();
  }

  ProductKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    return cuda::declare_product(space, product_of(w), t);
  }

  Program compute(const Conv2dWorkload& w) const override;

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target&, const ProductKnobs& k,
                const Config& c) const override {
    const Product p = product_of(w);
    const cuda::ProductTile tile = cuda::product_tile(p, k, c);
    const Tensor filter =
        p.packed_a ? cuda::pack_operand(s, s.tensor("weight"), {2, 3}, 1, tile.chunk, 0, tile.block_m)
                   : s.tensor("filter");
    const Tensor columns = s.tensor("columns"), acc = s.tensor("acc");
    const auto [n, oc, oh, ow] = s.axes<4>(s.tensor("out"));
    if (s.refused()) return;
    s.reorder({oc, n, oh, ow});
    const Axis pixel = s.rename(s.fuse({n, oh, ow}), "pixel");
    cuda::schedule_product(s, p, k, c, {filter, columns, acc, {oc, pixel}});
  }
};

Program Conv2dImplicitGemmCuda::compute(const Conv2dWorkload& w) const {
  using te::Indices;
  te::Builder b("conv2d", w.dtype);
  const int64_t oh = w.out_height(), ow = w.out_width(), all = w.batch * oh * ow;
  const int64_t top = w.padding[0], left = w.padding[1];
  const Buffer data = b.input("data", {w.batch, w.in_channels, w.in_height, w.in_width});
  const bool packed = Workload(w).is_constant("weight");
  const std::vector<int64_t> weights = {w.out_channels, w.in_channels, w.kernel_height, w.kernel_width};
  const Buffer weight = packed ? b.constant("weight", weights) : b.input("weight", weights);
  const Epilogue epilogue = declare_unpacked_epilogue(b, w);
  // Both reach further than the sum does, to the end of the last tile: with zeros along the channels, and
  // with more of the same where nobody stores what comes of it.
  const int64_t channels = w.in_channels + cuda::kMaxPaddedK;
  const Buffer filter =
      packed ? nullptr
             : b.compute(
                   "filter", {w.kernel_height, w.kernel_width, channels, w.out_channels + cuda::kMaxBlockM},
                   [&](const Indices& i) {
                     const Expr oc = repeated_at_edge(i[3], w.out_channels, 1);
                     return select(i[2] < w.in_channels, load(weight, {oc, i[2], i[0], i[1]}), float_imm(0));
                   },
                   BufferRole::kIntermediate, {"kh", "kw", "ic", "oc"});
  const int64_t last_row = (oh - 1) * w.stride[0] + (w.kernel_height - 1) * w.dilation[0] - top;
  const int64_t last_column = (ow - 1) * w.stride[1] + (w.kernel_width - 1) * w.dilation[1] - left;
  const Buffer columns =
      b.compute("columns", {w.kernel_height, w.kernel_width, channels, all + cuda::kMaxBlockN},
                [&](const Indices& i) {
                  const Expr at = repeated_at_edge(i[3], all, product_of(w).vector_b);
                  const Expr pixel = floor_mod(at, oh * ow);
                  const Expr row = floor_div(pixel, ow) * w.stride[0] + i[0] * w.dilation[0] - top;
                  const Expr column = floor_mod(pixel, ow) * w.stride[1] + i[1] * w.dilation[1] - left;
                  Expr valid = i[2] < w.in_channels;
                  valid = inside(valid, row, -top, last_row, w.in_height);
                  valid = inside(valid, column, -left, last_column, w.in_width);
                  return select(valid, load(data, {floor_div(at, oh * ow), i[2], row, column}), float_imm(0));
                },
                BufferRole::kIntermediate, {"kh", "kw", "ic", "pixel"});
  const Buffer acc =
      b.reduce("acc", {w.out_channels, all},
               {{"ic", w.in_channels}, {"kh", w.kernel_height}, {"kw", w.kernel_width}}, ReduceOp::kSum,
               [&](const Indices& i, const Indices& r) {
                 const Expr tap =
                     packed ? load(weight, {i[0], r[0], r[1], r[2]}) : load(filter, {r[1], r[2], r[0], i[0]});
                 return tap * load(columns, {r[1], r[2], r[0], i[1]});
               },
               BufferRole::kIntermediate, {"oc", "pixel"});
  b.compute("out", {w.batch, w.out_channels, oh, ow},
            [&](const Indices& i) {
              return finished(epilogue, load(acc, {i[1], (i[0] * oh + i[2]) * ow + i[3]}), i[1], i);
            },
            BufferRole::kOutput, {"n", "oc", "oh", "ow"});
  return b.finish();
}

}  // namespace

const AnyTemplate& conv2d_implicit_gemm_cuda() {
  static const Conv2dImplicitGemmCuda instance;
  return instance;
}

}  // namespace tuner
