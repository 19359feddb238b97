// reduce_cpu: sum, maximum, minimum or mean of each row of a matrix, on any CPU with vectors.
//
//   out[i] = op over j of x[i, j]
//
//   parallel block of rows, or where rows are few blocks of columns, whose results are combined afterwards
//     each lane its own columns, then all lanes
//
// Declines types other than float32.
#include "compiler_core/base/int_math.h"
#include "templates/cpu/cpu_rows.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct ReduceKnobs {
  ChoiceKnob vectors, rows, blocks, ahead;
};

class ReduceCpu final : public ScheduleTemplate<ReduceWorkload, ReduceKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "reduce_cpu"; }
  int version() const override { return 2; }

  Support supports(const ReduceWorkload& w, const Target& t) const override {
    return cpu::supports_rows(t, w.dtype);
  }

  ReduceKnobs declare(ConfigSpace& space, const ReduceWorkload& w, const Target& t) const override {
    const bool few_rows = t.threads > 1 && w.rows < int64_t{8} * t.threads;
    const bool shares_first = few_rows && w.columns >= kWorthSharing;
    ReduceKnobs k{
        .vectors = cpu::declare_vectors(space, t, w.columns, 8),
        .rows = cpu::declare_rows(space, w.rows, 1),
        // Parts of a row for the threads to share.
        .blocks = space.choice("blocks", {1, t.threads, int64_t{4} * t.threads})
                      .try_first(shares_first ? t.threads : 1),
        // KiB between what is read and what is asked for; 0: nothing is.
        .ahead = space.choice("ahead", {0, 1, 2, 4, 8, 16}).try_first(0),
    };
    // The second cache is fast enough.
    if (w.rows * w.columns <= kNear) space.require(k.ahead == 0);
    space.require(k.blocks == 1 || (k.rows == 1 && k.ahead == 0));
    if (!few_rows) space.require(k.blocks == 1);
    space.require(k.blocks == 1 || k.blocks * k.vectors * t.f32_lanes() <= w.columns);
    return k;
  }

  Program compute(const ReduceWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const ReduceWorkload& w, const Target& t, const ReduceKnobs& k,
                const Config& c) const override {
    const int64_t wide = c[k.vectors] * t.f32_lanes(), blocks = c[k.blocks];
    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    const auto [row] = s.axes<1>(out);
    if (blocks == 1) {
      const Tensor lanes = cpu::sums_of_lanes(s, acc, wide);
      const Axis block = s.split(row, c[k.rows]).outer;
      std::optional<cpu::Ahead> ahead;
      if (c[k.ahead] > 0)
        ahead = {s.tensor("x"), t.f32_lanes(), std::max<int64_t>(c[k.ahead] * kFloatsPerKib / wide, 1)};
      cpu::compute_total(s, acc, lanes, block, ahead);
      if (t.threads > 1) s.parallel(block);
      return;
    }
    const auto [columns] = s.reduce_axes<1>(acc);
    const auto [block, inside] = s.split(columns, ceil_div(w.columns, blocks));
    const Tensor of_blocks = s.rfactor(acc, block);
    const Tensor lanes = cpu::sums_of_lanes(s, of_blocks, wide);
    const auto [block_axis, block_row] = s.axes<2>(of_blocks);
    cpu::compute_in_rows(s, acc, row);
    cpu::combine_lanes(s, of_blocks);
    cpu::compute_lanes(s, lanes, block_row);
    s.parallel(s.fuse({block_axis, block_row}));
  }

 private:
  // Columns from which another thread is worth waking: about 4 us of reading from L3.
  static constexpr int64_t kWorthSharing = 131072;
  static constexpr int64_t kFloatsPerKib = 256;
  static constexpr int64_t kNear = int64_t{1} << 18;  // elements in 1 MiB
};

}  // namespace

const AnyTemplate& reduce_cpu() {
  static const ReduceCpu instance;
  return instance;
}

}  // namespace tuner
