// layer_norm_cuda: layer normalisation over the rows of a matrix, on any NVIDIA GPU.
//
//   out[i, j] = (x[i, j] - mean) / sqrt(variance + epsilon) * gamma[j] + beta[j]
//
//   block: `rows` rows, threadIdx.y
//     row of x: in registers, in shared memory, or read from global memory by each of the three passes
//     mean: each thread sums its columns, then all threads of the row combine
//     variance: likewise, of the centred values
//     out: `loads` vectors of `vector` columns a thread and step
//
// One block a row at least: with fewer rows than multiprocessors the others are idle. Declines types other
// than float32.
#include "templates/cuda/cuda_rows.h"
#include "templates/cuda/cuda_templates.h"

namespace tuner {
namespace {

class LayerNormCuda final : public ScheduleTemplate<LayerNormWorkload, cuda::RowKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "layer_norm_cuda"; }
  int version() const override { return 1; }

  Support supports(const LayerNormWorkload& w, const Target& t) const override {
    return cuda::supports_rows(t, w.dtype);
  }
  cuda::RowKnobs declare(ConfigSpace& space, const LayerNormWorkload& w, const Target& t) const override {
    return cuda::declare_rows(space, t, w.rows, w.columns, /*passes=*/3);
  }
  Program compute(const LayerNormWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const LayerNormWorkload& w, const Target&, const cuda::RowKnobs& k,
                const Config& c) const override {
    const cuda::RowTile tile = cuda::row_tile(k, c, w.columns);
    const Tensor row_sum = s.tensor("row_sum"), squares = s.tensor("squares"), out = s.tensor("out");
    s.inline_compute(s.tensor("centred"));
    const Tensor x = cuda::by_threads(s, s.tensor("x"), tile);
    const Tensor sum_of_thread = cuda::sums_of_threads(s, row_sum, tile);
    const Tensor squares_of_thread = cuda::sums_of_threads(s, squares, tile);

    const auto [i, j] = s.axes<2>(out);
    const Axis row = cuda::place_rows(s, i, tile);
    cuda::place_columns(s, out, row, j, x, tile);
    cuda::compute_in_row(s, s.tensor("inverse_deviation"), row);
    cuda::compute_total(s, squares, squares_of_thread, x, row, tile);
    cuda::compute_in_row(s, s.tensor("mean"), row);
    cuda::compute_total(s, row_sum, sum_of_thread, x, row, tile);
    cuda::keep_row(s, x, row, tile);
  }
};

}  // namespace

const AnyTemplate& layer_norm_cuda() {
  static const LayerNormCuda instance;
  return instance;
}

}  // namespace tuner
