// matmul_npu: matrix product of 8 bits on the NPU, requantised on the way out.
//
//   out[i, j] = T(clamp(round(act(float32(sum[i, j] + bias[j]) * scale[j]))) + zero_point)
//   sum[i, j] = sum over k of a[i, k] * b[k, j]
//
//   for tile of rows, tile of columns           or the other way round (`order`)
//     [resident: all of k of the outer tile's operand, loaded once]
//     for tile of k                             `stages` tiles of a and b on their way
//       load a, load b                          zeros beyond the tensor
//       weight stationary, a is [M, K]:
//         for block of k, block of columns      R x C weights, filled while the block before is multiplied
//           for row: npu.rows                   one instruction: all rows of the tile pass the weights
//       output stationary, a is [K, M]:
//         for block of rows, block of columns   R x C sums
//           for k: npu.terms                    one instruction: all terms of the tile of k
//     store the tile
//
// Which of the two dataflows serves follows from how a is stored: the array takes k along its rows, or term
// by term. A constant b, transposed or not, is packed ahead: rows of a tile side by side. Declines batches, a
// transposed b that is no constant, residuals, a constant a, and sums of 32 bits.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_npu/npu_family.h"
#include "templates/npu/npu_templates.h"
#include "templates/npu/npu_tiles.h"

namespace tuner {
namespace {

struct MatmulNpuKnobs {
  ChoiceKnob tile_m, tile_n, tile_k;
  ChoiceKnob order;
  FlagKnob resident;
  ChoiceKnob panel_stages, stages;
};

class MatmulNpu final : public ScheduleTemplate<MatmulWorkload, MatmulNpuKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_npu"; }
  int version() const override { return 1; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!is_npu(t)) return needs_target("an NPU", t);
    const npu::Machine m = machine_of(t);
    if (const Support product = npu_tiles::serves_product(w, w.n, m); !product.yes) return product;
    if (w.batch != 1) return declined("needs batch = 1, got ", w.batch);
    const bool packs_b = Workload(w).is_constant("b");
    if (w.transpose_b && !packs_b) return declined("needs b as [K, N], or constant: then it is packed ahead");
    if (Workload(w).is_constant("a")) return declined("packs no constant a");
    if (w.k < 2) return declined("needs k >= 2, got ", w.k);
    if (w.transpose_a && w.m < 2) return declined("needs m >= 2 where a is [K, M], got ", w.m);
    const int64_t least = 2 * m.array_rows * m.array_columns + npu_tiles::tables_bytes(w.n, m);
    if (least > m.scratchpad_bytes) return declined("needs a scratchpad of ", least, " bytes");
    return supported();
  }

  MatmulNpuKnobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    const npu::Machine m = machine_of(t);
    const int64_t rows = m.array_rows, columns = m.array_columns,
                  room = m.scratchpad_bytes - npu_tiles::tables_bytes(w.n, m);
    // Rows of operands are at most so many words apart.
    const int64_t widest = npu_tiles::kMostStride * m.bank_bytes;
    const std::vector<int64_t> tiles_m =
        npu_tiles::equal_tiles(w.m, w.transpose_a ? rows : 1,
                               std::min(m.accumulator_rows(), w.transpose_a ? widest : npu_tiles::kMostRows));
    const std::vector<int64_t> tiles_n = npu_tiles::equal_tiles(
        w.n, columns, std::min(widest, std::max<int64_t>(columns, m.scratchpad_bytes / 4 / rows)));
    const std::vector<int64_t> tiles_k = npu_tiles::equal_tiles(w.k, rows, widest);
    // Half of the accumulators: the other half is stored meanwhile.
    const int64_t first_n = npu_tiles::at_most(tiles_n, 4 * columns);
    int64_t first_m =
        npu_tiles::at_most(tiles_m, std::max<int64_t>(1, m.accumulator_rows() / 2 / (first_n / columns)));
    const auto fits = [&](int64_t tile_m, int64_t tile_k, int64_t stages) {
      return stages * (tile_m + first_n) * tile_k <= room &&
             tile_m * (first_n / columns) <= m.accumulator_rows();
    };
    while (first_m != tiles_m.back() && !fits(first_m, tiles_k.back(), 2))
      first_m = npu_tiles::at_most(tiles_m, first_m - 1);
    int64_t first_k = npu_tiles::at_most(tiles_k, 8 * rows);
    while (first_k != tiles_k.back() && !fits(first_m, first_k, 2))
      first_k = npu_tiles::at_most(tiles_k, first_k - 1);
    const int64_t loops = ceil_div(w.k, first_k) > 1 ? ceil_div(w.k, first_k) : ceil_div(w.n, first_n);
    MatmulNpuKnobs k{
        // Rows of a tile: so many pass the weights once these are filled.
        .tile_m = space.choice("tile_m", tiles_m).try_first(first_m),
        // Columns of a tile: whole blocks of the array. A row of a that is loaded serves so many.
        .tile_n = space.choice("tile_n", tiles_n).try_first(first_n),
        // Terms that are loaded at once. Rows of whole bursts cost least; few terms leave the array waiting
        // less at the beginning of a tile.
        .tile_k = space.choice("tile_k", tiles_k).try_first(first_k),
        // 0: tiles of rows outside, b passes by again and again; 1: tiles of columns outside.
        .order = space.choice("order", {0, 1}).try_first(0),
        // All of k of the outer tile's operand stays, in place of coming anew for each inner tile.
        .resident = space.flag("resident").try_first(false),
        // Of it: the next one is loaded while this one is used.
        .panel_stages = space.choice("panel_stages", {1, 2}).try_first(1),
        // Tiles of k, or of the inner loop, on their way: more hide more of DRAM, for room.
        .stages =
            space.choice("stages", {1, 2, 3, 4}).try_first(fits(first_m, first_k, 2) && loops > 1 ? 2 : 1),
    };
    space.active_if(k.panel_stages, k.resident == 1);
    const IntExpr k_tiles = ceil_div(w.k, k.tile_k), m_tiles = ceil_div(w.m, k.tile_m),
                  n_tiles = ceil_div(w.n, k.tile_n);
    const IntExpr inner_tiles = n_tiles + k.order * (m_tiles - n_tiles),
                  outer_tiles = m_tiles + k.order * (n_tiles - m_tiles);
    space.require(k.tile_m * (k.tile_n / columns) <= m.accumulator_rows());
    // The pipelined loop has as many iterations as stages.
    space.require(k.stages <= (k_tiles > 1) * k_tiles + (k_tiles <= 1) * inner_tiles);
    space.require(k.resident == 0 || k.panel_stages <= outer_tiles);
    // A resident panel that no second tile reads is none.
    space.require(k.resident == 0 || inner_tiles > 1);
    const IntExpr streamed = k.tile_k * k.stages, panel = k_tiles * k.tile_k * k.panel_stages;
    const IntExpr terms_a = streamed + k.resident * (k.order == 0) * (panel - streamed),
                  terms_b = streamed + k.resident * (k.order == 1) * (panel - streamed);
    space.require(k.tile_m * terms_a + k.tile_n * terms_b <= room);
    if (!w.transpose_a) space.require(k.resident == 0 || k.order == 1 || k_tiles * k.tile_k <= widest);
    return k;
  }

  Program compute(const MatmulWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target& t, const MatmulNpuKnobs& k,
                const Config& c) const override {
    const npu::Machine m = machine_of(t);
    const int64_t tile_m = c[k.tile_m], tile_n = c[k.tile_n], tile_k = c[k.tile_k];
    const bool columns_outside = c[k.order] == 1, resident = c[k.resident] != 0;
    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    const PackDim along_m{w.transpose_a ? 1 : 0, 1, false, tile_m},
        along_k{w.transpose_a ? 0 : 1, 1, false, tile_k};
    const Tensor a = s.pack(s.tensor("a"), w.transpose_a ? std::vector<PackDim>{along_k, along_m}
                                                         : std::vector<PackDim>{along_m, along_k});
    const Tensor b = columns_of(s, w, tile_k, tile_n);
    if (s.refused()) return;
    s.pad_reduction(s.reduce_axes<1>(acc)[0], tile_k);
    s.set_scope(a, MemoryScope::kShared);
    s.set_scope(b, MemoryScope::kShared);
    s.set_scope(acc, MemoryScope::kFragment);

    const auto [i, j] = s.axes<2>(out);
    const auto [row_tile, row] = s.split(i, tile_m);
    const auto [column_tile, column] = s.split(j, tile_n);
    const Axis outer = columns_outside ? column_tile : row_tile,
               inner = columns_outside ? row_tile : column_tile;
    s.reorder({outer, inner, row, column});
    s.compute_at(acc, inner);
    const auto [acc_row, acc_column] = s.inner_axes<2>(acc);
    const auto [sum] = s.reduce_axes<1>(acc);
    const auto [k_tile, term] = s.split(sum, tile_k);
    const auto [block, lane] = s.split(acc_column, m.array_columns);
    if (w.transpose_a)
      sum_by_terms(s, acc, m, acc_row, k_tile, term, block, lane);
    else
      sum_by_rows(s, acc, m, acc_row, k_tile, term, block, lane);

    npu_tiles::stream(s, {a, b},
                      {.outer = outer,
                       .inner = inner,
                       .terms = k_tile,
                       .several_terms = ceil_div(w.k, tile_k) > 1,
                       .resident = resident,
                       .panel = columns_outside ? b : a,
                       .stages = c[k.stages],
                       .panel_stages = c[k.panel_stages]});
  }

 private:
  // Tiles of b in the scratchpad. A constant is packed ahead, the rows of a tile of columns side by side:
  // whole bursts.
  static Tensor columns_of(Schedule& s, const MatmulWorkload& w, int64_t tile_k, int64_t tile_n) {
    const int k = w.transpose_b ? 1 : 0, n = w.transpose_b ? 0 : 1;
    if (!Workload(w).is_constant("b"))
      return s.pack(s.tensor("b"), {{k, 1, false, tile_k}, {n, 1, false, tile_n}});
    const Tensor packed =
        s.pack(s.tensor("b"), {{n, tile_n, false}, {k, 1, false, tile_k}, {n, tile_n, true}});
    return s.cache_read(packed, MemoryScope::kShared, s.tensor("acc"));
  }
  static void sum_by_rows(Schedule& s, const Tensor& acc, const npu::Machine& m, const Axis& row,
                          const Axis& k_tile, const Axis& term, const Axis& block, const Axis& lane) {
    const auto [k_block, k] = s.split(term, m.array_rows);
    s.reorder({k_tile, k_block, block, row, lane, k});
    s.decompose_reduction(acc, k_tile);
    s.tensorize(lane, npu_tiles::intrinsic("rows", m));
  }
  static void sum_by_terms(Schedule& s, const Tensor& acc, const npu::Machine& m, const Axis& row,
                           const Axis& k_tile, const Axis& term, const Axis& block, const Axis& lane) {
    const auto [row_block, r] = s.split(row, m.array_rows);
    s.reorder({k_tile, row_block, block, term, r, lane});
    s.decompose_reduction(acc, k_tile);
    s.tensorize(r, npu_tiles::intrinsic("terms", m));
  }
};

}  // namespace

const AnyTemplate& matmul_npu() {
  static const MatmulNpu instance;
  return instance;
}

}  // namespace tuner
