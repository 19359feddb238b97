// matmul_abacus: matrix product of float32 on the device "Abacus".
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j] + residual[i, j])
//
//   for row tile, column tile
//     for k                          unrolled by unroll_k
//       unrolled row of tile         one element of a, in all lanes...
//         unrolled vector of tile    ...with a vector of b: one accumulator register
//     write the tile: bias, residual, activation
//
// Declines batches, transposed operands, and columns that are no whole vectors.
#include "abacus.h"
#include "templates/schedule_template.h"

namespace abacus {
namespace {

using namespace tuner;

struct Knobs {
  ChoiceKnob tile_m, vectors, unroll_k;
};

// Of 1, 2, ... `most`, those that divide `n`: the device has no guards.
std::vector<int64_t> divisors(int64_t n, int64_t most) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d <= most; ++d)
    if (n % d == 0) found.push_back(d);
  return found;
}

class MatmulAbacus final : public ScheduleTemplate<MatmulWorkload, Knobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_abacus"; }
  int version() const override { return 1; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!is_abacus(t)) return declined("needs an abacus target, got ", t.name());
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    if (w.accumulate) return declined("has no accumulate");
    if (w.batch != 1 || w.transpose_a || w.transpose_b)
      return declined("needs one product of [m,k] and [k,n]");
    if (w.n % lanes_of(t) != 0) return declined("needs columns in vectors of ", lanes_of(t), ", got ", w.n);
    return supported();
  }

  Knobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    Knobs k{
        // Rows of a tile: a vector of b serves so many accumulators.
        .tile_m = space.choice("tile_m", divisors(w.m, 12)).try_first(1),
        // Vectors of a row of the tile: an element of a serves so many.
        .vectors = space.choice("vectors", divisors(w.n / lanes_of(t), 8)).try_first(1),
        // Steps of the sum between two `end`s.
        .unroll_k = space.choice("unroll_k", divisors(w.k, 8)).try_first(1),
    };
    // Accumulators, and two registers for what is multiplied.
    space.require(k.tile_m * k.vectors + 2 <= t.vector_registers());
    return k;
  }

  Program compute(const MatmulWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const MatmulWorkload&, const Target& t, const Knobs& k,
                const Config& c) const override {
    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    s.set_scope(acc, MemoryScope::kRegister);
    const auto [i, j] = s.axes<2>(out);
    const std::vector<Axis> inner = s.spatial_axes(acc);
    const auto [sum] = s.reduce_axes<1>(acc);
    if (s.refused()) return;
    const auto [row_tile, row] = s.split(i, c[k.tile_m]);
    const auto [panel, column] = s.split(j, c[k.vectors] * lanes_of(t));
    const auto [vector, lane] = s.split(column, lanes_of(t));
    s.reorder({row_tile, panel, row, vector, lane});
    s.compute_at(acc, panel);
    s.unroll(row);
    s.unroll(vector);
    s.vectorize(lane);

    const auto [steps, step] = s.split(sum, c[k.unroll_k]);
    const auto [acc_vector, acc_lane] = s.split(inner[1], lanes_of(t));
    s.reorder({steps, step, inner[0], acc_vector, acc_lane});
    s.decompose_reduction(acc, steps);
    s.unroll(step);
    s.unroll(inner[0]);
    s.unroll(acc_vector);
    s.vectorize(acc_lane);
  }
};

const MatmulAbacus matmul_abacus;
const RegisterTemplate registered(matmul_abacus);

}  // namespace
}  // namespace abacus
