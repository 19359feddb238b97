#include "templates/cpu/conv2d_cpu_tile.h"

#include <algorithm>
#include <numeric>

#include "compiler_core/base/int_math.h"

namespace tuner::conv2d_cpu {
namespace {

// The size that cuts `extent` into as many parts, as equal as can be.
int64_t balanced(int64_t extent, int64_t part) { return ceil_div(extent, ceil_div(extent, part)); }

Border border(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t low) {
  const int64_t end = (out - 1) * stride + (kernel - 1) * dilation - low;
  return {low, std::max<int64_t>(end - (in - 1), 0)};
}

}  // namespace

Border rows_border(const Conv2dWorkload& w) {
  return border(w.in_height, w.out_height(), w.kernel_height, w.stride[0], w.dilation[0], w.padding[0]);
}
Border columns_border(const Conv2dWorkload& w) {
  return border(w.in_width, w.out_width(), w.kernel_width, w.stride[1], w.dilation[1], w.padding[1]);
}

Shape::Shape(const Conv2dWorkload& w, const Target& t)
    : dot(cpu::dot_group(w.dtype)),
      in_group(ceil_div(w.in_channels / w.groups, dot)),
      out_group(w.out_channels / w.groups),
      in_block(std::gcd(in_group, std::max<int64_t>(channel_block(w.layout) / dot, 1))),
      out_block(channel_block(w.out_layout)),
      planar_out(is_planar(w.out_layout)),
      lanes(w.out_channels == 1 ? 1 : t.f32_lanes()),
      broadcasts(cpu::broadcasts_of(t, in_block == 1 && !is_channels_last(w.layout))),
      stride_width(w.stride[1]),
      rows(rows_border(w)),
      columns(columns_border(w)),
      kernel_width(w.kernel_width),
      out_height(w.out_height()),
      out_width(w.out_width()) {
  if (w.groups > 1) lanes = std::gcd(lanes, out_group);  // no vector is in two groups
}

int64_t data_registers(const Shape& shape, int64_t oh, int64_t ow) {
  if (shape.broadcasts != cpu::Broadcasts::kLanesOfRows) return registers_of(shape.broadcasts, oh * ow);
  return oh * registers_of(shape.broadcasts, (ow - 1) * shape.stride_width + 1);
}

Tile first_tile(const Shape& shape, int64_t registers) {
  // Where lanes are taken there is no operand in memory, and one register is left to the compiler.
  const int64_t free = shape.broadcasts == cpu::Broadcasts::kEach ? 0 : 1;
  // Cycles for one input channel and tap of a tile.
  const auto cycles = [&](int64_t pixels, int64_t vectors) {
    return cpu::cycles_of_terms(pixels, vectors, shape.broadcasts);
  };
  Tile best{1, 1, 1};
  double best_cost = 1e300;
  for (const int64_t vectors : {1, 2, 4})
    for (int64_t oh = 1; oh <= std::min<int64_t>(shape.out_height, 7); ++oh)
      for (int64_t ow = 1; ow <= std::min(shape.out_width, registers); ++ow) {
        const int64_t channels = vectors * shape.lanes, pixels = oh * ow;
        const bool fits = pixels * vectors + vectors + data_registers(shape, oh, ow) <= registers - free &&
                          pixels * vectors * shape.bodies<int64_t>(channels, oh, ow, 0) <= kMaxKernel;
        const bool whole = vectors == 1 || shape.out_group % channels == 0;
        if (!fits || !whole || balanced(shape.out_height, oh) != oh || balanced(shape.out_width, ow) != ow)
          continue;
        const int64_t down = shape.out_height / oh, across = shape.out_width / ow;
        const int64_t rest_h = shape.out_height % oh, rest_w = shape.out_width % ow;
        const double pass = static_cast<double>(down * across) * cycles(pixels, vectors) +
                            static_cast<double>(down) * cycles(oh * rest_w, vectors) +
                            static_cast<double>(across) * cycles(rest_h * ow, vectors) +
                            cycles(rest_h * rest_w, vectors);
        const double cost = pass * static_cast<double>(ceil_div(shape.out_group, channels));
        if (cost < best_cost) {
          best_cost = cost;
          best = {vectors, oh, ow};
        }
      }
  return best;
}

}  // namespace tuner::conv2d_cpu
