// matmul_nbits_cpu: product with weights of 4 bits in groups, for few rows, on any CPU with vectors.
//
//   out[i, j] = act(sum over k of a[i, k] * (b[j, k] - zero[j, group]) * scales[j, group] + bias[j])
//
//   b packed in panels of NR columns, a word of 8 weights of each side by side, [N/NR][K/8][NR], and so are
//   scales and zero points, [N/NR][groups][NR]: by the packing entry where they are constant, else by a stage
//   before
//   spread, minus: what matmul_nbits.h makes of a, once for all columns
//
//   parallel panel
//     for row tile                           MR rows
//       for group
//         for word of the group
//           unrolled block of vectors        their words are a load each...
//             unrolled weight of the word
//               unrolled row of tile         one broadcast of spread...
//                 unrolled vector of block   ...times a vector of weights, by `and` and a conversion: part
//                   vectorized lane
//         acc += (part + zeros * minus) * scales
//       write the tile: bias, activation
//
// A vector of weights costs one `and`, one conversion, and a multiply-add for each row: no shift, since the
// weight's place in the word is a power of 16 that `spread` divides by. Serves any sizes: the last panel and
// the last row tile are smaller.
#include <algorithm>
#include <array>

#include "compiler_core/base/int_math.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct MatmulNBitsKnobs {
  SplitKnob tile_m, tile_n;
  ChoiceKnob vectors, prefetch_b;
};

class MatmulNBitsCpu final : public ScheduleTemplate<MatmulNBitsWorkload, MatmulNBitsKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_nbits_cpu"; }
  int version() const override { return 1; }

  Support supports(const MatmulNBitsWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    return supported();
  }

  MatmulNBitsKnobs declare(ConfigSpace& space, const MatmulNBitsWorkload& w, const Target& t) const override {
    const int64_t lanes = t.f32_lanes(), registers = t.vector_registers();
    const int64_t sums = most_sums(t), units = ceil_div(w.n, lanes);
    const int64_t rows = ceil_div(w.m, ceil_div(w.m, 4));
    // Few enough that three vectors of words stay in registers with their sums.
    const int64_t most = std::clamp<int64_t>((registers >= 32 ? 16 : rows == 1 ? 6 : 8) / rows, 1, 8);
    const int64_t vectors = ceil_div(units, ceil_div(units, most));
    MatmulNBitsKnobs k{
        // Rows of a tile. More rows use each vector of weights more often; too many spill to the stack.
        .tile_m = space.split("tile_m", w.m).at_most(sums).try_first(rows),
        // Columns of a tile and of a panel: whole vectors. More columns use each broadcast of a more often,
        // and more sums are under way at once.
        .tile_n =
            space.split("tile_n", w.n).multiples_of(lanes).at_most(8 * lanes).try_first(vectors * lanes),
        // Vectors whose words are in registers together. More share each broadcast; too many spill.
        .vectors = space.choice("vectors", {1, 2, 3, 4, 5, 6, 7, 8}).try_first(first_vectors(vectors, t)),
        // How many words ahead b is asked for. The hardware looks less far, and few rows wait for memory.
        .prefetch_b = space.choice("prefetch_b", {0, 8, 16, 32, 64})
                          .at_most(streams_b(w, t) ? 64 : 0)
                          .try_first(streams_b(w, t) ? 16 : 0),
    };
    const IntExpr vectors_of_tile = k.tile_n.inner() / lanes;
    space.require(k.tile_m.inner() * vectors_of_tile <= sums);
    space.require(k.vectors <= vectors_of_tile && vectors_of_tile % k.vectors == 0);
    // Tiles are as equal as possible, without a small rest.
    space.require(ceil_div(k.tile_m.extent(), k.tile_m.outer()) == k.tile_m.inner());
    space.require(ceil_div(ceil_div(k.tile_n.extent(), lanes), k.tile_n.outer()) * lanes == k.tile_n.inner());
    return k;
  }

  Program compute(const MatmulNBitsWorkload& w) const override { return matmul_nbits_of_words(w); }

  void schedule(Schedule& s, const MatmulNBitsWorkload& w, const Target& t, const MatmulNBitsKnobs& k,
                const Config& c) const override {
    const int64_t rows = c[k.tile_m].inner, columns = c[k.tile_n].inner, lanes = t.f32_lanes();
    const bool parallel = t.threads > 1;
    const Tensor panels = pack(s, w, "words", "b", columns, parallel);
    pack(s, w, "scales", "scales", columns, parallel);
    if (w.zero_points) pack(s, w, "zeros", "zero_points", columns, parallel);
    prepare_left(s, parallel);

    const Tensor part = s.tensor("part"), acc = s.tensor("acc"), out = s.tensor("out");
    if (s.refused()) return;
    const auto [i, j] = s.axes<2>(out);
    const auto [row_tile, row] = s.split(i, rows);
    const auto [panel, column] = s.split(j, columns);
    const auto [vector, lane] = s.split(column, lanes);
    s.reorder({panel, row_tile, row, vector, lane});
    unroll_tile(s, row, vector, lane, lanes);

    const auto [acc_row, acc_column] = s.axes<2>(acc);
    const auto [group] = s.reduce_axes<1>(acc);
    s.set_scope(acc, MemoryScope::kRegister);
    s.compute_at(acc, row_tile);
    const auto [acc_vector, acc_lane] = s.split(acc_column, lanes);
    s.reorder({group, acc_row, acc_vector, acc_lane});
    s.decompose_reduction(acc, group);
    unroll_tile(s, acc_row, acc_vector, acc_lane, lanes);

    const auto [part_group, part_row, part_column] = s.axes<3>(part);
    const auto [word, weight] = s.reduce_axes<2>(part);
    s.set_scope(part, MemoryScope::kRegister);
    s.compute_at(part, group);
    const auto [part_vectors, part_lane] = s.split(part_column, lanes);
    const auto [vectors, part_vector] = s.split(part_vectors, c[k.vectors]);
    s.reorder({part_group, word, vectors, weight, part_row, part_vector, part_lane});
    s.decompose_reduction(part, word);
    s.unroll(part_group);
    s.unroll(vectors);
    s.unroll(weight);
    unroll_tile(s, part_row, part_vector, part_lane, lanes);
    if (c[k.prefetch_b] > 0) s.prefetch(panels, part, word, c[k.prefetch_b]);
    if (parallel) s.parallel(panel);
  }

 private:
  // Sums of a tile: those of a group stay in registers, beside the vectors that they are made of; with 16
  // registers those of all groups go to the stack meanwhile.
  static int64_t most_sums(const Target& t) { return t.vector_registers() >= 32 ? 24 : 8; }

  // Their words, the sums, a mask, a broadcast and a product fit the registers.
  static int64_t first_vectors(int64_t vectors, const Target& t) {
    if (t.vector_registers() >= 32) return vectors;
    for (const int64_t few : {4, 3, 2})
      if (vectors % few == 0) return few;
    return vectors;
  }

  // Whether b comes from memory and there are too few rows to hide it.
  static bool streams_b(const MatmulNBitsWorkload& w, const Target& t) {
    return w.m <= 16 && w.k * w.n / 2 > t.l2_bytes;
  }

  static void unroll_tile(Schedule& s, const Axis& row, const Axis& vector, const Axis& lane, int64_t lanes) {
    s.unroll(row);
    s.unroll(vector);
    if (lanes > 1) s.vectorize(lane);
  }

  // What `operand` becomes, in panels of columns.
  static Tensor pack(Schedule& s, const MatmulNBitsWorkload& w, std::string_view name,
                     std::string_view operand, int64_t columns, bool parallel) {
    const Tensor whole = s.tensor(name);
    const bool constant = Workload(w).is_constant(operand), is_stage = name != operand;
    const Tensor packed = cpu::pack_blocks(s, whole, 0, 0, columns);
    if (is_stage) s.inline_compute(whole);
    if (constant && is_stage) s.precompute(packed);
    if (!constant && parallel && !s.refused()) s.parallel(s.axes(packed).front());
    return packed;
  }

  // Vectors along k.
  static void prepare_left(Schedule& s, bool parallel) {
    const Tensor spread = s.tensor("spread"), minus = s.tensor("minus");
    if (s.refused()) return;
    const auto [row, word, place] = s.axes<3>(spread);
    s.vectorize(place);
    const auto [sum_row, group] = s.axes<2>(minus);
    const auto [term, lane] = s.reduce_axes<2>(minus);
    s.decompose_reduction(minus, term);
    s.vectorize(lane);
    if (!parallel) return;
    s.parallel(row);
    s.parallel(sum_row);
  }
};

}  // namespace

const AnyTemplate& matmul_nbits_cpu() {
  static const MatmulNBitsCpu instance;
  return instance;
}

}  // namespace tuner
