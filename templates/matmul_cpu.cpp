// matmul_cpu: packed matrix product on any CPU with vectors.
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j])        [batch outermost]
//
//   b packed in panels of NR columns, [N/NR][K][NR], NR a tile or a vector of them:
//       by the packing entry when b is constant, else by a stage before the product
//   parallel batch, row block, panel
//     for row tile in block              MR rows; a may be packed likewise, [M/MR][K][MR]
//       for k                            unrolled by 1, 2 or 4
//         unrolled row of tile           one broadcast of a...
//           unrolled vector of panel     ...times each vector of b: one accumulator register each
//             vectorized lane
//       write the tile: bias, activation
//
// Serves batches, transposed operands, any sizes: the last tiles of rows and columns are smaller. Declines
// types other than float32.
#include <algorithm>

#include "templates/registry.h"

namespace tuner {
namespace {

struct Knobs {
  SplitKnob tile_m, tile_n;
  ChoiceKnob block_m, unroll_k;
  FlagKnob pack_a, pack_b, narrow_panels;
};

class MatmulCpu final : public ScheduleTemplate<MatmulWorkload, Knobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_cpu"; }
  int version() const override { return 1; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return declined("needs a CPU target, got ", t.name());
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    return supported();
  }

  Knobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    const int64_t lanes = lanes_of(w, t), registers = t.vector_registers();
    const bool constant_b = Workload(w).is_constant("b");
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
        // Rows of a side by side: no strided streams (they alias in L1 when K is a power of two), for a copy
        // of a.
        .pack_a = space.flag("pack_a").try_first(false),
        // A constant b is packed ahead for nothing, a transposed one has to be; else the copy pays from some
        // rows on.
        .pack_b = space.flag("pack_b").try_first(packs_first(w)),
        // Panels a vector wide in place of a tile wide: as many streams as vectors, which the prefetchers
        // follow faster when b comes from the outer caches.
        .narrow_panels = space.flag("narrow_panels").try_first(first_narrow(w, t)),
    };
    const IntExpr vectors = k.tile_n.inner() / lanes;
    // Accumulators, one vector of b each, and one broadcast must fit the registers.
    space.require(k.tile_m.inner() * vectors + vectors + 1 <= registers);
    // Longer bodies only compile longer.
    space.require(k.tile_m.inner() * vectors * k.unroll_k <= 200);
    space.require(k.unroll_k <= w.k);
    // One spelling for "all row tiles".
    space.require(k.block_m < k.tile_m.outer());
    space.require(!k.narrow_panels || (k.pack_b && vectors >= 2));
    if (constant_b || w.transpose_b) space.require(k.pack_b == 1);
    return k;
  }

  Program compute(const MatmulWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target& t, const Knobs& k,
                const Config& c) const override {
    const int64_t rows = c[k.tile_m].inner, columns = c[k.tile_n].inner, lanes = lanes_of(w, t);
    const bool parallel = t.threads > 1;
    if (c[k.pack_b]) {
      const Tensor panels =
          pack(s, "b", w.batch > 1, /*blocked=*/w.transpose_b ? 0 : 1, c[k.narrow_panels] ? lanes : columns);
      if (s.refused()) return;
      if (!Workload(w).is_constant("b")) {
        const std::vector<Axis> axes = s.axes(panels);  // [batch,] panel, k, column
        if (!w.transpose_b) vectorized_by(s, axes.back(), lanes);
        if (parallel) s.parallel(axes.front());
      }
    }
    if (c[k.pack_a]) {
      const Tensor strips = pack(s, "a", w.batch > 1, /*blocked=*/w.transpose_a ? 1 : 0, rows);
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
    if (lanes > 1) s.vectorize(lane);

    const Axis acc_row = inner[inner.size() - 2];
    const auto [k_outer, k_inner] = s.split(sum, c[k.unroll_k]);
    const auto [acc_vector, acc_lane] = s.split(inner[inner.size() - 1], lanes);
    s.reorder({k_outer, k_inner, acc_row, acc_vector, acc_lane});
    s.decompose_reduction(acc, k_outer);
    s.unroll(k_inner);
    s.unroll(acc_row);
    s.unroll(acc_vector);
    if (lanes > 1) s.vectorize(acc_lane);

    outer.resize(outer.size() - 2);
    outer.push_back(block);
    outer.push_back(panel);
    if (parallel) s.parallel(s.fuse(outer));
  }

 private:
  // A single column has nothing to be a vector of.
  static int64_t lanes_of(const MatmulWorkload& w, const Target& t) { return w.n == 1 ? 1 : t.f32_lanes(); }

  static bool packs_first(const MatmulWorkload& w) {
    return Workload(w).is_constant("b") || w.transpose_b || w.m >= 16;
  }
  // Pays when the panels are not in L2 already.
  static bool first_narrow(const MatmulWorkload& w, const Target& t) {
    return packs_first(w) && w.n > lanes_of(w, t) && w.k * w.n * 4 > t.l2_bytes;
  }

  // About eight accumulators are needed to keep the multipliers busy: few rows take more vectors each.
  static int64_t first_vectors(int64_t m, int64_t registers) {
    return m >= 4 ? 2 : std::min<int64_t>(m >= 2 ? 4 : 8, (registers - 1) / (m + 1));
  }

  static int64_t first_rows(int64_t m, int64_t registers) {
    // Two vectors a row: rows * 2 + 2 + 1 registers; a few are left to the compiler. Evenly over the tiles.
    const int64_t most = std::clamp<int64_t>((registers - 4) / 2, 1, 12);
    const int64_t tiles = (m + most - 1) / most;
    return (m + tiles - 1) / tiles;
  }

  // [batch,] x, y with dimension `blocked` (0: x, 1: y) in blocks: [batch,] blocks, the other, inside of the
  // block.
  static Tensor pack(Schedule& s, std::string_view operand, bool batch, int blocked, int64_t block) {
    const int d = batch ? 1 : 0;
    std::vector<PackDim> dims;
    if (batch) dims.push_back({0});
    dims.push_back({d + blocked, block});
    dims.push_back({d + 1 - blocked});
    dims.push_back({d + blocked, block, true});
    return s.pack(s.tensor(operand), dims);
  }

  static void vectorized_by(Schedule& s, Axis axis, int64_t lanes) {
    const auto [vector, lane] = s.split(axis, lanes);
    s.unroll(vector);
    if (lanes > 1) s.vectorize(lane);
  }
};

}  // namespace

const AnyTemplate& matmul_cpu() {
  static const MatmulCpu instance;
  return instance;
}

}  // namespace tuner
