// matmul_tile_cpu: matrix product of bfloat16, float16 or int8 by the tiles of a CPU's matrix unit: AMX, or
// vectors of AArch64 that hold small matrices (i8mm, bf16).
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j] + residual[i, j])        [batch outermost]
//
//   A tile of AMX has up to 16 rows of 16 columns; a step, which one product of tiles adds up, is 16 groups
//   of 32 bits along k: 32 bfloat16 or 64 int8. In vectors of AArch64 there are 2 rows of 2 columns, and a
//   step of one group of 64 bits (cpu_tiles.h).
//   b packed in panels of a tile's columns (in vectors: of all of a block), groups side by side:
//   [N/16][K/D][16][D],
//       zeros beyond K and N: by the packing entry when constant, else by a stage before (of a batch on one thread
//       before each product)
//   a read as it is, or packed in tiles, [M/R][K/step][R][step], zeros beyond
//   All of k at once (block_k = 0):                   k in blocks, so much of the panels staying in L1:
//
//   parallel batch, block of tiles of rows, panels      parallel batch, block of tiles of rows, panels
//     for tiles of rows in block                          for block of k
//       sums over k: a block of tiles                       for tiles of rows in block
//       write the block, by vectors                           acc, so far, and sums over the block of k: a
//                                                             block of tiles
//                                                         write acc, by vectors
//   A block of tiles:
//       C = 0, or acc so far             `down` x `across` tile registers of R rows
//       for step of k
//         `down` tiles of a, `across` tiles of b: loads
//         down * across products
//       C into a small block of memory, which stays in L1; where out is nothing but whole tiles of the sums, into out
//
// Rows and columns beyond the shape are computed on zeros, and not written. Declines float32, targets without
// tiles, and what leaves most of a tile empty: one column, or few terms.
#include <algorithm>
#include <numeric>
#include <optional>

#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/visitor.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"
#include "templates/cpu/cpu_tiles.h"

namespace tuner {
namespace {

struct MatmulTileKnobs {
  ChoiceKnob rows, down, across, block_m, block_k;
  FlagKnob pack_a, next_panel;
};

class MatmulTileCpu final : public ScheduleTemplate<MatmulWorkload, MatmulTileKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_tile_cpu"; }
  int version() const override { return 3; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (w.dtype == DType::kFloat32) return declined("needs bfloat16, float16 or int8, got ", w.dtype);
    if (!t.has_tiles(w.dtype))
      return declined("needs tiles of ", w.dtype, " (AMX; i8mm or bf16 of AArch64), which ", t.name(),
                      " has not");
    if (w.n < 2) return declined("needs n >= 2, got ", w.n);
    const cpu::TileUnit& unit = cpu::tile_unit(t);
    if (w.m < unit.least_rows) return declined("needs m >= ", unit.least_rows, ", got ", w.m);
    const int64_t few = unit.few_terms(w.dtype);
    if (w.k <= few) return declined("needs k > ", few, ", got ", w.k);
    return supported();
  }

  MatmulTileKnobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    const cpu::TileUnit& unit = cpu::tile_unit(t);
    const bool packs_a = Workload(w).is_constant("a") || w.transpose_a || w.k % unit.step(w.dtype) != 0;
    const std::vector<int64_t> rows = unit.rows_for(w.m);
    const int64_t equal = rows.front();
    const int64_t row_tiles = ceil_div(w.m, equal), panels = ceil_div(w.n, unit.columns);
    const auto [down, across] = unit.first_block(row_tiles, panels);
    // Panels of b come from beyond L2, and are the next to be used.
    const bool streams_b = w.k * w.n * dtype_bytes(w.dtype) > t.l2_bytes / 2 &&
                           (w.batch == 1 || t.threads > 1 || Workload(w).is_constant("b"));
    const int64_t first_blocks = first_block_m(w, t, equal * down);
    MatmulTileKnobs k{
        // Rows of a tile. Fewer take less time each, and leave registers half empty.
        .rows = space.choice("rows", rows).try_first(equal),
        // Tiles of C below each other. Each tile of b that is loaded serves so many products.
        .down = space.choice("down", unit.lengths).at_most(row_tiles).try_first(down),
        // Tiles of C side by side. Each tile of a that is loaded serves so many.
        .across = space.choice("across", unit.lengths).at_most(panels).try_first(across),
        // Blocks of rows done with one panel before the next panel: the block of a stays in L2. 0: all rows,
        // panels outermost. Few rows also write out in few pages at a time.
        .block_m = space.choice("block_m", {0, 1, 2, 4, 8, 16, 32}).try_first(first_blocks),
        // Terms added before the sums go to memory: so much of the panels stays in L1 for the rows of a
        // block. 0: all of them.
        .block_k = space.choice("block_k", blocks_of_k(w, t)).try_first(0),
        // a in tiles, each in lines side by side: no strided streams, for a copy of a. What is no whole
        // number of tiles has to be.
        .pack_a = space.flag("pack_a").try_first(packs_a || w.m % (equal * down) != 0 ||
                                                 (unit.packs_blocks && panels > 2 * across)),
        // The next panel of b is asked for while this one is used.
        .next_panel = space.flag("next_panel")
                          .try_first(streams_b && row_tiles > down && panels > across && first_blocks != 1),
    };
    if (!streams_b) space.require(k.next_panel == 0);
    space.require(!k.next_panel || (k.block_m != 1 && ceil_div(w.m, k.rows * k.down) >= 2 &&
                                    (k.block_k != 0 || ceil_div(panels, k.across) >= 2)));
    space.require(k.down * k.across + k.down + k.across <= unit.registers);
    // One spelling for "all rows".
    space.require(k.block_m < ceil_div(w.m, k.rows * k.down));
    // Sums in memory are of whole tiles.
    space.require(k.block_k == 0 ||
                  (IntExpr(w.m) % (k.rows * k.down) == 0 && IntExpr(w.n) % (k.across * unit.columns) == 0 &&
                   (k.block_m == 0 || IntExpr(w.m) % (k.rows * k.down * k.block_m) == 0)));
    if (packs_a)
      space.require(k.pack_a == 1);
    else
      space.require(k.pack_a == 1 || IntExpr(w.m) % (k.rows * k.down) == 0);
    return k;
  }

  Program compute(const MatmulWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target& t, const MatmulTileKnobs& k,
                const Config& c) const override {
    const cpu::TileUnit& unit = cpu::tile_unit(t);
    const cpu::TileBlock block{.rows = c[k.rows], .down = c[k.down], .across = c[k.across]};
    const bool parallel = t.threads > 1;
    const int b_along_k = w.transpose_b ? 1 : 0, a_along_k = w.transpose_a ? 0 : 1;
    const Tensor a = s.tensor("a"), b = s.tensor("b"), acc = s.tensor("acc"), out = s.tensor("out");
    // Of several products each packs its own b just before, so that the panels stay in the cache.
    const bool constant_b = Workload(w).is_constant("b"),
               b_before_each = w.batch > 1 && !parallel && !constant_b;
    const Tensor panels = cpu::pack_groups(s, b, b_along_k,
                                           {.group = unit.group(w.dtype),
                                            .block = unit.packed_columns(block),
                                            .multiple = unit.groups,
                                            .blocks = unit.packs_blocks ? 1 : block.across});
    if (!constant_b && !b_before_each)
      cpu::weave_groups(s, panels, b_along_k, unit.packed_columns(block), parallel);
    Tensor tiles = a;
    if (c[k.pack_a]) {
      tiles = cpu::pack_groups(s, a, a_along_k,
                               {.group = unit.step(w.dtype),
                                .block = unit.packed_rows(block),
                                .multiple = 1,
                                .blocks = unit.packs_blocks ? 1 : block.down});
      if (!Workload(w).is_constant("a"))
        cpu::weave_groups(s, tiles, a_along_k, unit.packed_rows(block), parallel);
    }
    if (s.refused()) return;
    s.pad_reduction(s.reduce_axes<1>(acc)[0], unit.step(w.dtype));

    std::vector<Axis> outer = s.axes(out);  // [batch,] i, j
    const auto [row_tile, row] = s.split(outer[outer.size() - 2], block.rows * block.down);
    const auto [panel, column] = s.split(outer[outer.size() - 1], unit.columns * block.across);
    const int64_t row_tiles = ceil_div(w.m, block.rows * block.down);
    const auto [row_block, tile] = s.split(row_tile, c[k.block_m] == 0 ? row_tiles : c[k.block_m]);
    s.reorder({row_block, panel, tile, row, column});
    const bool asks = c[k.next_panel] != 0;
    const std::optional<cpu::NextPanel> next =
        asks ? std::optional(cpu::NextPanel{panel, tile}) : std::nullopt;
    const bool whole = w.m % (block.rows * block.down) == 0 && w.n % (unit.columns * block.across) == 0;
    // Whole vectors: what lies behind a panel is not there.
    const int64_t lanes = std::gcd(unit.columns * block.across, t.f32_lanes());
    if (c[k.block_k] != 0) {
      cpu::vectorize_by(s, column, lanes);
      sum_by_blocks(s, unit, acc, panel, tiles, panels, block, c[k.block_k], asks);
    } else if (whole && copies(s, out, acc)) {
      s.set_scope(acc, MemoryScope::kFragment);
      s.compute_at(acc, tile);
      cpu::sum_in_tiles(s, unit, acc, tiles, panels, block, next);
      cpu::by_tiles(s, {}, {row, column}, {block.rows, unit.columns}, cpu::tile_store(unit, acc, block));
    } else {
      cpu::vectorize_by(s, column, lanes);
      s.compute_at(acc, tile);
      cpu::sum_through_memory(s, unit, acc, tiles, panels, block, next);
    }

    if (b_before_each) {
      s.compute_at(panels, outer.front());
      cpu::weave_groups(s, panels, b_along_k, unit.packed_columns(block), parallel);
    }
    outer.resize(outer.size() - 2);
    outer.push_back(row_block);
    outer.push_back(panel);
    if (parallel) s.parallel(s.fuse(outer));
  }

 private:
  // As many tiles of `rows` rows as take half of L2 at most, and 8: measured on one CPU with 2 MB of L2,
  // where products of 1024 by 1024 took 2.2 ms by all rows and 1.6 by 8 tiles.
  static int64_t first_block_m(const MatmulWorkload& w, const Target& t, int64_t rows) {
    const int64_t a_bytes = rows * w.k * dtype_bytes(w.dtype), row_tiles = ceil_div(w.m, rows);
    if (row_tiles * a_bytes <= t.l2_bytes / 8) return 0;  // stays there anyway
    int64_t block = 8;
    while (block > 1 && (block * a_bytes > t.l2_bytes / 2 || block >= row_tiles)) block /= 2;
    return block < row_tiles ? block : 0;
  }

  // Blocks pay when panels of all of k do not stay in L1 beside the tiles of a. Of so many columns:
  static constexpr int64_t kColumnsOfBlocks = 32;
  static std::vector<int64_t> blocks_of_k(const MatmulWorkload& w, const Target& t) {
    std::vector<int64_t> blocks{0};
    for (const int64_t block : {256, 512, 1024, 2048})
      if (w.k * dtype_bytes(w.dtype) * kColumnsOfBlocks > t.l1d_bytes / 2 && w.k % block == 0 && block < w.k)
        blocks.push_back(block);
    return blocks;
  }

  // acc, in memory, is computed inside `panel` of its reader, a block of k at a time.
  static void sum_by_blocks(Schedule& s, const cpu::TileUnit& unit, const Tensor& acc, const Axis& panel,
                            const Tensor& a, const Tensor& b, const cpu::TileBlock& block, int64_t block_k,
                            bool asks) {
    const auto [sum] = s.reduce_axes<1>(acc);
    const Axis k_block = s.split(sum, block_k).outer;
    const Tensor part = s.rfactor(acc, k_block);
    s.set_scope(part, MemoryScope::kFragment);
    s.compute_at(acc, panel);
    const std::vector<Axis> spatial = s.spatial_axes(acc);
    const auto [added] = s.reduce_axes<1>(acc);
    if (s.refused()) return;
    const auto [tile, row] = s.split(spatial[spatial.size() - 2], block.rows * block.down);
    s.reorder({added, tile, row, spatial.back()});
    s.compute_at(part, tile);
    cpu::sum_in_tiles(s, unit, part, a, b, block,
                      asks ? std::optional(cpu::NextPanel{added, tile}) : std::nullopt, acc);
    cpu::by_tiles(s, {}, {row, spatial.back()}, {block.rows, unit.columns},
                  cpu::tile_store(unit, acc, block));
  }

  // True if out is the sums and nothing else.
  static bool copies(const Schedule& s, const Tensor& out, const Tensor& acc) {
    bool found = false;
    visit(s.program().body, [&](const Stmt& store) {
      if (store->kind == StmtKind::kStore && store->buffer == out.buffer)
        found = store->value->kind == ExprKind::kLoad && store->value->buffer == acc.buffer;
    });
    return found;
  }
};

}  // namespace

const AnyTemplate& matmul_tile_cpu() {
  static const MatmulTileCpu instance;
  return instance;
}

}  // namespace tuner
