#include "templates/cpu/conv2d_winograd_math.h"

#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/int_math.h"
#include "compiler_core/te/te.h"
#include "templates/workload/parts/product_math.h"

namespace tuner {
namespace {

using te::Indices;

// Channels that are not in blocks yet are put in blocks of this many: whole vectors of any target.
int64_t block_of(std::string_view layout) {
  const int64_t block = channel_block(layout);
  return block == 1 ? 16 : block;
}

// select(every condition, value, 0) of those conditions that do not hold by themselves.
class Inside {
 public:
  void unless(bool always, Expr condition) {
    if (always) return;
    all_ = all_.defined() ? all_ && std::move(condition) : std::move(condition);
  }
  Expr or_zero(const Expr& value) const { return all_.defined() ? select(all_, value, float_imm(0)) : value; }

 private:
  Expr all_;
};

// The transforms down the rows and along them.
struct Transforms {
  Winograd down, along;
};

// n expressions, at 0..n-1.
template <class F>
std::vector<Expr> each(int64_t n, const F& f) {
  std::vector<Expr> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(f(i));
  return values;
}

// The weight's tiles: u[xi, nu, ic, oc], channels of whole blocks.
Buffer transformed_weight(te::Builder& b, const Conv2dWorkload& w, const WinogradSizes& z,
                          const Transforms& f, const Buffer& weight) {
  const int64_t ic = z.ic_blocks * z.ic_block, oc = z.oc_blocks * z.oc_block;
  const Buffer half_u =
      b.compute("half_u", {z.height, 3, ic, oc},
                [&](const Indices& i) {
                  Inside inside;
                  inside.unless(ic == w.in_channels, i[2] < w.in_channels);
                  inside.unless(oc == w.out_channels, i[3] < w.out_channels);
                  return transformed(f.down.g, i[0], each(3, [&](int64_t kh) {
                                       return inside.or_zero(load(weight, {i[3], i[2], kh, i[1]}));
                                     }));
                },
                BufferRole::kIntermediate, {"xi", "kw", "ic", "oc"});
  return b.compute("u", {z.height, z.width, ic, oc},
                   [&](const Indices& i) {
                     return transformed(f.along.g, i[1], each(3, [&](int64_t kw) {
                                          return load(half_u, {i[0], kw, i[2], i[3]});
                                        }));
                   },
                   BufferRole::kIntermediate, {"xi", "nu", "ic", "oc"});
}

// The image's tiles: v[xi, nu, n, icb, tile, ic].
Buffer transformed_data(te::Builder& b, const Conv2dWorkload& w, const WinogradSizes& z, const Transforms& f,
                        const Buffer& data) {
  const int64_t ic = z.ic_blocks * z.ic_block;
  const auto [m, k] = z.m;
  const int64_t rows = z.tile_rows * m + 2, columns = z.tile_columns * k + 2;
  const auto [top, left, bottom, right] = w.padding;
  const Buffer padded = b.compute(
      "padded", {w.batch, z.ic_blocks, rows, columns, z.ic_block},
      [&, top = top, left = left](const Indices& i) {
        const Expr channel = i[1] * z.ic_block + i[4];
        Inside inside;
        inside.unless(ic == w.in_channels, channel < w.in_channels);
        inside.unless(top == 0, i[2] >= top);
        inside.unless(rows <= top + w.in_height, i[2] < top + w.in_height);
        inside.unless(left == 0, i[3] >= left);
        inside.unless(columns <= left + w.in_width, i[3] < left + w.in_width);
        return inside.or_zero(load(data, image_index(w.layout, i[0], channel, i[2] - top, i[3] - left)));
      },
      BufferRole::kIntermediate, {"n", "icb", "ph", "pw", "ic"});
  const Buffer half_v =
      b.compute("rows", {w.batch, z.ic_blocks, z.tile_rows, z.height, columns, z.ic_block},
                [&, m = m](const Indices& i) {
                  return transformed(f.down.b, i[3], each(z.height, [&](int64_t r) {
                                       return load(padded, {i[0], i[1], i[2] * m + r, i[4], i[5]});
                                     }));
                },
                BufferRole::kIntermediate, {"n", "icb", "th", "xi", "pw", "ic"});
  const int64_t tiles = z.tile_rows * z.tile_columns;
  return b.compute("v", {z.height, z.width, w.batch, z.ic_blocks, tiles, z.ic_block},
                   [&, k = k](const Indices& i) {
                     const Expr row = floor_div(i[4], z.tile_columns),
                                column = floor_mod(i[4], z.tile_columns);
                     return transformed(f.along.b, i[1], each(z.width, [&](int64_t c) {
                                          return load(half_v, {i[2], i[3], row, i[0], column * k + c, i[5]});
                                        }));
                   },
                   BufferRole::kIntermediate, {"xi", "nu", "n", "icb", "p", "ic"});
}

// The output's blocks of channels, out of the products of tiles.
Buffer transformed_back(te::Builder& b, const Conv2dWorkload& w, const WinogradSizes& z, const Transforms& f,
                        const Buffer& product) {
  const int64_t tiles = z.tile_rows * z.tile_columns;
  const Buffer half =
      b.compute("half", {w.batch, z.oc_blocks, tiles, z.m.rows, z.width, z.oc_block},
                [&](const Indices& i) {
                  return transformed(f.down.a, i[3], each(z.height, [&](int64_t xi) {
                                       return load(product, {xi, i[4], i[0], i[1], i[2], i[5]});
                                     }));
                },
                BufferRole::kIntermediate, {"n", "ocb", "p", "i", "nu", "oc"});
  return b.compute("y", {w.batch, z.oc_blocks, w.out_height(), w.out_width(), z.oc_block},
                   [&](const Indices& i) {
                     const auto [m, k] = z.m;
                     const Expr p = floor_div(i[2], m) * z.tile_columns + floor_div(i[3], k);
                     return transformed(f.along.a, floor_mod(i[3], k), each(z.width, [&, m = m](int64_t nu) {
                                          return load(half, {i[0], i[1], p, floor_mod(i[2], m), nu, i[4]});
                                        }));
                   },
                   BufferRole::kIntermediate, {"n", "ocb", "oh", "ow", "oc"});
}

}  // namespace

WinogradSizes winograd_sizes(const Conv2dWorkload& w, WinogradTile m) {
  const int64_t in = block_of(w.layout), out = block_of(w.out_layout);
  return {.m = m,
          .height = m.rows + 2,
          .width = m.columns + 2,
          .tile_rows = ceil_div(w.out_height(), m.rows),
          .tile_columns = ceil_div(w.out_width(), m.columns),
          .ic_block = in,
          .ic_blocks = ceil_div(w.in_channels, in),
          .oc_block = out,
          .oc_blocks = ceil_div(w.out_channels, out)};
}

Program winograd_program(const Conv2dWorkload& w, WinogradTile m) {
  const WinogradSizes z = winograd_sizes(w, m);
  const Transforms f{.down = winograd(m.rows), .along = winograd(m.columns)};
  te::Builder b("conv2d", w.dtype);
  const auto operand = [&](const std::string& name, std::vector<int64_t> shape) {
    return Workload(w).is_constant(name) ? b.constant(name, std::move(shape))
                                         : b.input(name, std::move(shape));
  };
  const Buffer data = operand("data", image_shape(w.layout, w.batch, w.in_channels, w.in_height, w.in_width));
  const Buffer weight = operand("weight", {w.out_channels, w.in_channels, 3, 3});
  const std::vector<int64_t> out_shape =
      image_shape(w.out_layout, w.batch, w.out_channels, w.out_height(), w.out_width());
  const Epilogue epilogue = declare_epilogue(b, w, w.out_channels, out_shape);

  const Buffer u = transformed_weight(b, w, z, f, weight);
  const Buffer v = transformed_data(b, w, z, f, data);
  const int64_t tiles = z.tile_rows * z.tile_columns;
  const Buffer product =
      b.reduce("product", {z.height, z.width, w.batch, z.oc_blocks, tiles, z.oc_block},
               {{"icb", z.ic_blocks}, {"ic", z.ic_block}}, ReduceOp::kSum,
               [&](const Indices& i, const Indices& r) {
                 return load(v, {i[0], i[1], i[2], r[0], i[4], r[1]}) *
                        load(u, {i[0], i[1], r[0] * z.ic_block + r[1], i[3] * z.oc_block + i[5]});
               },
               BufferRole::kIntermediate, {"xi", "nu", "n", "ocb", "p", "oc"});
  const Buffer y = transformed_back(b, w, z, f, product);
  const bool blocked = channel_block(w.out_layout) > 1;
  std::vector<std::string> names = {"n", blocked ? "ocb" : "oc", "oh", "ow"};
  if (is_channels_last(w.out_layout)) names = {"n", "oh", "ow", "oc"};
  if (blocked) names.emplace_back("oc");
  b.compute(
      "out", out_shape,
      [&](const Indices& i) {
        const ImagePlace at = image_place(w.out_layout, i);
        const Expr sum =
            load(y, {at.n, floor_div(at.c, z.oc_block), at.h, at.w, floor_mod(at.c, z.oc_block)});
        return finished(epilogue, sum, at.c, i);
      },
      BufferRole::kOutput, names);
  return b.finish();
}

}  // namespace tuner
