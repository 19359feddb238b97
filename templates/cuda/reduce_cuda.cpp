// reduce_cuda: sum, maximum, minimum or mean over the rows of a matrix, on any NVIDIA GPU.
//
//   out[i] = sum (max, min, mean) over j of x[i, j]
//
//   block: `rows` rows, threadIdx.y, and one of `splits` parts of their columns, blockIdx.y
//     each thread its columns, `loads` vectors of `vector` at once; then all threads of the row combine
//
// splits > 1: parts go to global memory, and a second kernel combines them. Few long rows keep a whole GPU
// busy only so. Declines types other than float32.
#include "compiler_core/base/int_math.h"
#include "templates/cuda/cuda_rows.h"
#include "templates/cuda/cuda_templates.h"

namespace tuner {
namespace {

using cuda::RowTile;

struct ReduceKnobs {
  cuda::RowKnobs rows;
  ChoiceKnob splits;
};

class ReduceCuda final : public ScheduleTemplate<ReduceWorkload, ReduceKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "reduce_cuda"; }
  int version() const override { return 1; }

  Support supports(const ReduceWorkload& w, const Target& t) const override {
    return cuda::supports_rows(t, w.dtype);
  }

  ReduceKnobs declare(ConfigSpace& space, const ReduceWorkload& w, const Target& t) const override {
    ReduceKnobs k{
        .rows = cuda::declare_rows(space, t, w.rows, w.columns, /*passes=*/1),
        // Parts of a row in blocks of their own, for a second kernel.
        .splits = space.choice("splits", {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024})
                      .try_first(first_splits(w, t)),
    };
    // Each part has chunks to do, one spelling for each number of parts, and no part is less work than
    // combining it.
    const IntExpr chunks = ceil_div(w.columns, k.rows.threads * k.rows.vector);
    const IntExpr part = ceil_div(chunks, k.splits);
    space.require(ceil_div(chunks, part) == k.splits);
    space.require(k.splits == 1 || w.columns / k.splits >= kLeastPart);
    space.require(k.splits == 1 || k.rows.loads < 2 * part);
    return k;
  }

  Program compute(const ReduceWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const ReduceWorkload& w, const Target&, const ReduceKnobs& k,
                const Config& c) const override {
    RowTile tile = cuda::row_tile(k.rows, c, w.columns);
    const int64_t splits = c[k.splits];
    const Tensor x = cuda::by_threads(s, s.tensor("x"), tile);
    Tensor acc = s.tensor("acc"), out = s.tensor("out");
    if (splits > 1) {
      const Tensor parts = part_rows(s, acc, ceil_div(tile.chunks, splits) * tile.threads * tile.vector);
      combine_parts(s, acc, out, splits);
      out = parts;
      acc = s.cache_write(parts, MemoryScope::kRegister);
    }
    const Tensor sum_of_thread = cuda::sums_of_threads(s, acc, tile);
    const std::vector<Axis> axes = s.axes(out);  // [part,] row
    if (s.refused()) return;
    if (splits > 1) s.bind(axes.front(), LoopKind::kBlockY);
    const Axis row = cuda::place_rows(s, axes.back(), tile);
    cuda::compute_total(s, acc, sum_of_thread, x, row, tile);
    cuda::keep_row(s, x, row, tile);
  }

 private:
  static constexpr int64_t kLeastPart = 1024;  // columns

  // Blocks for all multiprocessors, as far as parts stay long.
  static int64_t first_splits(const ReduceWorkload& w, const Target& t) {
    const RowTile tile = cuda::first_row_tile(t, w.rows, w.columns, /*passes=*/1);
    int64_t best = 1;
    for (int64_t splits = 2; splits <= 1024 && w.rows * splits <= 4 * cuda::kMultiprocessors; splits *= 2) {
      const int64_t part = ceil_div(tile.chunks, splits);
      if (part >= 4 * tile.loads && ceil_div(tile.chunks, part) == splits) best = splits;
    }
    return best;
  }

  static Tensor part_rows(Schedule& s, const Tensor& acc, int64_t columns) {
    const auto [column] = s.reduce_axes<1>(acc);
    return s.rfactor(acc, s.split(column, columns).outer);
  }

  // The second kernel: the threads of a row take a part each, rows fill a warp.
  static void combine_parts(Schedule& s, const Tensor& acc, const Tensor& out, int64_t splits) {
    const auto [i] = s.axes<1>(out);
    const auto [block, row] = s.split(i, ceil_div(cuda::kWarp, splits));
    s.bind(block, LoopKind::kBlockX);
    s.bind(row, LoopKind::kThreadY);
    s.set_scope(acc, MemoryScope::kRegister);
    s.compute_at(acc, row);
    const auto [part] = s.reduce_axes<1>(acc);
    s.bind(part, LoopKind::kThreadX);
  }
};

}  // namespace

const AnyTemplate& reduce_cuda() {
  static const ReduceCuda instance;
  return instance;
}

}  // namespace tuner
