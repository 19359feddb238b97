// Convolutions as matrix products on the tensor cores of NVIDIA GPUs, sm_80 and later, NHWC. Three templates,
// by types:
//
//   conv2d_nhwc_mma_cuda      bfloat16, float16 (float32 sums), int8 (int32 sums)
//   conv2d_nhwc_tf32_cuda     float32 where TF32 is allowed
//   conv2d_nhwc_tf32x3_cuda   float32 by three products of tf32 numbers for one: error and least number of
//                             terms as of matmul_tf32x3_cuda
//
//   out[q, oc] = act(sum over t of columns[q, t] * filter[oc, t] + bias[oc] + residual[q, oc])
//
//   q: the pixels (n, oh, ow) of all images, one after the other; they lie so in memory
//   t: the terms (kh, kw, ic), channels innermost: one of the kernel's positions after the other
//   columns[q, t] = data[n, oh*sh + kh*dh - top, ow*sw + kw*dw - left, ic], 0 in the padding
//   filter[oc, t] = weight[oc, ic, kh, kw]
//
// The schedule is that of mma_schedule.h. The columns exist as tiles in shared memory only; neighbouring
// channels lie side by side there as in memory, so that copies are vectors. Constant weights are packed
// ahead, in tiles. A 1x1 kernel with stride 1 is a plain product. Groups are a batch of products
// (blockIdx.z).
//
// Serves stride, padding, dilation, groups, every epilogue, any sizes but groups of one output channel, one
// pixel, one term.
#include <numeric>

#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/te/te.h"
#include "templates/cuda/cuda_templates.h"
#include "templates/cuda/mma_schedule.h"
#include "templates/workload/parts/product_math.h"

namespace tuner {
namespace {

using cuda::MmaKnobs;
using cuda::MmaProduct;

int64_t pixels_of_all(const Conv2dWorkload& w) { return w.batch * w.out_height() * w.out_width(); }
int64_t channels(const Conv2dWorkload& w) { return w.in_channels / w.groups; }
int64_t terms(const Conv2dWorkload& w) { return w.kernel_height * w.kernel_width * channels(w); }
bool has_packed_filter(const Conv2dWorkload& w) { return Workload(w).is_constant("weight"); }

// The kernel is one element, and pixels of out lie as those of data.
bool is_plain_product(const Conv2dWorkload& w) {
  return w.kernel_height == 1 && w.kernel_width == 1 && w.stride == std::array<int64_t, 2>{1, 1} &&
         w.padding == std::array<int64_t, 4>{0, 0, 0, 0};
}

MmaProduct product_of(const Conv2dWorkload& w, int tf32_terms) {
  // Elements that one copy moves: of 16 bytes at most, as many as divide what lies side by side.
  const int64_t widest = 16 / dtype_bytes(w.dtype), side_by_side = std::gcd(channels(w), widest);
  const int64_t of_weights = has_packed_filter(w)                          ? widest
                             : w.kernel_height == 1 && w.kernel_width == 1 ? side_by_side
                                                                           : 1;
  return {.batch = w.groups,
          .m = pixels_of_all(w),
          .n = w.out_channels / w.groups,
          .k = terms(w),
          .a_type = left_dtype(w.dtype),
          .b_type = w.dtype,
          .sum_type = sum_dtype(w.dtype),
          .vector_a = side_by_side,
          .vector_b = of_weights,
          .vector_out = cuda::vector_width({w.out_channels / w.groups}),
          .tf32_terms = tf32_terms};
}

class Conv2dNhwcMma : public ScheduleTemplate<Conv2dWorkload, MmaKnobs> {
 public:
  using ScheduleTemplate::supports;
  // tf32_terms: of float32, products of tf32 numbers for one; 0 for other types.
  explicit Conv2dNhwcMma(int tf32_terms) : tf32_terms_(tf32_terms) {}
  int version() const override { return 3; }
  bool serves_channels_last() const override { return true; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (Support types = serves_types(w); !types.yes) return types;
    if (t.compute_capability() < 80) return declined("needs sm_80 or later, got ", t.arch);
    if (w.accumulate) return declined("has no accumulate yet: give the residual apart (\"residual\")");
    if (!is_channels_last(w.layout)) return declined("needs layout NHWC, got ", w.layout);
    if (!is_channels_last(w.out_layout)) return declined("needs out_layout NHWC, got ", w.out_layout);
    const MmaProduct p = product_of(w, tf32_terms_);
    for (const auto& [extent, name] : {std::pair(p.m, "pixels"), std::pair(p.n, "output channels of a group"),
                                       std::pair(p.k, "terms of a sum")})
      if (extent < 2) return declined("needs 2 ", name, " or more, got ", extent);
    const int64_t most = p.most_terms() * cuda::kMostParts;
    if (most > 0 && p.k > most) return declined("needs ", most, " terms of a sum at most, got ", p.k);
    return supported();
  }

  MmaKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    return cuda::declare_mma(space, product_of(w, tf32_terms_), t);
  }

  Program compute(const Conv2dWorkload& w) const override;

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target&, const MmaKnobs& k,
                const Config& c) const override {
    const MmaProduct p = product_of(w, tf32_terms_);
    const cuda::MmaTile tile = cuda::mma_tile(p, k, c);
    std::vector<int> groups;
    if (w.groups > 1) groups.push_back(0);
    const int line = static_cast<int>(groups.size()), term = line + 1;
    const auto packed = [&](const char* name, int64_t block) {
      const Tensor whole = s.tensor(name);
      const Tensor tiles = cuda::pack_mma_operand(s, whole, groups, line, block, term, tile, true);
      s.inline_compute(whole);
      return tiles;
    };
    const Tensor columns = packed("columns", tile.block_m), filter = packed("filter", tile.block_n);
    if (has_packed_filter(w)) s.precompute(filter);
    const Tensor out = s.tensor("out"), acc = s.tensor("acc");
    if (s.refused()) return;
    std::vector<Axis> axes = s.axes(out);  // pixel, [group,] channel
    if (w.groups > 1) {
      std::swap(axes[0], axes[1]);
      s.reorder(axes);
    }
    cuda::schedule_mma(
        s, p, k, c, {.a = columns, .b = filter, .acc = acc, .packed_b = has_packed_filter(w), .out = axes});
  }

 protected:
  virtual Support serves_types(const Conv2dWorkload& w) const = 0;

 private:
  const int tf32_terms_;
};

// Where a term reads: the kernel's position, the channel in its group.
struct Term {
  Expr kh, kw, ic;
};
Term term_at(const Conv2dWorkload& w, const Expr& t) {
  const int64_t row = w.kernel_width * channels(w);
  return {floor_div(t, row), floor_mod(floor_div(t, channels(w)), w.kernel_width), floor_mod(t, channels(w))};
}

// columns: [group,] pixel, term.
Buffer columns_of(te::Builder& b, const Conv2dWorkload& w) {
  using te::Indices;
  const size_t g = w.groups > 1 ? 1 : 0;
  const int64_t oh = w.out_height(), ow = w.out_width();
  const auto channel = [&](const Indices& i, const Expr& ic) {
    return g == 0 ? ic : i[0] * channels(w) + ic;
  };
  std::vector<int64_t> shape = {pixels_of_all(w), terms(w)};
  std::vector<std::string> names = {"pixel", "term"};
  if (g == 1) shape.insert(shape.begin(), w.groups), names.insert(names.begin(), "group");
  if (is_plain_product(w)) {
    const Buffer data = b.input("data", {pixels_of_all(w), w.in_channels}, left_dtype(w.dtype));
    return b.compute(
        "columns", shape,
        [&](const Indices& i) {
          return load(data, {i[g], channel(i, i[g + 1])});
        },
        BufferRole::kIntermediate, names);
  }
  const Buffer data = b.input("data", {w.batch, w.in_height, w.in_width, w.in_channels}, left_dtype(w.dtype));
  return b.compute(
      "columns", shape,
      [&](const Indices& i) {
        const Term at = term_at(w, i[g + 1]);
        const Expr pixel = floor_mod(i[g], oh * ow);
        const Expr row = floor_div(pixel, ow) * w.stride[0] + at.kh * w.dilation[0] - w.padding[0];
        const Expr column = floor_mod(pixel, ow) * w.stride[1] + at.kw * w.dilation[1] - w.padding[1];
        Expr inside = bool_imm(true);  // only the sides that a kernel reaches beyond are asked about
        const auto narrow = [&](const Expr& x, int64_t before, int64_t out, int64_t stride, int64_t kernel,
                                int64_t dilation, int64_t size) {
          if (before > 0) inside = inside && x >= 0;
          if ((out - 1) * stride + (kernel - 1) * dilation - before >= size) inside = inside && x < size;
        };
        narrow(row, w.padding[0], oh, w.stride[0], w.kernel_height, w.dilation[0], w.in_height);
        narrow(column, w.padding[1], ow, w.stride[1], w.kernel_width, w.dilation[1], w.in_width);
        const Expr value = load(data, {floor_div(i[g], oh * ow), row, column, channel(i, at.ic)});
        return inside->kind == ExprKind::kIntImm ? value : select(inside, value, zero_of(data->dtype));
      },
      BufferRole::kIntermediate, names);
}

// filter: [group,] channel, term.
Buffer filter_of(te::Builder& b, const Conv2dWorkload& w) {
  using te::Indices;
  const size_t g = w.groups > 1 ? 1 : 0;
  const int64_t of_group = w.out_channels / w.groups;
  const std::vector<int64_t> weights = {w.out_channels, channels(w), w.kernel_height, w.kernel_width};
  const Buffer weight =
      has_packed_filter(w) ? b.constant("weight", weights, w.dtype) : b.input("weight", weights, w.dtype);
  std::vector<int64_t> shape = {of_group, terms(w)};
  std::vector<std::string> names = {"oc", "term"};
  if (g == 1) shape.insert(shape.begin(), w.groups), names.insert(names.begin(), "group");
  return b.compute(
      "filter", shape,
      [&](const Indices& i) {
        const Term at = term_at(w, i[g + 1]);
        return load(weight, {g == 0 ? i[0] : i[0] * of_group + i[1], at.ic, at.kh, at.kw});
      },
      BufferRole::kIntermediate, names);
}

Program Conv2dNhwcMma::compute(const Conv2dWorkload& w) const {
  using te::Indices;
  const DType sums = sum_dtype(w.dtype);
  te::Builder b("conv2d", sums);
  const size_t g = w.groups > 1 ? 1 : 0;
  const int64_t of_group = w.out_channels / w.groups;
  const Buffer columns = columns_of(b, w), filter = filter_of(b, w);
  // Pixels lie one after the other in memory, and so do groups of channels.
  std::vector<int64_t> out_shape = {pixels_of_all(w), of_group}, acc_shape = out_shape;
  std::vector<std::string> out_names = {"pixel", "oc"}, acc_names = out_names;
  if (g == 1) {
    out_shape.insert(out_shape.begin() + 1, w.groups);
    out_names.insert(out_names.begin() + 1, "group");
    acc_shape.insert(acc_shape.begin(), w.groups);
    acc_names.insert(acc_names.begin(), "group");
  }
  Conv2dWorkload unpacked = w;
  unpacked.constant.clear();
  const Epilogue epilogue = declare_epilogue(b, unpacked, w.out_channels, out_shape);
  const Buffer acc = b.reduce(
      "acc", acc_shape, {{"term", terms(w)}}, ReduceOp::kSum,
      [&](const Indices& i, const Indices& r) {
        const Indices from = g == 0 ? Indices{i[0], r[0]} : Indices{i[0], i[1], r[0]};
        const Indices with = g == 0 ? Indices{i[1], r[0]} : Indices{i[0], i[2], r[0]};
        const Expr left = cast(sums, load(columns, from)), right = cast(sums, load(filter, with));
        return tf32_terms_ > 0 ? tf32_product(left, right, tf32_terms_) : left * right;
      },
      BufferRole::kIntermediate, acc_names);
  b.compute(
      "out", out_shape,
      [&](const Indices& i) {
        const Expr sum = load(acc, g == 0 ? Indices{i[0], i[1]} : Indices{i[1], i[0], i[2]});
        return finished(epilogue, sum, g == 0 ? i[1] : i[1] * of_group + i[2], i);
      },
      BufferRole::kOutput, out_names);
  return b.finish();
}

class Conv2dNhwcMmaCuda final : public Conv2dNhwcMma {
 public:
  Conv2dNhwcMmaCuda() : Conv2dNhwcMma(/*tf32_terms=*/0) {}
  std::string_view name() const override { return "conv2d_nhwc_mma_cuda"; }

 protected:
  Support serves_types(const Conv2dWorkload& w) const override {
    if (w.dtype == DType::kBFloat16 || w.dtype == DType::kFloat16 || w.dtype == DType::kInt8)
      return supported();
    return declined("needs bfloat16, float16 or int8, got ", w.dtype);
  }
};

class Conv2dNhwcTf32Cuda final : public Conv2dNhwcMma {
 public:
  Conv2dNhwcTf32Cuda() : Conv2dNhwcMma(/*tf32_terms=*/1) {}
  std::string_view name() const override { return "conv2d_nhwc_tf32_cuda"; }
  std::string_view algorithm() const override { return "tf32"; }

 protected:
  Support serves_types(const Conv2dWorkload& w) const override {
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    return w.allow_tf32 ? supported() : declined("needs \"allow_tf32\": it takes 11 bits of each number");
  }
};

class Conv2dNhwcTf32x3Cuda final : public Conv2dNhwcMma {
 public:
  Conv2dNhwcTf32x3Cuda() : Conv2dNhwcMma(/*tf32_terms=*/3) {}
  std::string_view name() const override { return "conv2d_nhwc_tf32x3_cuda"; }
  std::string_view algorithm() const override { return "tf32x3"; }

 protected:
  Support serves_types(const Conv2dWorkload& w) const override {
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    if (w.allow_tf32) return declined("three products where one is allowed (conv2d_nhwc_tf32_cuda)");
    if (terms(w) < cuda::kLeastTermsOfThree)
      return declined("needs ", cuda::kLeastTermsOfThree, " terms of a sum or more, got ", terms(w));
    return supported();
  }
};

}  // namespace

const AnyTemplate& conv2d_nhwc_tf32_cuda() {
  static const Conv2dNhwcTf32Cuda instance;
  return instance;
}

const AnyTemplate& conv2d_nhwc_tf32x3_cuda() {
  static const Conv2dNhwcTf32x3Cuda instance;
  return instance;
}

const AnyTemplate& conv2d_nhwc_mma_cuda() {
  static const Conv2dNhwcMmaCuda instance;
  return instance;
}

}  // namespace tuner
