#include "templates/cpu/cpu_rows.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"

namespace tuner::cpu {

Support supports_rows(const Target& t, DType dtype) {
  if (!t.is_cpu()) return needs_target("a CPU", t);
  if (dtype != DType::kFloat32) return declined("needs float32, got ", dtype);
  return supported();
}

int64_t vectors_of(const Target& t, int64_t columns) { return ceil_div(columns, t.f32_lanes()); }

ChoiceKnob declare_vectors(ConfigSpace& space, const Target& t, int64_t columns, int64_t first) {
  // More additions are under way at once, and fewer steps; the last step of a row may be mostly empty.
  return space.choice("vectors", {1, 2, 4, 8, 16}).at_most(vectors_of(t, columns)).try_first(first);
}

ChoiceKnob declare_rows(ConfigSpace& space, int64_t rows, int64_t first) {
  // More rows wait together for their totals; all are written out.
  return space.choice("rows", {1, 2, 4, 8}).at_most(rows).try_first(first);
}

Tensor sums_of_lanes(Schedule& s, const Tensor& total, int64_t wide) {
  const auto [columns] = s.reduce_axes<1>(total);
  const auto [step, lane] = s.split(columns, wide);
  return s.rfactor(total, lane);
}

void combine_lanes(Schedule& s, const Tensor& total) {
  const auto [lanes] = s.reduce_axes<1>(total);
  s.decompose_reduction(total, lanes);
  s.vectorize(lanes);
}

void compute_lanes(Schedule& s, const Tensor& sums, const Axis& row, const std::optional<Ahead>& ahead) {
  compute_in_rows(s, sums, row);
  std::vector<Axis> order = s.spatial_axes(sums);  // lane[, row]
  const auto [step] = s.reduce_axes<1>(sums);
  if (s.refused()) return;
  const Axis lane = order.front();
  std::reverse(order.begin(), order.end());
  order.insert(order.begin(), step);
  s.reorder(order);
  s.decompose_reduction(sums, step);
  s.skip_zeros(sums);  // the last step of a row may be shorter
  if (!ahead.has_value()) return s.vectorize(lane);
  const auto [vector, own] = s.split(lane, ahead->lanes);  // a vector is a line: each is asked for
  s.unroll(vector);
  s.vectorize(own);
  s.prefetch(ahead->of, sums, step, ahead->steps);
}

void compute_total(Schedule& s, const Tensor& total, const Tensor& sums, const Axis& block,
                   const std::optional<Ahead>& ahead) {
  compute_in_rows(s, total, block);
  combine_lanes(s, total);
  const std::vector<Axis> rows = s.spatial_axes(total);
  if (!s.refused()) compute_lanes(s, sums, rows.back(), ahead);
}

void compute_in_rows(Schedule& s, const Tensor& t, const Axis& block) {
  s.set_scope(t, MemoryScope::kRegister);
  s.compute_at(t, block);
}

void keep_rows(Schedule& s, const Tensor& t, const Axis& block, int64_t wide, bool in_registers) {
  if (in_registers) s.set_scope(t, MemoryScope::kRegister);
  s.compute_at(t, block);
  const std::vector<Axis> axes = s.spatial_axes(t);
  if (s.refused()) return;
  step_columns(s, axes.back(), wide);
}

Axis step_columns(Schedule& s, const Axis& columns, int64_t wide) {
  const auto [step, lane] = s.split(columns, wide);
  s.vectorize(lane);
  return step;
}

void share_blocks(Schedule& s, const Target& t, const Axis& rows, const Axis& steps) {
  if (t.threads == 1) return;
  constexpr int64_t kShares = 8;  // for each thread, so that they end together
  const int64_t wanted = kShares * t.threads;
  if (s.refused()) return;
  if (s.extent(rows) >= wanted) return s.parallel(rows);
  const int64_t blocks = ceil_div(wanted, s.extent(rows));
  const int64_t per_block = ceil_div(s.extent(steps), blocks);
  s.parallel(s.fuse({rows, s.split(steps, per_block).outer}));
}

}  // namespace tuner::cpu
