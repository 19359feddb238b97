// matmul_dot_cpu: matrix product of bfloat16 or int8 by dot-product instructions, on any CPU with vectors.
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j] + residual[i, j])        [batch outermost]
//
//   A group is what one lane of an instruction multiplies: D = 2 bfloat16 or 4 int8 along k, 32 bits.
//   b packed in panels of NR columns, groups side by side: [N/NR][K/D][NR][D], NR a tile or a vector of them,
//       zeros beyond K and N:
//       by the packing entry when b is constant, else by a stage before the product
//   parallel batch, row block, panel
//     for row tile in block              MR rows; groups of a are contiguous where a is [M, K]: read in
//     place,
//                                        or packed likewise, [M/MR][K/D][MR][D]
//       for group of k                   unrolled by 1, 2 or 4
//         unrolled row of tile           one broadcast of a group of a...
//           unrolled vector of panel     ...with each vector of groups of b: one accumulator register each
//             vectorized lane
//               dot of the group
//       write the tile: bias, residual, activation
//
// Serves batches, transposed operands, any sizes: the last group of k and the last tiles of rows and columns
// are smaller. On targets without such instructions the same loops run on others (codegen/emit_dot.cpp).
// Declines float32 (matmul_cpu serves it).
#include <algorithm>

#include "templates/registry.h"

namespace tuner {
namespace {

struct Knobs {
  SplitKnob tile_m, tile_n;
  ChoiceKnob block_m, unroll_k;
  FlagKnob pack_a, narrow_panels;
};

class MatmulDotCpu final : public ScheduleTemplate<MatmulWorkload, Knobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_dot_cpu"; }
  int version() const override { return 1; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return declined("needs a CPU target, got ", t.name());
    if (w.dtype == DType::kFloat32) return declined("needs bfloat16 or int8, got ", w.dtype);
    return supported();
  }

  Knobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    const int64_t lanes = t.f32_lanes(), registers = t.vector_registers(), groups = groups_of(w);
    Knobs k{
        // Rows of a tile. More rows use each vector of b more often; too many spill to the stack.
        .tile_m = space.split("tile_m", w.m).at_most(registers).try_first(first_rows(w.m, registers)),
        // Columns of a tile and of a panel: whole vectors. More columns use each broadcast of a more often.
        .tile_n = space.split("tile_n", w.n)
                      .multiples_of(lanes)
                      .at_most(8 * lanes)
                      .try_first(lanes * first_vectors(w.m, registers)),
        // Row tiles done with one panel before the next panel: the block of a stays in L2. 0: all rows,
        // panels outermost.
        .block_m = space.choice("block_m", {0, 1, 2, 4, 8, 16, 32}).try_first(0),
        // Shares the loop's own instructions; the code grows.
        .unroll_k = space.choice("unroll_k", {1, 2, 4}).try_first(1),
        // Rows of a side by side: no strided streams, for a copy of a. A transposed a has to be: its groups
        // are scattered.
        .pack_a = space.flag("pack_a").try_first(w.transpose_a),
        // Panels a vector wide in place of a tile wide: as many streams as vectors, which the prefetchers
        // follow faster when b comes from the outer caches.
        .narrow_panels = space.flag("narrow_panels").try_first(first_narrow(w, t)),
    };
    const IntExpr vectors = k.tile_n.inner() / lanes;
    // Accumulators, one vector of b each, and one broadcast must fit the registers.
    space.require(k.tile_m.inner() * vectors + vectors + 1 <= registers);
    // Longer bodies only compile longer.
    space.require(k.tile_m.inner() * vectors * k.unroll_k <= 200);
    space.require(k.unroll_k <= groups);
    // One spelling for "all row tiles".
    space.require(k.block_m < k.tile_m.outer());
    space.require(!k.narrow_panels || vectors >= 2);
    if (w.transpose_a) space.require(k.pack_a == 1);
    return k;
  }

  Program compute(const MatmulWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target& t, const Knobs& k,
                const Config& c) const override {
    const int64_t rows = c[k.tile_m].inner, columns = c[k.tile_n].inner, lanes = t.f32_lanes();
    const bool parallel = t.threads > 1;
    const Tensor panels =
        pack(s, w, "b", /*along_k=*/w.transpose_b ? 1 : 0, c[k.narrow_panels] ? lanes : columns);
    if (s.refused()) return;
    if (!Workload(w).is_constant("b") && parallel) s.parallel(s.axes(panels).front());
    if (c[k.pack_a]) {
      const Tensor strips = pack(s, w, "a", /*along_k=*/w.transpose_a ? 0 : 1, rows);
      if (s.refused()) return;
      if (!Workload(w).is_constant("a") && parallel) s.parallel(s.axes(strips).front());
    }

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

    const Axis acc_row = inner[inner.size() - 2];
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

    outer.resize(outer.size() - 2);
    outer.push_back(block);
    outer.push_back(panel);
    if (parallel) s.parallel(s.fuse(outer));
  }

 private:
  static int64_t group_size(const MatmulWorkload& w) { return 4 / dtype_bytes(w.dtype); }
  static int64_t groups_of(const MatmulWorkload& w) { return (w.k + group_size(w) - 1) / group_size(w); }

  // Pays when the panels are not in L2 already.
  static bool first_narrow(const MatmulWorkload& w, const Target& t) {
    return w.n > t.f32_lanes() && groups_of(w) * w.n * 4 > t.l2_bytes;
  }

  // About eight accumulators are needed to keep the multipliers busy: few rows take more vectors each.
  static int64_t first_vectors(int64_t m, int64_t registers) {
    return m >= 4 ? 2 : std::min<int64_t>(m >= 2 ? 4 : 8, (registers - 1) / (m + 1));
  }

  // Two vectors a row: accumulators, and twice the operands, as targets without the instructions take
  // operands apart; 2 * rows + 2 * (2 + 1) + 1 registers. Evenly over the tiles.
  static int64_t first_rows(int64_t m, int64_t registers) {
    const int64_t most = std::clamp<int64_t>((registers - 7) / 2, 1, 12);
    const int64_t tiles = (m + most - 1) / most;
    return (m + tiles - 1) / tiles;
  }

  // [batch,] x, y with groups along dimension `along_k` (0: x, 1: y) and the other in blocks:
  // [batch,] blocks, groups, inside of the block, inside of the group.
  static Tensor pack(Schedule& s, const MatmulWorkload& w, std::string_view operand, int along_k,
                     int64_t block) {
    const int first = w.batch > 1 ? 1 : 0, other = first + 1 - along_k, k = first + along_k;
    std::vector<PackDim> dims;
    if (w.batch > 1) dims.push_back({0});
    dims.push_back({other, block});
    dims.push_back({k, group_size(w)});
    dims.push_back({other, block, true});
    dims.push_back({k, group_size(w), true});
    return s.pack(s.tensor(operand), dims);
  }
};

}  // namespace

const AnyTemplate& matmul_dot_cpu() {
  static const MatmulDotCpu instance;
  return instance;
}

}  // namespace tuner
