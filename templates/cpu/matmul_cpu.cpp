// matmul_cpu: packed matrix product on any CPU with vectors.
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j] + residual[i, j])        [batch outermost]
//
//   b packed in panels of NR columns, [N/NR][K][NR], NR a tile or a vector of them
//   a packed in strips of MR rows, [M/MR][K][MR], or read as it is
//       by the packing entry when constant, else by a stage before the product or as each part is needed
//
// All of k at once (block_k = 0):                 k in blocks, so much of a panel staying in L1:
//
//   parallel batch, block of rows, panel            parallel batch, block of rows, panel
//     for tile of rows in block                       acc = 0, a tile as wide as the panel
//       sums over k in registers                      for block of k
//       write the tile: bias, activation                for tile of rows in block
//                                                         acc += sums over the block of k, in registers
//                                                     write acc: bias, activation
//
// The sums in registers are those of cpu_product.h. Serves batches, transposed operands, any sizes: the last
// tiles of rows and columns are smaller. Declines int8.
//
// float16 and bfloat16: a becomes float32 as it is packed, or before (the stage "wide"); b stays as it is,
// and each vector of it is converted where it is loaded, once for all rows of a tile. This is the unit of
// float16 on CPUs without tiles of it. For bfloat16 it is one of several: on CPUs whose dot products start
// every other cycle or less often it is the fastest, and where there are none. Where there are dot products
// or tiles it is tried, not the default.
#include <algorithm>
#include <array>

#include "compiler_core/te/te.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct MatmulKnobs {
  SplitKnob tile_m, tile_n;
  ChoiceKnob block_m, block_k, unroll_k;
  CategoryKnob pack_a, pack_b;
  FlagKnob narrow_panels;
  ChoiceKnob prefetch_b;
  FlagKnob next_panel;
};
// What pack_a and pack_b count: read in place, packed whole before the product, packed where it is used.
enum { kPlain, kWhole, kByBlock };

class MatmulCpu final : public ScheduleTemplate<MatmulWorkload, MatmulKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_cpu"; }
  int version() const override { return 3; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (!is_float(w.dtype)) return declined("needs float32, float16 or bfloat16, got ", w.dtype);
    const bool has_dots = w.dtype == DType::kBFloat16 && t.has_bfloat16_dots();
    return has_dots || t.has_tiles(w.dtype) ? supported_as_second() : supported();
  }

  MatmulKnobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    const int64_t lanes = lanes_of(w, t), registers = t.vector_registers();
    const bool constant_a = Workload(w).is_constant("a"), constant_b = Workload(w).is_constant("b");
    // Rows lie side by side where a is packed, on AArch64 if its numbers are read often enough.
    const cpu::Columns in{lanes, lanes, cpu::broadcasts_of(t, packs_for_lanes(w, t))};
    const auto [rows, columns] = cpu::first_tile(w.m, w.n, in, registers);
    // Rows of a that are read again and again come from beyond L2.
    const bool large_a = w.m * w.k * 4 > 4 * t.l2_bytes;
    // Panels of b come from beyond L2.
    const bool large_b = w.k * w.n * 4 > t.l2_bytes / 2;
    const bool first_asks =
        constant_b && large_b && cpu::asks_ahead_first(w.m) && w.m > rows && w.n > columns;
    MatmulKnobs k{
        // Rows of a tile. More rows use each vector of b more often; too many spill to the stack.
        .tile_m = space.split("tile_m", w.m).at_most(registers).try_first(rows),
        // Columns of a tile and of a panel: whole vectors. More columns use each broadcast of a more often.
        .tile_n = space.split("tile_n", w.n).multiples_of(lanes).at_most(8 * lanes).try_first(columns),
        // Row tiles done with one panel before the next panel: the block of a stays in L2. 0: all rows,
        // panels outermost.
        .block_m = space.choice("block_m", {0, 1, 2, 4, 8, 16, 32}).try_first(large_a ? 16 : 0),
        // Terms added before the sums go to memory: so much of a panel stays in L1 for the tiles of a block,
        // which comes from L2. 0: all of them.
        .block_k = space.choice("block_k", blocks_of_k(w, t)).try_first(0),
        // Shares the loop's own instructions; the code grows.
        .unroll_k = space.choice("unroll_k", {1, 2, 4})
                        .try_first(cpu::first_unroll(in.broadcasts, rows * columns / lanes, w.k)),
        // Rows of a side by side: no strided streams (they meet in one set of L1 when K is a power of two),
        // and one load for the lanes of four rows where lanes are taken, for a copy of a.
        .pack_a = space.category("pack_a", {"plain", "whole", "block"})
                      .try_first(constant_a              ? "whole"
                                 : large_a               ? "block"
                                 : packs_for_lanes(w, t) ? "whole"
                                                         : "plain"),
        // A constant b is packed ahead for nothing, a transposed one has to be; else the copy pays from some
        // rows on.
        .pack_b = space.category("pack_b", {"plain", "whole", "panel"})
                      .try_first(constant_b                         ? "whole"
                                 : w.transpose_b || w.m >= 4 * rows ? "panel"
                                                                    : "plain"),
        // Panels a vector wide in place of a tile wide: as many streams as vectors, which the prefetchers
        // follow faster when b comes from the outer caches. Small cores follow few.
        .narrow_panels = space.flag("narrow_panels")
                             .try_first(constant_b && columns > lanes && w.k * w.n * 4 > t.l2_bytes &&
                                        in.broadcasts == cpu::Broadcasts::kEach),
        // How many terms ahead b is asked for. The hardware looks less far, and few rows wait for memory.
        .prefetch_b = space.choice("prefetch_b", {0, 16, 32, 64, 128})
                          .at_most(streams_b(w, t) ? 128 : 0)
                          .try_first(w.m > 1 && !first_asks ? 64 : 0),
        // The next panel of b is asked for while this one is used.
        .next_panel = space.flag("next_panel").try_first(first_asks),
    };
    const IntExpr vectors = k.tile_n.inner() / lanes;
    cpu::require_tile(space, k.tile_m, k.tile_n, {lanes, lanes, cpu::broadcasts_of(t, true)}, registers,
                      k.unroll_k);
    space.require(k.unroll_k <= w.k);
    // One spelling for "all row tiles".
    space.require(k.block_m < k.tile_m.outer());
    space.require(!k.narrow_panels || (k.pack_b != kPlain && vectors >= 2));
    space.require(k.prefetch_b == 0 || (k.block_k == 0 && k.prefetch_b % k.unroll_k == 0));
    if (!large_b || !cpu::may_ask_ahead(w.m)) space.require(k.next_panel == 0);
    space.require(!k.next_panel || (k.prefetch_b == 0 && k.block_k == 0 && k.pack_b != kByBlock &&
                                    k.block_m != 1 && k.tile_m.outer() >= 2 && k.tile_n.outer() >= 2));
    // Constants are packed ahead, transposed operands have to be packed.
    if (constant_a) space.require(k.pack_a == kWhole);
    if (constant_b) space.require(k.pack_b == kWhole);
    if (w.transpose_b && !constant_b) space.require(k.pack_b != kPlain);
    return k;
  }

  Program compute(const MatmulWorkload& w) const override {
    return widens(w) ? matmul_of_wide(w) : Workload(w).compute();
  }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target& t, const MatmulKnobs& k,
                const Config& c) const override {
    const int64_t rows = c[k.tile_m].inner, columns = c[k.tile_n].inner, lanes = lanes_of(w, t);
    const int64_t tiles = c[k.block_m] == 0 ? c[k.tile_m].outer : c[k.block_m];
    const int first = w.batch > 1 ? 1 : 0;
    Tensor strips, panels;
    const Tensor a = s.tensor(widens(w) ? "wide" : "a");
    if (c[k.pack_a] != kPlain) strips = cpu::pack_blocks(s, a, first, first + (w.transpose_a ? 1 : 0), rows);
    if (widens(w)) widen(s, w, a, strips, c[k.pack_a], t);
    if (c[k.pack_b] != kPlain)
      panels = cpu::pack_blocks(s, s.tensor("b"), first, first + (w.transpose_b ? 0 : 1),
                                c[k.narrow_panels] ? lanes : columns);
    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    if (s.refused()) return;

    std::vector<Axis> outer = s.axes(out);  // [batch,] i, j
    const Axis i = outer[outer.size() - 2], j = outer.back();
    outer.resize(outer.size() - 2);
    const auto [row_tile, row] = s.split(i, rows);
    const auto [block, tile] = s.split(row_tile, tiles);
    outer.push_back(block);
    const auto [panel, column] = s.split(j, columns);
    const auto [vector, lane] = s.split(column, lanes);
    s.reorder({block, panel, tile, row, vector, lane});
    Axis terms;
    if (c[k.block_k] == 0) {
      terms = cpu::sum_in_registers(s, acc, tile, lanes, std::array{c[k.unroll_k]});
      s.unroll(row);
      if (c[k.next_panel]) s.prefetch_next(c[k.pack_b] == kPlain ? s.tensor("b") : panels, acc, panel, tile);
    } else {
      sum_by_blocks(s, acc, panel, c[k.block_k], rows, lanes, c[k.unroll_k]);
    }
    s.unroll(vector);
    if (lanes > 1) s.vectorize(lane);
    lay_out(s, w, c[k.pack_a], strips, block, "a", w.transpose_a, t);
    lay_out(s, w, c[k.pack_b], panels, panel, "b", !w.transpose_b, t);
    // What is packed by the block serves all of its panels: they stay with one thread.
    if (c[k.pack_a] != kByBlock || Workload(w).is_constant("a")) outer.push_back(panel);
    if (t.threads > 1) s.parallel(s.fuse(outer));
    if (c[k.prefetch_b] > 0)
      s.prefetch(c[k.pack_b] == kPlain ? s.tensor("b") : panels, acc, terms, c[k.prefetch_b] / c[k.unroll_k]);
  }

 private:
  // acc, in memory, is computed inside `panel` of its reader, a block of k at a time.
  static void sum_by_blocks(Schedule& s, const Tensor& acc, const Axis& panel, int64_t block_k, int64_t rows,
                            int64_t lanes, int64_t unroll_k) {
    const auto [sum] = s.reduce_axes<1>(acc);
    const auto [k_block, k_inside] = s.split(sum, block_k);
    const Tensor part = s.rfactor(acc, k_block);
    s.compute_at(acc, panel);
    if (s.refused()) return;
    const std::vector<Axis> spatial = s.spatial_axes(acc);
    const auto [added] = s.reduce_axes<1>(acc);
    if (s.refused()) return;
    const auto [tile, row] = s.split(spatial[spatial.size() - 2], rows);
    const auto [vector, lane] = s.split(spatial.back(), lanes);
    s.reorder({added, tile, row, vector, lane});
    s.decompose_reduction(acc, added);
    cpu::sum_in_registers(s, part, tile, lanes, std::array{unroll_k});
    s.unroll(row);
    s.unroll(vector);
    if (lanes > 1) s.vectorize(lane);
  }

  // The loops of the copy of an operand. `along_inside`: what lies side by side in the operand does so in the
  // copy; else vectors of k are read, transposed, and written as vectors of the inside of a block.
  static void lay_out(Schedule& s, const MatmulWorkload& w, int64_t how, const Tensor& packed, const Axis& at,
                      std::string_view operand, bool along_inside, const Target& t) {
    if (how == kPlain || Workload(w).is_constant(operand) || s.refused()) return;
    if (how == kByBlock) s.compute_at(packed, at);
    if (s.refused()) return;
    const std::vector<Axis> axes = s.axes(packed);  // [batch,] block, k, inside
    const Axis& k = axes[axes.size() - 2];
    if (s.extent(axes.back()) == 1) {
      s.reorder({axes.back(), k});
      cpu::vectorize_by(s, k, t.f32_lanes());
    } else if (along_inside) {
      cpu::vectorize_by(s, axes.back(), t.f32_lanes());
    } else {
      const auto [k_outer, k_inner] = s.split(k, t.f32_lanes());
      s.vectorize(axes.back());
      s.vectorize_rows(k_inner);
    }
    if (how == kWhole && t.threads > 1) s.parallel(axes.front());
  }

  static bool widens(const MatmulWorkload& w) { return w.dtype != DType::kFloat32; }
  // In the packing entry where a is constant, in the copy where there is one, else in loops of its own.
  static void widen(Schedule& s, const MatmulWorkload& w, const Tensor& wide, const Tensor& strips,
                    int64_t how, const Target& t) {
    if (how != kPlain) s.inline_compute(wide);
    if (Workload(w).is_constant("a")) s.precompute(strips);
    if (how != kPlain || s.refused()) return;
    const std::vector<Axis> axes = s.axes(wide);
    constexpr int64_t kAtATime = 64;  // elements, in code without a loop
    s.vectorize(s.split(axes.back(), kAtATime).inner);
    if (t.threads > 1) s.parallel(axes.front());
  }

  // Whether a is packed only so that four of its numbers are one load: a copy costs about as much as it saves
  // in 48 columns.
  static bool packs_for_lanes(const MatmulWorkload& w, const Target& t) {
    return cpu::broadcasts_of(t, true) != cpu::Broadcasts::kEach && w.m > 1 && w.n >= 48;
  }

  // Whether b comes from memory and there are too few rows to hide it.
  static bool streams_b(const MatmulWorkload& w, const Target& t) {
    return w.m <= 16 && w.k * w.n * 4 > t.l2_bytes;
  }

  // A single column has nothing to be a vector of.
  static int64_t lanes_of(const MatmulWorkload& w, const Target& t) { return w.n == 1 ? 1 : t.f32_lanes(); }

  // Blocks pay when a panel and a tile of rows do not stay in L2 together; else adding to the sums in memory
  // costs more than it saves.
  static std::vector<int64_t> blocks_of_k(const MatmulWorkload& w, const Target& t) {
    std::vector<int64_t> blocks{0};
    for (const int64_t block : {256, 512, 1024, 2048})
      if (w.k * 2 * t.vector_bits / 8 > t.l2_bytes / 2 && w.k % block == 0 && block < w.k)
        blocks.push_back(block);
    return blocks;
  }
};

}  // namespace

const AnyTemplate& matmul_cpu() {
  static const MatmulCpu instance;
  return instance;
}

}  // namespace tuner
