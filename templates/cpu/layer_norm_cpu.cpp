// layer_norm_cpu: layer normalisation of the rows of a matrix, on any CPU with vectors.
//
//   out[i, j] = (x[i, j] - mean) / sqrt(variance + epsilon) * gamma[j] + beta[j]
//
//   parallel block of rows
//     sum of x: each lane of its columns, then all lanes; mean
//     sum of (x - mean)^2, likewise; 1 / deviation
//     out
//
// Three passes over a row, the first of which brings it into L1. Few rows are not shared among threads: a row
// is the work of one. Declines types other than float32.
#include "templates/cpu/cpu_rows.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct LayerNormKnobs {
  ChoiceKnob vectors, rows;
};

class LayerNormCpu final : public ScheduleTemplate<LayerNormWorkload, LayerNormKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "layer_norm_cpu"; }
  int version() const override { return 1; }

  Support supports(const LayerNormWorkload& w, const Target& t) const override {
    return cpu::supports_rows(t, w.dtype);
  }
  LayerNormKnobs declare(ConfigSpace& space, const LayerNormWorkload& w, const Target& t) const override {
    return {.vectors = cpu::declare_vectors(space, t, w.columns, 4),
            .rows = cpu::declare_rows(space, w.rows, 4)};
  }
  Program compute(const LayerNormWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const LayerNormWorkload&, const Target& t, const LayerNormKnobs& k,
                const Config& c) const override {
    const int64_t wide = c[k.vectors] * t.f32_lanes();
    const Tensor row_sum = s.tensor("row_sum"), squares = s.tensor("squares"), out = s.tensor("out");
    s.inline_compute(s.tensor("centred"));
    const Tensor sum_of_lanes = cpu::sums_of_lanes(s, row_sum, wide);
    const Tensor squares_of_lanes = cpu::sums_of_lanes(s, squares, wide);
    const auto [row, column] = s.axes<2>(out);
    cpu::step_columns(s, column, wide);
    const Axis block = s.split(row, c[k.rows]).outer;
    cpu::compute_in_rows(s, s.tensor("inverse_deviation"), block);
    cpu::compute_total(s, squares, squares_of_lanes, block);
    cpu::compute_in_rows(s, s.tensor("mean"), block);
    cpu::compute_total(s, row_sum, sum_of_lanes, block);
    if (t.threads > 1) s.parallel(block);
  }
};

}  // namespace

const AnyTemplate& layer_norm_cpu() {
  static const LayerNormCpu instance;
  return instance;
}

}  // namespace tuner
