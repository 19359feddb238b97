// transpose_cpu: the transpose of a matrix, on any CPU with vectors.
//
//   out[j, i] = x[i, j]
//
//   parallel block of `block_rows` x `block_columns` tiles
//     tile: a vector of rows by a vector of columns, read as rows of x, transposed in registers, written as
//     rows
//       of out
//
// A tile reads and writes whole cache lines, so blocks only decide how many pages and which lines of the
// outer caches are in use at once. Declines types other than float32.
#include <algorithm>

#include "templates/cpu/cpu_rows.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct TransposeKnobs {
  ChoiceKnob block_rows, block_columns;
  CategoryKnob order, order_in_block;
};

class TransposeCpu final : public ScheduleTemplate<TransposeWorkload, TransposeKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "transpose_cpu"; }
  int version() const override { return 1; }

  Support supports(const TransposeWorkload& w, const Target& t) const override {
    return cpu::supports_rows(t, w.dtype);
  }

  TransposeKnobs declare(ConfigSpace& space, const TransposeWorkload& w, const Target& t) const override {
    const int64_t rows = cpu::vectors_of(t, w.rows), columns = cpu::vectors_of(t, w.columns);
    return {
        // Tiles of a block in either direction. Larger blocks run longer along a row of x or of out, smaller
        // ones have fewer rows under way.
        .block_rows = space.choice("block_rows", {1, 2, 4, 8, 16, 32}).at_most(rows).try_first(4),
        .block_columns = space.choice("block_columns", {1, 2, 4, 8, 16, 32}).at_most(columns).try_first(4),
        // Which neighbours come next: those that read, or those that write, neighbouring memory.
        .order = space.category("order", {"along_x", "along_out"}).try_first("along_out"),
        .order_in_block = space.category("order_in_block", {"along_x", "along_out"}).try_first("along_out"),
    };
  }

  Program compute(const TransposeWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const TransposeWorkload&, const Target& t, const TransposeKnobs& k,
                const Config& c) const override {
    const int64_t lanes = t.f32_lanes();
    const auto [j, i] = s.axes<2>(s.tensor("out"));
    const auto [j_block, j_inside] = s.split(j, c[k.block_columns] * lanes);
    const auto [i_block, i_inside] = s.split(i, c[k.block_rows] * lanes);
    const auto [j_tile, row] = s.split(j_inside, lanes);
    const auto [i_tile, lane] = s.split(i_inside, lanes);
    s.reorder({j_block, i_block, j_tile, i_tile, row, lane});
    if (c[k.order] == 0) s.reorder({i_block, j_block});
    if (c[k.order_in_block] == 0) s.reorder({i_tile, j_tile});
    s.vectorize(lane);
    s.vectorize_rows(row);
    if (t.threads > 1) s.parallel(c[k.order] == 0 ? s.fuse({i_block, j_block}) : s.fuse({j_block, i_block}));
  }
};

}  // namespace

const AnyTemplate& transpose_cpu() {
  static const TransposeCpu instance;
  return instance;
}

}  // namespace tuner
