// program_cpu: any fragment of a network, on any CPU: what no other template computes.
//
//   stages that only move elements, or compute little, become part of what reads them
//   each other stage, in order:
//     elements     parallel outer axes; vectors along the last ones; what is read along another axis than it
//                  is written by tiles, transposed in registers
//     sums         parallel outer axes; a tile of `rows` x `vectors` in registers, the sum inside of it;
//                  where what is added up lies along the sum: lanes of their own, combined at the end
//
// A fragment may be anything, so nothing here must hold: each step is tried, and left out where a primitive
// refuses it. What remains are plain loops, which are always right.
#include <algorithm>
#include <set>

#include "templates/cpu/cpu_rows.h"
#include "templates/cpu/cpu_templates.h"
#include "templates/fragment_stages.h"

namespace tuner {
namespace {

struct ProgramKnobs {
  ChoiceKnob vectors, rows;
  FlagKnob inline_all, fuse_axes;
};

using fragment::along;
using fragment::attempt;
using fragment::put_inside;
using fragment::Stage;
using fragment::stages_of;

class ProgramCpu final : public ScheduleTemplate<ProgramWorkload, ProgramKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "program_cpu"; }
  int version() const override { return 2; }

  Support supports(const ProgramWorkload&, const Target& t) const override {
    return t.is_cpu() ? supported() : needs_target("a CPU", t);
  }

  ProgramKnobs declare(ConfigSpace& space, const ProgramWorkload& w, const Target&) const override {
    const Program math = compute(w);
    const std::vector<Stage> stages = stages_of(math);
    const bool sums = std::ranges::any_of(stages, [](const Stage& s) { return s.is_sum(); });
    ProgramKnobs k{
        // Vectors of a step: more are under way at once.
        .vectors = space.choice("vectors", {1, 2, 4, 8}).try_first(2),
        // Rows of a tile of sums: what is read for one serves all.
        .rows = space.choice("rows", {1, 2, 4}).at_most(sums ? 4 : 1).try_first(1),
        // What is computed again for each reader is not written to memory.
        .inline_all = space.flag("inline_all").try_first(false),
        // Rows that are no whole number of vectors waste the last one; axes that are one have few last ones.
        .fuse_axes = space.flag("fuse_axes").try_first(true),
    };
    if (stages.size() == 1) space.require(k.inline_all == 0);
    return k;
  }

  Program compute(const ProgramWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const ProgramWorkload&, const Target& t, const ProgramKnobs& k,
                const Config& c) const override {
    put_inside(s, c[k.inline_all]);
    const int64_t wide = c[k.vectors] * t.f32_lanes();
    const Program before = s.program();  // stages point into it
    const std::vector<Stage> stages = stages_of(before);
    std::set<Buffer> done;
    for (const Stage& stage : stages) {
      if (!done.insert(stage.buffer).second) continue;
      const Tensor tensor{stage.buffer};
      if (stage.store->reduce == ReduceOp::kNone)
        schedule_elements(s, t, tensor, *stage.store, wide, c[k.fuse_axes]);
      else
        schedule_sum(s, t, tensor, *stage.store, wide, c[k.rows]);
    }
  }

 private:
  static void share(Schedule& s, const Target& t, std::vector<Axis> outer) {
    if (t.threads == 1 || outer.empty()) return;
    attempt(s, [&](Schedule& copy) { copy.parallel(outer.size() == 1 ? outer[0] : copy.fuse(outer)); });
  }

  static void schedule_elements(Schedule& s, const Target& t, const Tensor& tensor, const StmtNode& store,
                                int64_t wide, bool fuse_axes) {
    std::vector<Axis> axes = s.spatial_axes(tensor);
    if (axes.empty()) return;
    const size_t read = read_along(s, axes, store);
    if (fuse_axes && read + 1 < axes.size() &&
        attempt(s, [&](Schedule& copy) { transpose(copy, t, axes, read); }))
      return;
    // The last axes as one, as long as vectors are longer than it, or do not divide it.
    while (fuse_axes && axes.size() > 1 &&
           (s.extent(axes.back()) < wide || s.extent(axes.back()) % t.f32_lanes() != 0)) {
      Axis fused;
      const Axis last = axes.back(), before = axes[axes.size() - 2];
      if (!attempt(s, [&](Schedule& copy) { fused = copy.fuse({before, last}); })) break;
      axes.pop_back();
      axes.back() = fused;
    }
    const Axis last = axes.back();
    axes.pop_back();
    attempt(s, [&](Schedule& copy) {
      const auto [step, lane] = copy.split(last, std::min(wide, copy.extent(last)));
      copy.vectorize(lane);
      axes.push_back(step);
    });
    share(s, t, axes);
  }

  // The axis along which most is read in the order of memory, where the last one jumps; else the last one.
  static size_t read_along(Schedule& s, const std::vector<Axis>& axes, const StmtNode& store) {
    const size_t last = axes.size() - 1;
    if (along(store, axes[last].var) >= 0) return last;
    for (size_t a = last; a-- > 0;)
      if (along(store, axes[a].var) > 0 && s.extent(axes[a]) > 1) return a;
    return last;
  }
  // Vectors of both axes, by tiles that are transposed in registers.
  static void transpose(Schedule& s, const Target& t, std::vector<Axis> axes, size_t read) {
    const Axis last = axes.back();
    const auto [row_tile, row] = s.split(axes[read], std::min(kTile, s.extent(axes[read])));
    const auto [lane_tile, lane] = s.split(last, std::min(kTile, s.extent(last)));
    axes[read] = row_tile;
    axes.back() = lane_tile;
    std::vector<Axis> order = axes;
    order.insert(order.end(), {row, lane});
    s.reorder(order);
    s.vectorize(lane);
    s.vectorize_rows(row);
    share(s, t, axes);
  }
  static constexpr int64_t kTile = 16;

  static void schedule_sum(Schedule& s, const Target& t, const Tensor& tensor, const StmtNode& store,
                           int64_t wide, int64_t rows) {
    const std::vector<Axis> axes = s.spatial_axes(tensor), sums = s.reduce_axis_list(tensor);
    if (sums.empty()) return;
    // Vectors of integers are not added up across their lanes.
    const bool by_lanes = is_float(tensor.buffer->dtype) &&
                          (axes.empty() || along(store, sums.back().var) > along(store, axes.back().var));
    if (by_lanes && attempt(s, [&](Schedule& copy) { sum_by_lanes(copy, t, tensor, wide); })) return;
    if (!axes.empty()) {
      for (const int64_t tile : {rows, int64_t{1}})
        if (attempt(s, [&](Schedule& copy) { sum_by_tiles(copy, t, tensor, wide, tile); })) return;
    }
    attempt(s, [&](Schedule& copy) { copy.decompose_reduction(tensor, sums.front()); });
  }

  // Each lane adds up its own elements.
  static void sum_by_lanes(Schedule& s, const Target& t, const Tensor& tensor, int64_t wide) {
    const std::vector<Axis> sums = s.reduce_axis_list(tensor);
    if (sums.size() > 1) s.fuse(sums);
    const std::vector<Axis> axes = s.spatial_axes(tensor);
    const Tensor lanes = cpu::sums_of_lanes(s, tensor, wide);
    if (axes.empty()) {
      cpu::combine_lanes(s, tensor);
      const std::vector<Axis> own = s.spatial_axes(lanes);
      const auto [step] = s.reduce_axes<1>(lanes);
      if (s.refused()) return;
      s.reorder({step, own.front()});
      s.decompose_reduction(lanes, step);
      s.vectorize(own.front());
      return;
    }
    const std::vector<Axis> outer = s.spatial_axes(tensor);
    if (s.refused()) return;
    cpu::combine_lanes(s, tensor);
    cpu::compute_lanes(s, lanes, outer.back());
    share(s, t, outer);
  }

  // A tile of results in registers.
  static void sum_by_tiles(Schedule& s, const Target& t, const Tensor& tensor, int64_t wide, int64_t rows) {
    const Tensor sum = s.cache_write(tensor, MemoryScope::kRegister);
    std::vector<Axis> axes = s.spatial_axes(tensor);
    if (s.refused() || axes.empty()) return;
    const size_t last = axes.size() - 1;
    const auto [step, lane] = s.split(axes[last], std::min(wide, s.extent(axes[last])));
    axes[last] = step;
    if (rows > 1 && last > 0) {
      const auto [block, row] = s.split(axes[last - 1], rows);
      s.reorder({block, step, row, lane});
      s.unroll(row);
      axes[last - 1] = block;
    }
    s.compute_at(sum, step);
    s.vectorize(lane);
    const std::vector<Axis> own = s.spatial_axes(sum), sums = s.reduce_axis_list(sum);
    if (s.refused()) return;
    std::vector<Axis> order = sums;
    order.insert(order.end(), own.begin(), own.end());
    s.reorder(order);
    s.decompose_reduction(sum, sums.front());
    if (rows > 1 && last > 0) s.unroll(own[last - 1]);
    s.vectorize(own.back());
    share(s, t, axes);
  }
};

}  // namespace

const AnyTemplate& program_cpu() {
  static const ProgramCpu instance;
  return instance;
}

}  // namespace tuner
