// softmax_cpu: softmax over the rows of a matrix, on any CPU with vectors.
//
//   out[i, j] = exp(x[i, j] - max of row i) * (1 / sum of these over row i)
//
//   parallel block of rows
//     maximum: each lane of its columns, then all lanes
//     exps = exp(x - maximum): in registers where the row fits there, else in memory that stays in L1 or L2;
//                              the next block's rows are asked for meanwhile when `prefetch_rows` is set
//     sum of exps, likewise
//     out = exps * (1 / sum)
//
// One division a row in place of one an element. Few rows are not shared among threads: a row is the work of
// one. Declines types other than float32.
#include "compiler_core/te/te.h"
#include "templates/cpu/cpu_rows.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct SoftmaxKnobs {
  ChoiceKnob vectors, rows;
  FlagKnob in_registers, prefetch_rows;
};

class SoftmaxCpu final : public ScheduleTemplate<SoftmaxWorkload, SoftmaxKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "softmax_cpu"; }
  int version() const override { return 2; }

  Support supports(const SoftmaxWorkload& w, const Target& t) const override {
    return cpu::supports_rows(t, w.dtype);
  }

  SoftmaxKnobs declare(ConfigSpace& space, const SoftmaxWorkload& w, const Target& t) const override {
    const int64_t vectors = cpu::vectors_of(t, w.columns);
    SoftmaxKnobs k{
        .vectors = cpu::declare_vectors(space, t, w.columns, 4),
        .rows = cpu::declare_rows(space, w.rows, 4),
        // No pass through memory; all columns are written out.
        .in_registers = space.flag("in_registers").try_first(false),
        // The rows of the next block are asked for while these are exponentiated, which leaves memory idle.
        .prefetch_rows = space.flag("prefetch_rows").try_first(w.columns >= kLongRow),
    };
    // Half of the registers are left to the exponential.
    space.require(!k.in_registers || k.rows * vectors <= t.vector_registers() / 2);
    space.require(!k.in_registers || k.prefetch_rows == 0);
    // Shorter rows come from a cache that is fast enough.
    if (w.columns < kLongRow) space.require(k.prefetch_rows == 0);
    return k;
  }

  Program compute(const SoftmaxWorkload& w) const override { return softmax_by_reciprocals(w); }

  void schedule(Schedule& s, const SoftmaxWorkload& w, const Target& t, const SoftmaxKnobs& k,
                const Config& c) const override {
    const int64_t wide = c[k.vectors] * t.f32_lanes();
    const Tensor row_max = s.tensor("row_max"), row_sum = s.tensor("row_sum"), out = s.tensor("out");
    const Tensor max_of_lanes = cpu::sums_of_lanes(s, row_max, wide);
    const Tensor sum_of_lanes = cpu::sums_of_lanes(s, row_sum, wide);
    const auto [row, column] = s.axes<2>(out);
    cpu::step_columns(s, column, wide);
    const Axis block = s.split(row, c[k.rows]).outer;
    cpu::compute_in_rows(s, s.tensor("row_scale"), block);
    cpu::compute_total(s, row_sum, sum_of_lanes, block);
    const Tensor exps = s.tensor("exps");
    if (c[k.prefetch_rows])
      keep_rows_and_prefetch(s, exps, block, wide, t.f32_lanes(), c[k.rows] * w.columns / wide);
    else
      cpu::keep_rows(s, exps, block, wide, c[k.in_registers]);
    cpu::compute_total(s, row_max, max_of_lanes, block);
    if (t.threads > 1) s.parallel(block);
  }

 private:
  static constexpr int64_t kLongRow = 1024;

  // As cpu::keep_rows in memory, vector by vector: each asks for one line of x, `ahead` steps later.
  static void keep_rows_and_prefetch(Schedule& s, const Tensor& exps, Axis block, int64_t wide, int64_t lanes,
                                     int64_t ahead) {
    s.compute_at(exps, block);
    const std::vector<Axis> axes = s.spatial_axes(exps);
    if (s.refused()) return;
    const auto [step, inside] = s.split(axes.back(), wide);
    const auto [vector, lane] = s.split(inside, lanes);
    s.unroll(vector);
    s.vectorize(lane);
    s.prefetch(s.tensor("x"), exps, step, ahead);
  }
};

}  // namespace

const AnyTemplate& softmax_cpu() {
  static const SoftmaxCpu instance;
  return instance;
}

}  // namespace tuner
