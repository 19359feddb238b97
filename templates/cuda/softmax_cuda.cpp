// softmax_cuda: softmax over the rows of a matrix, on any NVIDIA GPU.
//
//   out[i, j] = exp(x[i, j] - max of row i) / (sum of these over row i)
//
//   block: `rows` rows, threadIdx.y
//     row of x: in registers, in shared memory, or read from global memory by each of the three passes
//     maximum: each thread of its columns, then all threads of the row
//     sum of exp(x - maximum), likewise; the exps are kept when the row is in registers, else computed twice
//     out: `loads` vectors of `vector` columns a thread and step
//
// One block a row at least: with fewer rows than multiprocessors the others are idle. Declines types other
// than float32.
#include "templates/cuda/cuda_rows.h"
#include "templates/cuda/cuda_templates.h"

namespace tuner {
namespace {

using cuda::RowKept;
using cuda::RowTile;

class SoftmaxCuda final : public ScheduleTemplate<SoftmaxWorkload, cuda::RowKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "softmax_cuda"; }
  int version() const override { return 1; }

  Support supports(const SoftmaxWorkload& w, const Target& t) const override {
    return cuda::supports_rows(t, w.dtype);
  }
  cuda::RowKnobs declare(ConfigSpace& space, const SoftmaxWorkload& w, const Target& t) const override {
    return cuda::declare_rows(space, t, w.rows, w.columns, /*passes=*/3);
  }
  Program compute(const SoftmaxWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const SoftmaxWorkload& w, const Target&, const cuda::RowKnobs& k,
                const Config& c) const override {
    const RowTile tile = cuda::row_tile(k, c, w.columns);
    const Tensor row_max = s.tensor("row_max"), row_sum = s.tensor("row_sum"), out = s.tensor("out");
    const Tensor x = cuda::by_threads(s, s.tensor("x"), tile);
    const bool keeps_exps = tile.kept == RowKept::kRegisters;
    Tensor exps = s.tensor("exps");
    if (keeps_exps)
      exps = cuda::by_threads(s, exps, tile);
    else
      s.inline_compute(exps);
    const Tensor max_of_thread = cuda::sums_of_threads(s, row_max, tile);
    const Tensor sum_of_thread = cuda::sums_of_threads(s, row_sum, tile);

    const auto [i, j] = s.axes<2>(out);
    const Axis row = cuda::place_rows(s, i, tile);
    cuda::place_columns(s, out, row, j, x, tile);
    cuda::compute_total(s, row_sum, sum_of_thread, x, row, tile);
    if (keeps_exps) cuda::keep_row(s, exps, row, tile);
    cuda::compute_total(s, row_max, max_of_thread, x, row, tile);
    cuda::keep_row(s, x, row, tile);
  }
};

}  // namespace

const AnyTemplate& softmax_cuda() {
  static const SoftmaxCuda instance;
  return instance;
}

}  // namespace tuner
