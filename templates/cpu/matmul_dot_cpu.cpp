// matmul_dot_cpu: matrix product of bfloat16 or int8 by dot-product instructions, on any CPU with vectors.
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j] + residual[i, j])        [batch outermost]
//
//   A group is what one lane of an instruction multiplies: D = 2 bfloat16 or 4 int8 along k, 32 bits.
//   b packed in panels of NR columns, groups side by side: [N/NR][K/D][NR][D], NR a tile or a vector of them,
//       zeros beyond K and N:
//       by the packing entry when b is constant, else by a stage before the product (of a batch on one thread
//       before each product)
//   parallel batch, row block, panel
//     for row tile in block              MR rows; where a is [M, K] its groups are read in place,
//                                        or packed likewise, [M/MR][K/D][MR][D]
//       for group of k                   unrolled by 1, 2 or 4
//         unrolled row of tile           one broadcast of a group of a...
//           unrolled vector of panel     ...with each vector of groups of b: one accumulator register each
//             vectorized lane
//               dot of the group
//       write the tile: the epilogue
//
// Serves batches, transposed operands, any sizes: the last group of k and the last tiles of rows and columns
// are smaller. On targets without such instructions the same loops run on others (codegen/emit_dot.cpp).
// Declines float32 (matmul_cpu serves it).
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct MatmulDotKnobs {
  SplitKnob tile_m, tile_n;
  ChoiceKnob block_m, unroll_k;
  FlagKnob pack_a, narrow_panels;
  ChoiceKnob prefetch_b;
  FlagKnob next_panel;
};

class MatmulDotCpu final : public ScheduleTemplate<MatmulWorkload, MatmulDotKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_dot_cpu"; }
  int version() const override { return 3; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (w.dtype != DType::kBFloat16 && w.dtype != DType::kInt8)
      return declined("needs bfloat16 or int8, got ", w.dtype);
    return supported();
  }

  MatmulDotKnobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    const int64_t lanes = t.f32_lanes(), registers = t.vector_registers();
    const bool packs_a = Workload(w).is_constant("a") || w.transpose_a;
    // Lanes of AArch64 are those of rows that lie side by side, if a copy of a pays.
    const bool packs_for_lanes =
        cpu::broadcasts_of(t, true) != cpu::Broadcasts::kEach && w.m > 1 && w.n >= 48;
    const cpu::Columns in{lanes, lanes, cpu::broadcasts_of(t, packs_a || packs_for_lanes)};
    // Targets without dot products take operands apart, in registers of their own.
    const auto [rows, columns] = cpu::first_tile(
        w.m, w.n, in, registers - std::max<int64_t>(3, cpu::spare_registers(t, group_size(w))));
    // Panels that were packed ahead come from beyond L2.
    const bool large_b = Workload(w).is_constant("b") && b_bytes(w) > t.l2_bytes / 2;
    const bool first_asks = large_b && cpu::asks_ahead_first(w.m) && w.m > rows && w.n > columns;
    MatmulDotKnobs k{
        // Rows of a tile. More rows use each vector of b more often; too many spill to the stack.
        .tile_m = space.split("tile_m", w.m).at_most(registers).try_first(rows),
        // Columns of a tile and of a panel: whole vectors. More columns use each broadcast of a more often.
        .tile_n = space.split("tile_n", w.n).multiples_of(lanes).at_most(8 * lanes).try_first(columns),
        // Row tiles done with one panel before the next panel: the block of a stays in L2. 0: all rows,
        // panels outermost.
        .block_m = space.choice("block_m", {0, 1, 2, 4, 8, 16, 32}).try_first(0),
        // Shares the loop's own instructions; the code grows.
        .unroll_k = space.choice("unroll_k", {1, 2, 4})
                        .try_first(cpu::first_unroll(in.broadcasts, rows * columns / lanes, groups_of(w))),
        // Rows of a side by side: no strided streams, for a copy of a. A transposed a has to be: its groups
        // are scattered.
        .pack_a = space.flag("pack_a").try_first(packs_a || packs_for_lanes),
        // Panels a vector wide in place of a tile wide: as many streams as vectors, which the prefetchers
        // follow faster when b comes from the outer caches.
        .narrow_panels = space.flag("narrow_panels")
                             .try_first(columns > lanes && b_bytes(w) > t.l2_bytes &&
                                        in.broadcasts == cpu::Broadcasts::kEach),
        // How many groups ahead b is asked for. The hardware looks less far, and few rows wait for memory.
        .prefetch_b = space.choice("prefetch_b", {0, 16, 32, 64, 128})
                          .at_most(w.m <= 16 && b_bytes(w) > t.l2_bytes ? 128 : 0)
                          .try_first(w.m > 1 && !first_asks ? 64 : 0),
        // The next panel of b is asked for while this one is used.
        .next_panel = space.flag("next_panel").try_first(first_asks),
    };
    const IntExpr vectors = k.tile_n.inner() / lanes;
    cpu::require_tile(space, k.tile_m, k.tile_n, {lanes, lanes, cpu::broadcasts_of(t, true)}, registers,
                      k.unroll_k);
    space.require(k.unroll_k <= groups_of(w));
    // One spelling for "all row tiles".
    space.require(k.block_m < k.tile_m.outer());
    space.require(!k.narrow_panels || vectors >= 2);
    space.require(k.prefetch_b % k.unroll_k == 0);
    if (!large_b || !cpu::may_ask_ahead(w.m)) space.require(k.next_panel == 0);
    space.require(!k.next_panel ||
                  (k.prefetch_b == 0 && k.block_m != 1 && k.tile_m.outer() >= 2 && k.tile_n.outer() >= 2));
    if (packs_a) space.require(k.pack_a == 1);
    return k;
  }

  Program compute(const MatmulWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target& t, const MatmulDotKnobs& k,
                const Config& c) const override {
    const int64_t rows = c[k.tile_m].inner, columns = c[k.tile_n].inner, lanes = t.f32_lanes();
    const bool parallel = t.threads > 1;
    const int b_along_k = w.transpose_b ? 1 : 0, a_along_k = w.transpose_a ? 0 : 1;
    const int64_t panel_width = c[k.narrow_panels] ? lanes : columns;
    // Of several products each packs its own b just before, so that the panels stay in the cache.
    const bool b_before_each = w.batch > 1 && !parallel && !Workload(w).is_constant("b");
    const Tensor panels = pack(s, w, "b", b_along_k, panel_width);
    if (!b_before_each) weave(s, w, panels, "b", b_along_k, panel_width, parallel);
    if (c[k.pack_a]) weave(s, w, pack(s, w, "a", a_along_k, rows), "a", a_along_k, rows, parallel);
    if (s.refused()) return;

    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    s.set_scope(acc, MemoryScope::kRegister);
    std::vector<Axis> outer = s.axes(out);                // [batch,] i, j
    const std::vector<Axis> inner = s.spatial_axes(acc);  // the same, of the tile
    const auto [sum] = s.reduce_axes<1>(acc);
    if (s.refused()) return;
    const auto [row_tile, row] = s.split(outer[outer.size() - 2], rows);
    const auto [panel, column] = s.split(outer[outer.size() - 1], columns);
    const auto [block, tile] = s.split(row_tile, c[k.block_m] == 0 ? c[k.tile_m].outer : c[k.block_m]);
    const auto [vector, lane] = s.split(column, lanes);
    s.reorder({block, panel, tile, row, vector, lane});
    s.compute_at(acc, tile);
    s.unroll(row);
    s.unroll(vector);
    s.vectorize(lane);

    const Axis& acc_row = inner[inner.size() - 2];
    const auto [group, in_group] = s.split(sum, group_size(w));
    const auto [group_outer, group_inner] = s.split(group, c[k.unroll_k]);
    const auto [acc_vector, acc_lane] = s.split(inner[inner.size() - 1], lanes);
    s.reorder({group_outer, group_inner, acc_row, acc_vector, acc_lane, in_group});
    s.decompose_reduction(acc, group_outer);
    s.unroll(group_inner);
    s.unroll(acc_row);
    s.unroll(acc_vector);
    s.dot(in_group);
    s.vectorize(acc_lane);

    if (b_before_each) {
      s.compute_at(panels, outer.front());
      weave(s, w, panels, "b", b_along_k, panel_width, parallel);
    }
    if (c[k.next_panel]) s.prefetch_next(panels, acc, panel, tile);
    outer.resize(outer.size() - 2);
    outer.push_back(block);
    outer.push_back(panel);
    if (parallel) s.parallel(s.fuse(outer));
    if (c[k.prefetch_b] > 0) s.prefetch(panels, acc, group_outer, c[k.prefetch_b] / c[k.unroll_k]);
  }

 private:
  static int64_t group_size(const MatmulWorkload& w) {
    return std::max<int64_t>(1, 4 / dtype_bytes(w.dtype));
  }
  static int64_t groups_of(const MatmulWorkload& w) { return ceil_div(w.k, group_size(w)); }

  static int64_t b_bytes(const MatmulWorkload& w) { return 4 * groups_of(w) * w.n; }

  static Tensor pack(Schedule& s, const MatmulWorkload& w, std::string_view operand, int along_k,
                     int64_t block) {
    return cpu::pack_groups(s, s.tensor(operand), along_k, {.group = group_size(w), .block = block});
  }
  static void weave(Schedule& s, const MatmulWorkload& w, const Tensor& packed, std::string_view operand,
                    int along_k, int64_t block, bool parallel) {
    if (!Workload(w).is_constant(operand)) cpu::weave_groups(s, packed, along_k, block, parallel);
  }
};

}  // namespace

const AnyTemplate& matmul_dot_cpu() {
  static const MatmulDotCpu instance;
  return instance;
}

}  // namespace tuner
