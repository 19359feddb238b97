// transpose_cuda: the transpose of a matrix, through shared memory, on any NVIDIA GPU.
//
//   out[j, i] = x[i, j]
//
//   block: a tile of tile_rows x tile_columns of x
//     all threads copy the tile to shared memory: a warp takes vectors of `vector_in` columns, 32 columns
//       wide and `vector_in` rows high
//     all threads write it as rows of out: vectors of `vector_out` rows, 32 rows by `vector_out` columns
//
// Rows of the tile are padded by one element: what a warp reads or writes then lies in 32 different banks, at
// any width of the vectors. Declines types other than float32.
#include "templates/cuda/cuda_rows.h"
#include "templates/cuda/cuda_templates.h"

namespace tuner {
namespace {

using cuda::kWarp;

struct TransposeKnobs {
  ChoiceKnob tile_rows, tile_columns, threads, vector_in, vector_out;
  CategoryKnob order;
};

class TransposeCuda final : public ScheduleTemplate<TransposeWorkload, TransposeKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "transpose_cuda"; }
  int version() const override { return 1; }

  Support supports(const TransposeWorkload& w, const Target& t) const override {
    return cuda::supports_rows(t, w.dtype);
  }

  TransposeKnobs declare(ConfigSpace& space, const TransposeWorkload& w, const Target& t) const override {
    const int64_t vector_in = cuda::vector_width({w.columns}), vector_out = cuda::vector_width({w.rows});
    // Large tiles as long as there are blocks for all multiprocessors.
    const bool many = w.rows * w.columns >= 16384 * cuda::kMultiprocessors;
    const int64_t first_rows = many && w.rows >= 64 ? 64 : 32,
                  first_columns = many && w.columns >= 64 ? 64 : 32;
    TransposeKnobs k{
        // Larger tiles have more loads under way in fewer blocks.
        .tile_rows = space.choice("tile_rows", {32, 64, 128}).try_first(first_rows),
        .tile_columns = space.choice("tile_columns", {32, 64, 128}).try_first(first_columns),
        // Fewer threads have more loads of their own under way.
        .threads = space.choice("threads", {64, 128, 256, 512, 1024}).try_first(256),
        // Elements of one access: loads along rows of x, stores along rows of out.
        .vector_in = space.choice("vector_in", {1, 2, 4}).at_most(vector_in).try_first(vector_in),
        .vector_out = space.choice("vector_out", {1, 2, 4}).at_most(vector_out).try_first(vector_out),
        // Which tiles run side by side: those that read, or those that write, neighbouring memory.
        .order = space.category("order", {"along_x", "along_out"}),
    };
    const IntExpr tile = k.tile_rows * k.tile_columns;
    space.require(k.tile_rows < std::max<int64_t>(2 * w.rows, kWarp + 1));
    space.require(k.tile_columns < std::max<int64_t>(2 * w.columns, kWarp + 1));
    if (w.rows * w.columns >= cuda::kManyElements)
      space.require(k.threads % (kWarp * cuda::kSchedulers) == 0);
    // No thread is idle in a whole tile, and at most 16 elements each are under way.
    space.require(k.threads * max(k.vector_in, k.vector_out) <= tile);
    space.require(tile <= k.threads * 64);
    space.require(k.tile_rows * (k.tile_columns + 1) * 4 <= t.shared_bytes_per_block);
    return k;
  }

  Program compute(const TransposeWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const TransposeWorkload&, const Target&, const TransposeKnobs& k,
                const Config& c) const override {
    const Tensor out = s.tensor("out");
    const Tensor tile = s.cache_read(s.tensor("x"), MemoryScope::kShared, out);
    const auto [j, i] = s.axes<2>(out);
    const auto [j_block, j_in_block] = s.split(j, c[k.tile_columns]);
    const auto [i_block, i_in_block] = s.split(i, c[k.tile_rows]);
    const bool along_x = c[k.order] == 0;
    s.reorder({j_block, i_block, j_in_block, i_in_block});
    if (along_x) s.reorder({i_block, j_block});
    const Axis blocks = along_x ? s.fuse({i_block, j_block}) : s.fuse({j_block, i_block});
    s.bind(blocks, LoopKind::kBlockX);
    s.compute_at(tile, blocks);

    share_rows(s, j_in_block, i_in_block, c[k.threads], c[k.vector_out]);
    const auto [tile_i, tile_j] = s.inner_axes<2>(tile);
    share_rows(s, tile_i, tile_j, c[k.threads], c[k.vector_in]);
    s.set_layout(tile, "pad:1");
  }

 private:
  // Shares rows of `column` elements among the threads: a warp takes 32 columns of `vector` rows.
  static void share_rows(Schedule& s, const Axis& row, const Axis& column, int64_t threads, int64_t vector) {
    const auto [row_outer, row_inner] = s.split(row, vector);
    const auto [column_outer, column_inner] = s.split(column, kWarp);
    s.reorder({row_outer, column_outer, row_inner, column_inner});
    cuda::share_copy(s, {row_outer, column_outer, row_inner, column_inner}, threads, vector);
  }
};

}  // namespace

const AnyTemplate& transpose_cuda() {
  static const TransposeCuda instance;
  return instance;
}

}  // namespace tuner
