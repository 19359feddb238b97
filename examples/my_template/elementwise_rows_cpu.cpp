// elementwise_rows_cpu: scale, bias, residual and activation of a matrix, several rows at a time.
//
//   out[i, j] = act(x[i, j] * scale[j] + bias[j] + residual[i, j])
//
//   parallel block of rows
//     for step of `vectors` vectors of columns
//       unrolled row of the block           scale and bias are loaded once for all of them
//
// tuner's own elementwise_cpu goes through one row after the other and loads scale and bias anew for each.
// Declines types other than float32, one row, and operands without scale and bias: there it has nothing to
// gain.
#include "templates/schedule_template.h"

namespace {

using namespace tuner;

struct Knobs {
  ChoiceKnob vectors, rows;
};

class ElementwiseRowsCpu final : public ScheduleTemplate<ElementwiseWorkload, Knobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "elementwise_rows_cpu"; }
  int version() const override { return 1; }  // raise it when a stored config would mean another schedule

  Support supports(const ElementwiseWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return declined("needs a CPU target, got ", t.name());
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    if (w.rows < 2) return declined("needs two rows at least, got ", w.rows);
    if (!w.scale && !w.bias) return declined("needs scale or bias, which rows share");
    return supported();
  }

  Knobs declare(ConfigSpace& space, const ElementwiseWorkload& w, const Target& t) const override {
    const int64_t vectors_of_a_row = (w.columns + t.f32_lanes() - 1) / t.f32_lanes();
    Knobs k{
        // Columns of a step. More loads are under way at once; the last step of a row may be mostly empty.
        .vectors = space.choice("vectors", {1, 2, 4, 8}).at_most(vectors_of_a_row).try_first(2),
        // Rows that share a vector of scale and bias. Each is a stream of its own, of which caches follow
        // few.
        .rows = space.choice("rows", {2, 3, 4, 6, 8, 16}).at_most(w.rows).try_first(2),
    };
    // Scale and bias of a step stay in registers over its rows, and beside them two vectors a row in flight.
    space.require(k.vectors * 2 + k.rows + 2 <= t.vector_registers());
    return k;
  }

  Program compute(const ElementwiseWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const ElementwiseWorkload&, const Target& t, const Knobs& k,
                const Config& c) const override {
    const auto [row, column] = s.axes<2>(s.tensor("out"));
    const auto [block, row_in_block] = s.split(row, c[k.rows]);
    const auto [step, lane] = s.split(column, c[k.vectors] * t.f32_lanes());
    s.reorder({block, step, row_in_block, lane});
    s.unroll(row_in_block);
    s.vectorize(lane);
    if (t.threads > 1) s.parallel(block);
  }
};

const ElementwiseRowsCpu elementwise_rows_cpu;
const RegisterTemplate registered(elementwise_rows_cpu);

}  // namespace
