#include "templates/cpu/conv2d_1x1.h"

#include <algorithm>

#include "templates/workload/parts/product_math.h"

namespace tuner {
namespace {

using te::Indices;

// Which dimension of pixels goes over them.
size_t pixel_dimension(std::string_view layout) { return is_channels_last(layout) ? 1 : 2; }

// [N, C, P], [N, P, C] or [N, C/block, P, block], and the index of one element.
std::vector<int64_t> pixel_shape(std::string_view layout, int64_t n, int64_t c, int64_t pixels) {
  if (is_channels_last(layout)) return {n, pixels, c};
  const int64_t block = channel_block(layout);
  if (block == 1) return {n, c, pixels};
  return {n, c / block, pixels, block};
}
Indices pixel_index(std::string_view layout, const Expr& n, const Expr& c, const Expr& p) {
  if (is_channels_last(layout)) return {n, p, c};
  const int64_t block = channel_block(layout);
  if (block == 1) return {n, c, p};
  return {n, floor_div(c, block), p, floor_mod(c, block)};
}
std::vector<std::string> pixel_names(std::string_view layout, const std::string& channel) {
  if (is_channels_last(layout)) return {"n", "p", channel};
  if (is_planar(layout)) return {"n", channel, "p"};
  return {"n", channel, "p", channel + "b"};
}

}  // namespace

Support supports_1x1(const Conv2dWorkload& w, const Target& t) {
  if (!t.is_cpu()) return needs_target("a CPU", t);
  if (w.kernel_height != 1 || w.kernel_width != 1)
    return declined("needs a 1x1 kernel, got ", w.kernel_height, "x", w.kernel_width);
  if (w.groups != 1) return declined("needs groups = 1, got ", w.groups);
  if (std::any_of(w.padding.begin(), w.padding.end(), [](int64_t p) { return p != 0; }))
    return declined("needs no padding, got ", w.padding[0], ",", w.padding[1], ",", w.padding[2], ",",
                    w.padding[3]);
  return supported();
}

Program pixels_math(const Conv2dWorkload& w, bool channels_innermost, bool wide_weight) {
  const DType sums = sum_dtype(w.dtype);
  te::Builder b("conv2d", sums);
  const int64_t width = w.out_width(), pixels = w.out_height() * width;
  const auto argument = [&](const std::string& name, std::vector<int64_t> shape, DType dtype) {
    return Workload(w).is_constant(name) ? b.constant(name, std::move(shape), dtype)
                                         : b.input(name, std::move(shape), dtype);
  };
  Buffer data =
      argument("data",
               picks_pixels(w) ? image_shape(w.layout, w.batch, w.in_channels, w.in_height, w.in_width)
                               : pixel_shape(w.layout, w.batch, w.in_channels, pixels),
               left_dtype(w.dtype));
  Buffer weight = argument("weight", {w.out_channels, w.in_channels, 1, 1}, w.dtype);
  const std::vector<int64_t> out_shape = pixel_shape(w.out_layout, w.batch, w.out_channels, pixels);
  const Epilogue epilogue = declare_epilogue(b, w, w.out_channels, out_shape);
  if (picks_pixels(w)) {
    const Buffer all = data;
    data = b.compute(
        "picked", pixel_shape(w.layout, w.batch, w.in_channels, pixels),
        [&](const Indices& i) {
          const size_t at = pixel_dimension(w.layout);
          Indices from = i;
          from[at] = floor_div(i[at], width) * w.stride[0];
          from.insert(from.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                      floor_mod(i[at], width) * w.stride[1]);
          return load(all, std::move(from));
        },
        BufferRole::kIntermediate, pixel_names(w.layout, "ic"));
  }
  if (wide_weight)
    weight = b.compute("wide", weight->shape, [&](const Indices& i) { return cast(sums, load(weight, i)); });
  const int pixel = channels_innermost ? 1 : 2, channel = 3 - pixel;
  std::vector<int64_t> shape{w.batch, 0, 0};
  std::vector<std::string> names{"n", "", ""};
  shape[static_cast<size_t>(pixel)] = pixels;
  shape[static_cast<size_t>(channel)] = w.out_channels;
  names[static_cast<size_t>(pixel)] = "p";
  names[static_cast<size_t>(channel)] = "oc";
  const Buffer acc = b.reduce(
      "acc", shape, {{"ic", w.in_channels}}, ReduceOp::kSum,
      [&](const Indices& i, const Indices& r) {
        return cast(sums, load(data, pixel_index(w.layout, i[0], r[0], i[static_cast<size_t>(pixel)]))) *
               cast(sums, load(weight, {i[static_cast<size_t>(channel)], r[0], 0, 0}));
      },
      BufferRole::kIntermediate, names);
  const int64_t block = channel_block(w.out_layout);
  const size_t at = pixel_dimension(w.out_layout);
  b.compute(
      "out", out_shape,
      [&](const Indices& i) {
        const Expr oc = block == 1 ? i[3 - at] : i[1] * block + i[3];
        const Expr sum = load(acc, channels_innermost ? Indices{i[0], i[at], oc} : Indices{i[0], oc, i[at]});
        return finished(epilogue, sum, oc, i);
      },
      BufferRole::kOutput, pixel_names(w.out_layout, "oc"));
  return b.finish();
}

Tensor pick_pixels(Schedule& s, const Conv2dWorkload& w, const Target& t) {
  if (!picks_pixels(w)) return s.tensor("data");
  const Tensor picked = s.tensor("picked");
  const PixelAxes axes = pixel_axes(s, picked, w.layout);
  if (s.refused()) return picked;
  const auto [row, column] = s.split(axes.p, w.out_width());
  // A row of more pixels than a vectorised loop may have is cut.
  constexpr int64_t kMost = 64;
  if (is_channels_last(w.layout)) {
    s.vectorize(s.split(axes.c, kMost).inner);
    if (t.threads > 1) s.parallel(s.fuse({axes.n, row}));
    return picked;
  }
  if (channel_block(w.layout) > 1) {
    s.vectorize(axes.in_block);
  } else if (w.out_width() <= kMost) {
    s.vectorize(column);
  } else {
    s.vectorize(s.split(column, kMost).inner);
  }
  if (t.threads > 1) s.parallel(s.fuse({axes.n, axes.c, row}));
  return picked;
}

PixelAxes pixel_axes(Schedule& s, const Tensor& pixels, std::string_view layout) {
  if (is_channels_last(layout)) {
    const auto [n, p, c] = s.axes<3>(pixels);
    return {n, c, p, {}};
  }
  if (is_planar(layout)) {
    const auto [n, c, p] = s.axes<3>(pixels);
    return {n, c, p, {}};
  }
  const auto [n, c, p, in_block] = s.axes<4>(pixels);
  return {n, c, p, in_block};
}

}  // namespace tuner
