// rms_norm_cpu: rows of a matrix divided by the root of their mean square, on any CPU with vectors.
//
//   out[i, j] = x[i, j] / sqrt(mean of the squares of row i + epsilon) * gamma[j]
//
//   parallel block of rows
//     sum of x^2: each lane of its columns, then all lanes; 1 / root
//     out
//
// Two passes over a row, the first of which brings it into L1. Few rows are not shared among threads: a row
// is the work of one. Declines types other than float32.
#include "templates/cpu/cpu_rows.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct RmsNormKnobs {
  ChoiceKnob vectors, rows;
};

class RmsNormCpu final : public ScheduleTemplate<RmsNormWorkload, RmsNormKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "rms_norm_cpu"; }
  int version() const override { return 1; }

  Support supports(const RmsNormWorkload& w, const Target& t) const override {
    return cpu::supports_rows(t, w.dtype);
  }
  RmsNormKnobs declare(ConfigSpace& space, const RmsNormWorkload& w, const Target& t) const override {
    return {.vectors = cpu::declare_vectors(space, t, w.columns, 4),
            .rows = cpu::declare_rows(space, w.rows, 4)};
  }
  Program compute(const RmsNormWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const RmsNormWorkload&, const Target& t, const RmsNormKnobs& k,
                const Config& c) const override {
    const int64_t wide = c[k.vectors] * t.f32_lanes();
    const Tensor squares = s.tensor("squares"), out = s.tensor("out");
    const Tensor squares_of_lanes = cpu::sums_of_lanes(s, squares, wide);
    const auto [row, column] = s.axes<2>(out);
    cpu::step_columns(s, column, wide);
    const Axis block = s.split(row, c[k.rows]).outer;
    cpu::compute_in_rows(s, s.tensor("inverse_root"), block);
    cpu::compute_total(s, squares, squares_of_lanes, block);
    if (t.threads > 1) s.parallel(block);
  }
};

}  // namespace

const AnyTemplate& rms_norm_cpu() {
  static const RmsNormCpu instance;
  return instance;
}

}  // namespace tuner
