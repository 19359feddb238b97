// conv2d_winograd_cpu: 3x3 convolution by Winograd's F(m, 3) down the rows and F(k, 3) along them; a template
// for each of 2x2, 2x4, 4x4, 5x5 and 6x6 outputs.
//
//   (m + 2) (k + 2) products a tile of m k outputs, in place of 9 m k; they round differently from the direct
//   sums.
//   xi, nu: position in the transformed tile; p: tile of the image, row by row; channels in blocks
//
//   u[xi][nu][oc panel][ic][oc]: transformed weights, by the packing entry
//   parallel n, block of tile rows (and block of oc, if data are ahead)
//     v[xi][nu][ic block][p][ic]: for ic block
//       padded: the rows of the block with zeros around (transposed where pixels lie side by side)
//       for tile row
//         rows: for column, unrolled xi, vector of ic      one dimension...
//         for tile, xi, unrolled nu, vector of ic          ...and the other
//     for block of oc
//       product[xi][nu][oc block][p][oc]: for xi, nu, oc panel, group of tiles
//         for ic                                           a matrix product each, as matmul_cpu does it
//           unrolled tile, unrolled vector of oc
//       for oc block, tile row, tile
//         half: for nu, unrolled i, vector of oc           back, one dimension...
//         for i, unrolled j, vector of oc                  ...and the other; the epilogue
//
// With data ahead, all of v is made first, by all threads: blocks of oc are then shared among them, too, so
// that small images keep many threads busy and each reads but a part of the weights.
//
// Any size and padding: the last tiles are partly outside, which costs their products. Needs a constant
// weight, stride and dilation 1, no groups, float32.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/te/te.h"
#include "templates/cpu/conv2d_winograd_math.h"
#include "templates/cpu/cpu_images.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct Conv2dWinogradKnobs {
  ChoiceKnob tile_rows, group, vectors, oc_share, unroll_ic;
  CategoryKnob order;
  FlagKnob next_panel, data_ahead;
};

class Conv2dWinogradCpu final : public ScheduleTemplate<Conv2dWorkload, Conv2dWinogradKnobs> {
 public:
  explicit Conv2dWinogradCpu(WinogradTile m) : m_(m), name_(str("conv2d_winograd", text_of(m), "_cpu")) {}
  using ScheduleTemplate::supports;
  std::string_view name() const override { return name_; }
  int version() const override { return 4; }
  bool serves_channels_last() const override { return true; }
  std::string_view algorithm() const override { return "winograd"; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    if (w.kernel_height != 3 || w.kernel_width != 3)
      return declined("needs a kernel of 3x3, got ", w.kernel_height, "x", w.kernel_width);
    if (w.stride != std::array<int64_t, 2>{1, 1})
      return declined("needs stride 1, got [", w.stride[0], ", ", w.stride[1], "]");
    if (w.dilation != std::array<int64_t, 2>{1, 1})
      return declined("needs dilation 1, got [", w.dilation[0], ", ", w.dilation[1], "]");
    if (w.groups != 1) return declined("needs groups = 1, got ", w.groups);
    if (!Workload(w).is_constant("weight")) return declined("needs a constant weight, to transform it ahead");
    if (const double error = winograd_relative_error(m_, w.in_channels); error > kMostWinogradError)
      return declined("F(", text_of(m_), ", 3) over ", w.in_channels, " channels may err by ", error,
                      " of the largest output, allowed are ", kMostWinogradError);
    const int64_t bytes = 4 * (m_.rows + 2) * (m_.columns + 2) * w.in_channels * w.out_channels;
    const int64_t most = kWeightsPerCache * std::max(t.l3_bytes, 4 * t.l2_bytes);
    if (bytes > most)
      return declined("its transformed weights take ", bytes >> 20, " MiB, at most ", most >> 20,
                      " of them pay beside this target's caches");
    return supported();
  }
  Tolerance tolerance(const Workload& workload) const override {
    const Tolerance direct = tolerance_of(workload);
    const Conv2dWorkload& w = *workload.get_if<Conv2dWorkload>();
    const double steep = std::max(1.0, steepest(w.activation));
    return {steep * winograd_tolerance(m_, w.in_channels), direct.relative};
  }

  Conv2dWinogradKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    const WinogradSizes z = winograd_sizes(w, m_);
    const int64_t per_block = ceil_div(z.oc_block, t.f32_lanes()), registers = t.vector_registers();
    // Threads share blocks of rows, and blocks of channels where there are some: with fewer than threads some
    // would have nothing to do.
    const bool may_be_ahead = t.threads > 1 && z.oc_blocks > 1;
    std::vector<int64_t> row_counts{1};
    for (int64_t rows = 2; rows <= z.tile_rows; ++rows)
      if (z.tile_rows % rows == 0 && (may_be_ahead || w.batch * (z.tile_rows / rows) >= t.threads))
        row_counts.push_back(rows);
    const int64_t tiles = row_counts.back() * z.tile_columns;  // of the largest block
    const First first = first_of(w, z, row_counts, per_block, t);
    std::vector<int64_t> groups;
    for (int64_t g = 1; g <= std::min(registers, tiles); ++g) groups.push_back(g);
    std::vector<int64_t> shares;
    for (int64_t s = 1; s <= z.oc_blocks; s *= 2) shares.push_back(s);
    Conv2dWinogradKnobs k{
        // Rows of tiles done together: more use each transformed weight more often; v and the products of few
        // stay in L2.
        .tile_rows = space.choice("tile_rows", row_counts).try_first(first.tile_rows),
        // Tiles of the register tile: they share the loads of the weights.
        .group = space.choice("group", groups).try_first(first.group),
        // Blocks of channels of the register tile: they share the loads of v.
        .vectors = space.choice("vectors", {1, 2, 3, 4}).try_first(first.vectors),
        // Parts of the output channels whose products are held at once: fewer products at once stay nearer.
        .oc_share = space.choice("oc_share", shares).try_first(first.oc_share),
        .unroll_ic = space.choice("unroll_ic", {1, 2, 4}).try_first(first.unroll_ic),
        // What stays in the cache between register tiles: a panel of weights, or a group of tiles.
        .order = space.category("order", {"panels_outer", "tiles_outer"}).try_first("panels_outer"),
        // The weights of the next panel are asked for while this one is used.
        .next_panel =
            space.flag("next_panel")
                .try_first(cpu::asks_ahead_first(tiles) && z.oc_blocks > first.vectors * first.oc_share),
        // The tiles of the whole image are made first, and threads share blocks of output channels, too.
        .data_ahead = space.flag("data_ahead").try_first(first.data_ahead),
    };
    if (may_be_ahead) {
      const IntExpr row_blocks = w.batch * ceil_div(IntExpr(z.tile_rows), k.tile_rows);
      space.require(k.data_ahead || k.tile_rows == 1 || row_blocks >= t.threads);
      space.require(!k.data_ahead || k.oc_share * row_blocks >= std::min<int64_t>(t.threads, shares.back()));
    } else {
      space.require(k.data_ahead == 0);
    }
    const IntExpr accumulators = k.group * k.vectors * per_block;
    // Accumulators, the weights and one broadcast must fit the registers; few leave the multipliers waiting.
    space.require(accumulators + k.vectors * per_block + 1 <= registers);
    space.require(accumulators >= std::min(registers / 3, tiles * per_block));
    // Longer bodies only compile longer.
    space.require(accumulators * k.unroll_ic <= 128);
    // Groups of a block as equal as can be: a small rest is a second body that does little.
    const IntExpr block = k.tile_rows * z.tile_columns;
    space.require(k.group <= block);
    space.require(ceil_div(block, ceil_div(block, k.group)) == k.group);
    space.require(k.vectors * k.oc_share <= z.oc_blocks);
    if (!cpu::may_ask_ahead(tiles)) space.require(k.next_panel == 0);
    space.require(!k.next_panel || (k.order == 0 && ceil_div(z.oc_blocks, k.oc_share) > k.vectors));
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override { return winograd_program(w, m_); }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const Conv2dWinogradKnobs& k,
                const Config& c) const override {
    const WinogradSizes z = winograd_sizes(w, m_);
    const Tensor panels = transform_weights(s, c[k.vectors] * z.oc_block, t.f32_lanes());
    const Tensor product = s.tensor("product");
    const Tensor acc = s.cache_write(product, MemoryScope::kRegister);
    const bool ahead = c[k.data_ahead] != 0;
    const Places at = transform_back(s, z, w.out_layout, c[k.tile_rows], ceil_div(z.oc_blocks, c[k.oc_share]),
                                     t.f32_lanes(), ahead);
    const Loops loops = multiply(s, product, acc, ahead ? at.tiles : at.channels, c[k.group], c[k.vectors],
                                 c[k.unroll_ic], c[k.order] == 1);
    if (c[k.next_panel]) s.prefetch_next(panels, acc, loops.panel, loops.groups);
    const SplitAxes of_data = transform_data(s, z, is_planar(w.layout), ahead ? nullptr : &at.tiles);
    if (t.threads == 1) return;
    if (ahead) {
      s.parallel(s.fuse({of_data.outer, of_data.inner}));
      s.parallel(s.fuse({at.batch, at.channels, at.tiles}));
    } else {
      s.parallel(s.fuse({at.batch, at.tiles}));
    }
  }

 private:
  // Weights that come from memory again and again cost more than the products they save.
  static constexpr int64_t kWeightsPerCache = 2;
  // Columns of an image that are transposed at once.
  static constexpr int64_t kTransposed = 16;

  // The values to try first.
  struct First {
    int64_t tile_rows, group, vectors, unroll_ic;
    int64_t oc_share = 1;
    bool data_ahead = false;
  };
  // As many rows of tiles as keep v and the products near, but a register tile at least; where threads would
  // not all get one, they share output channels. Groups of even size.
  static First first_of(const Conv2dWorkload& w, const WinogradSizes& z,
                        const std::vector<int64_t>& row_counts, int64_t per_block, const Target& t) {
    constexpr int64_t kFewTiles = 12;
    const int64_t registers = t.vector_registers();
    const int64_t row_bytes =
        4 * z.height * z.width * z.tile_columns * (z.ic_blocks * z.ic_block + z.oc_blocks * z.oc_block);
    First first{.tile_rows = 1, .group = 1, .vectors = 1, .unroll_ic = 1};
    const auto most_rows = [&](int64_t blocks) {
      int64_t most = 1;
      for (const int64_t rows : row_counts)
        if (w.batch * (z.tile_rows / rows) >= blocks &&
            (rows * row_bytes <= 2 * t.l2_bytes || most * z.tile_columns < kFewTiles))
          most = rows;
      return most;
    };
    first.tile_rows = most_rows(t.threads);
    if (t.threads > 1 && first.tile_rows * z.tile_columns < kFewTiles && z.oc_blocks > 1) {
      first.data_ahead = true;
      first.tile_rows = most_rows(1);
      const int64_t row_blocks = w.batch * (z.tile_rows / first.tile_rows);
      while (first.oc_share * row_blocks < t.threads && 2 * first.oc_share <= z.oc_blocks)
        first.oc_share *= 2;
    }
    if (z.oc_blocks >= 2 * first.oc_share && registers >= 12 * per_block) first.vectors = 2;
    const int64_t block = first.tile_rows * z.tile_columns;
    int64_t most = std::max<int64_t>((registers - 4) / (first.vectors * per_block) - 1, 1);
    // Where lanes are taken, four channels of a tile are one vector.
    if (cpu::broadcasts_of(t, false) != cpu::Broadcasts::kEach && z.ic_block % 4 == 0) {
      const int64_t weights = first.vectors * per_block;
      most = (registers - 2 - weights) / (weights + 1);
      first.unroll_ic = 4;
    }
    first.group = ceil_div(block, ceil_div(block, most));
    // Groups of even size may be half of what fits, and too few for the multipliers (declare()): then one
    // group less.
    const int64_t tiles = row_counts.back() * z.tile_columns, per_tile = first.vectors * per_block;
    for (int64_t groups = ceil_div(block, first.group) - 1;
         groups > 0 && first.group * per_tile < std::min(registers / 3, tiles * per_block); --groups) {
      const int64_t larger = ceil_div(block, groups);
      if ((larger + 1) * per_tile + 1 > registers || larger * per_tile * first.unroll_ic > 128) break;
      first.group = larger;
    }
    return first;
  }

  struct Places {
    Axis batch, tiles, channels;  // loops: image, block of tile rows, block of output channels
  };

  // Returns the panels of transformed weights.
  static Tensor transform_weights(Schedule& s, int64_t panel, int64_t lanes) {
    const Tensor u = s.tensor("u"), half = s.tensor("half_u");
    const Tensor packed = s.pack(u, {{0}, {1}, {3, panel}, {2}, {3, panel, true}});
    s.inline_compute(u);
    const auto [xi, nu, panels, ic, oc] = s.axes<5>(packed);
    // One vector of channels at a time: this runs once, so that a short code is worth more than a fast one.
    const auto [vector, lane] = s.split(oc, std::min(panel, lanes));
    s.reorder({panels, ic, vector, xi, nu, lane});
    s.set_scope(half, MemoryScope::kRegister);  // packing entries have no workspace
    s.compute_at(half, vector);
    s.unroll(xi);
    s.unroll(nu);
    s.vectorize(lane);
    const auto [h_xi, kw, h_ic, h_oc] = s.inner_axes<4>(half);
    s.unroll(h_xi);
    s.unroll(kw);
    s.vectorize(h_oc);
    s.precompute(packed);
    return packed;
  }

  // The loops of the output, with its stages inside.
  static Places transform_back(Schedule& s, const WinogradSizes& z, std::string_view layout,
                               int64_t tile_rows, int64_t oc_blocks, int64_t lanes, bool channels_outer) {
    const Tensor out = s.tensor("out"), y = s.tensor("y"), half = s.tensor("half");
    const cpu::ImageAxes image = cpu::image_axes(s, out, layout);
    if (s.refused()) return {};
    const auto [rows, i] = s.split(image.h, z.m.rows);
    const auto [row_block, row] = s.split(rows, tile_rows);
    const SplitAxes in_block =
        channel_block(layout) > 1 ? SplitAxes{image.c, image.in_block} : s.split(image.c, z.oc_block);
    const auto [oc_outer, oc_inner] = s.split(in_block.outer, oc_blocks);
    const Axis outer = channels_outer ? oc_outer : row_block, next = channels_outer ? row_block : oc_outer;
    Axis tile, tile_i, tile_j, lane;
    if (!is_planar(layout)) {
      s.inline_compute(y);
      const auto [column, j] = s.split(image.w, z.m.columns);
      s.reorder({outer, next, oc_inner, row, column, i, j, in_block.inner});
      tile = column, tile_i = i, tile_j = j, lane = in_block.inner;
    } else {
      const auto [columns, column] = s.split(image.w, lanes);
      s.reorder({outer, next, oc_inner, row, i, columns, in_block.inner, column});
      s.vectorize(column);
      s.vectorize_rows(in_block.inner);
      s.compute_at(y, row);
      const auto [n, ocb, oh, ow, oc] = s.inner_axes<5>(y);
      const auto [y_column, j] = s.split(ow, z.m.columns);
      s.reorder({y_column, oh, j, oc});
      tile = y_column, tile_i = oh, tile_j = j, lane = oc;
    }
    s.compute_at(half, tile);
    s.unroll(tile_j);
    s.vectorize(lane);
    const auto [n, ocb, p, h_i, nu, oc] = s.inner_axes<6>(half);
    s.reorder({nu, h_i, oc});
    s.unroll(h_i);
    s.vectorize(oc);
    return {image.n, row_block, oc_outer};
  }

  // The loops of the product that go over panels of weights and over groups of tiles.
  struct Loops {
    Axis panel, groups;
  };
  static Loops multiply(Schedule& s, const Tensor& product, const Tensor& acc, const Axis& place,
                        int64_t group, int64_t vectors, int64_t unroll_ic, bool tiles_outer) {
    s.compute_at(product, place);
    const auto [xi, nu, n, ocb, p, oc] = s.inner_axes<6>(product);
    const auto [panel, vector] = s.split(ocb, vectors);
    const auto [groups, tile] = s.split(p, group);
    if (tiles_outer)
      s.reorder({xi, nu, groups, panel, tile, vector, oc});
    else
      s.reorder({xi, nu, panel, groups, tile, vector, oc});
    s.compute_at(acc, tiles_outer ? panel : groups);
    s.unroll(tile);
    s.unroll(vector);
    s.vectorize(oc);
    const auto [a_xi, a_nu, a_n, a_ocb, a_p, a_oc] = s.inner_axes<6>(acc);
    const auto [icb, ic] = s.reduce_axes<2>(acc);
    const auto [ic_outer, ic_inner] = s.split(ic, unroll_ic);
    s.reorder({icb, ic_outer, ic_inner, a_p, a_ocb, a_oc});
    s.decompose_reduction(acc, icb);
    s.unroll(ic_inner);
    s.unroll(a_p);
    s.unroll(a_ocb);
    s.vectorize(a_oc);
    return {panel, groups};
  }

  // The image's tiles, for a place of the output's loops, or, without one, all of them first. Returns the
  // loops over images and blocks of channels.
  static SplitAxes transform_data(Schedule& s, const WinogradSizes& z, bool planar, const Axis* place) {
    const Tensor v = s.tensor("v"), rows = s.tensor("rows"), padded = s.tensor("padded");
    if (place != nullptr) s.compute_at(v, *place);
    const auto [xi, nu, n, icb, p, ic] = place != nullptr ? s.inner_axes<6>(v) : s.axes<6>(v);
    const auto [row, column] = s.split(p, z.tile_columns);
    s.reorder({n, icb, row, column, xi, nu, ic});
    s.compute_at(rows, row);
    s.compute_at(padded, icb);
    s.unroll(nu);
    s.vectorize(ic);
    const auto [r_n, r_icb, r_row, r_xi, r_column, r_ic] = s.inner_axes<6>(rows);
    s.reorder({r_column, r_xi, r_ic});
    s.unroll(r_xi);
    s.vectorize(r_ic);
    const auto [d_n, d_icb, d_row, d_column, d_ic] = s.inner_axes<5>(padded);
    const Axis together = planar ? s.split(d_column, kTransposed).inner : d_column;
    s.vectorize(d_ic);
    if (planar) s.vectorize_rows(together);
    return {n, icb};
  }

  const WinogradTile m_;
  const std::string name_;
};

}  // namespace

const AnyTemplate& conv2d_winograd2_cpu() {
  static const Conv2dWinogradCpu instance({.rows = 2, .columns = 2});
  return instance;
}
const AnyTemplate& conv2d_winograd2x4_cpu() {
  static const Conv2dWinogradCpu instance({.rows = 2, .columns = 4});
  return instance;
}
const AnyTemplate& conv2d_winograd4_cpu() {
  static const Conv2dWinogradCpu instance({.rows = 4, .columns = 4});
  return instance;
}
const AnyTemplate& conv2d_winograd5_cpu() {
  static const Conv2dWinogradCpu instance({.rows = 5, .columns = 5});
  return instance;
}
const AnyTemplate& conv2d_winograd6_cpu() {
  static const Conv2dWinogradCpu instance({.rows = 6, .columns = 6});
  return instance;
}

}  // namespace tuner
