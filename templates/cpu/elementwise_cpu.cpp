// elementwise_cpu: scale, bias, residual and activation of each element of a matrix, on any CPU with vectors.
//
//   out[i, j] = act(x[i, j] * scale[j] + bias[j] + residual[i, j])
//
//   parallel row, and where rows are few blocks of columns
//     for step of `vectors` vectors of columns
//
// Declines types other than float32.
#include "templates/cpu/cpu_rows.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct ElementwiseKnobs {
  ChoiceKnob vectors;
};

class ElementwiseCpu final : public ScheduleTemplate<ElementwiseWorkload, ElementwiseKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "elementwise_cpu"; }
  int version() const override { return 1; }

  Support supports(const ElementwiseWorkload& w, const Target& t) const override {
    return cpu::supports_rows(t, w.dtype);
  }
  ElementwiseKnobs declare(ConfigSpace& space, const ElementwiseWorkload& w, const Target& t) const override {
    return {.vectors = cpu::declare_vectors(space, t, w.columns, 4)};
  }
  Program compute(const ElementwiseWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const ElementwiseWorkload&, const Target& t, const ElementwiseKnobs& k,
                const Config& c) const override {
    const auto [row, column] = s.axes<2>(s.tensor("out"));
    const Axis steps = cpu::step_columns(s, column, c[k.vectors] * t.f32_lanes());
    cpu::share_blocks(s, t, row, steps);
  }
};

}  // namespace

const AnyTemplate& elementwise_cpu() {
  static const ElementwiseCpu instance;
  return instance;
}

}  // namespace tuner
