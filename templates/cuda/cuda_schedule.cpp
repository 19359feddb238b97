#include "templates/cuda/cuda_schedule.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "compiler_core/base/int_math.h"

namespace tuner::cuda {

int64_t power_of_two_at_least(int64_t n, int64_t most) {
  int64_t p = 1;
  while (p < n && p < most) p *= 2;
  return p;
}

int64_t vector_width(std::initializer_list<int64_t> lengths) {
  for (const int64_t width : {4, 2})
    if (std::all_of(lengths.begin(), lengths.end(), [&](int64_t n) { return n % width == 0; })) return width;
  return 1;
}

IntExpr register_limit(const Target& t, const IntExpr& threads, const IntExpr& min_blocks) {
  // The register file is dealt in portions of 8 a thread; an instruction names at most 255.
  return min(IntExpr(t.vector_registers()), t.registers_per_sm / (threads * min_blocks) / 8 * 8);
}

namespace {

// Unrolls the loops of `inner_first` as long as a body holds at most `most` iterations; of the loop where
// that ends a part.
void unroll_rounds(Schedule& s, const std::vector<Axis>& inner_first, int64_t most) {
  for (const Axis& axis : inner_first) {
    if (s.refused()) return;
    const int64_t extent = s.extent(axis);
    if (extent <= most) {
      s.unroll(axis);
      most /= extent;
      continue;
    }
    int64_t part = most;
    while (extent % part != 0) --part;
    if (part > 1) s.unroll(s.split(axis, part).inner);
    return;
  }
}
constexpr int64_t kMaxRounds = 16;  // loads of a thread under way at once

// The innermost loops of a copy as vectors: `lane` of a column's vector; `row_lane`, where it is there, of
// the rows (or of a group across them) that a thread takes.
void vectorize_copy(Schedule& s, const Axis& lane, const Axis& row_lane, int64_t vector) {
  const bool has_rows = row_lane.var != nullptr;
  if (vector > 1) s.vectorize(lane);
  if (has_rows && vector > 1) s.vectorize_rows(row_lane);
  if (has_rows && vector == 1) s.vectorize(row_lane);
  s.rename(lane, "lane");
  if (has_rows) s.rename(row_lane, "row_lane");
}

// Of `threads` the number that shares `extent` iterations: where a divisor of both would leave more rounds to
// do than all of them, all.
int64_t shared_rounds(int64_t extent, int64_t threads) {
  const int64_t common = std::gcd(threads, extent);
  return ceil_div(extent, threads) < extent / common ? threads : common;
}

}  // namespace

void share_rows(Schedule& s, const Axis& outer, const Axis& row, const Axis& column, int64_t threads,
                int64_t vector, int64_t rows, const ColumnGroup& group) {
  if (s.refused()) return;
  const auto [vectors, lane] = s.split(column, vector);
  int64_t columns = std::gcd(s.extent(vectors), threads);
  Axis groups = row, row_lane, strip_round;
  if (rows > 1) {
    const SplitAxes split = s.split(row, rows);
    groups = split.outer, row_lane = split.inner;
  }
  int64_t row_threads = threads / columns, strips = 1;
  if (outer.var != nullptr && row_threads % s.extent(groups) == 0)
    strips = shared_rounds(s.extent(outer), row_threads / s.extent(groups));
  // Threads that are left take other columns of the same rows.
  if (const int64_t taken = s.extent(groups) * strips;
      columns < s.extent(vectors) && row_threads % taken == 0)
    columns *= row_threads / taken, row_threads = taken;
  row_threads /= strips;
  const auto [column_round, column_thread] = s.split(vectors, columns);
  const auto [row_round, row_thread] = s.split(groups, row_threads);
  std::vector<Axis> order = {row_round, column_round, row_thread, column_thread};
  std::vector<Axis> thread = {row_thread, column_thread};
  if (outer.var != nullptr) {
    const auto [strip, strip_thread] = s.split(outer, strips);
    strip_round = strip;
    order.insert(order.begin() + 2, strip_thread);
    order.insert(order.begin(), strip);
    thread.insert(thread.begin(), strip_thread);
  }
  if (group.across) row_lane = group.axis, rows = s.extent(group.axis);
  order.push_back(lane);
  if (rows > 1) order.insert(vector > 1 ? order.end() - 1 : order.end(), row_lane);
  s.reorder(order);
  s.bind(s.fuse(thread), LoopKind::kThreadX);
  const bool along = group.axis.var != nullptr && !group.across;
  const int64_t lanes = along ? vector * s.extent(group.axis) : vector;
  vectorize_copy(s, along ? s.fuse({lane, group.axis}) : lane, row_lane, lanes);
  const Axis rounds = s.rename(row_round, "row_round"), parts = s.rename(column_round, "column_round");
  std::vector<Axis> inner_first = {parts, rounds};
  if (outer.var != nullptr) inner_first.push_back(s.rename(strip_round, "strip"));
  unroll_rounds(s, inner_first, kMaxRounds / rows);
}

void share_copy(Schedule& s, const std::vector<Axis>& axes, int64_t threads, int64_t vector) {
  const auto [vectors, lane] = s.split(axes.size() > 1 ? s.fuse(axes) : axes.front(), vector);
  const auto [round, thread] = s.split(vectors, threads);
  s.bind(thread, LoopKind::kThreadX);
  if (vector > 1) s.vectorize(lane);
  s.rename(lane, "lane");
  unroll_rounds(s, {s.rename(round, "round")}, kMaxRounds);
}

Tensor shared_tile(Schedule& s, const Tensor& operand, bool packed_ahead, const Tensor& reader) {
  if (packed_ahead) return s.cache_read(operand, MemoryScope::kShared, reader);
  s.set_scope(operand, MemoryScope::kShared);
  return operand;
}

void bind_grid(Schedule& s, const Axis& batch, const Axis& splits, const Axis& tiles) {
  std::vector<Axis> x;
  const auto place = [&](const Axis& axis, LoopKind kind) {
    if (axis.var == nullptr || s.refused()) return;
    if (s.extent(axis) > kMaxGridYZ || !x.empty())
      x.push_back(axis);
    else
      s.bind(axis, kind);
  };
  place(batch, LoopKind::kBlockZ);
  place(splits, LoopKind::kBlockY);
  x.push_back(tiles);
  s.bind(x.size() > 1 ? s.fuse(x) : tiles, LoopKind::kBlockX);
}

void share_tile(Schedule& s, const Tensor& tile, const ThreadGrid& threads, int64_t vector) {
  if (s.refused()) return;
  Axis vectors = s.fuse(s.axes(tile));
  if (vector > 1) {
    const SplitAxes parts = s.split(vectors, vector);
    vectors = parts.outer;
    s.vectorize(s.rename(parts.inner, "lane"));
  }
  const auto [round, thread] = s.split(vectors, threads.count());
  const auto [warp, lane] = s.split(thread, threads.lanes);
  s.bind(s.rename(warp, "warp_thread"), LoopKind::kThreadY);
  s.bind(s.rename(lane, "lane_thread"), LoopKind::kThreadX);
  s.unroll(s.rename(round, "round"));
}

void place_block(Schedule& s, const std::vector<Axis>& axes, const Tensor& acc, const BlockShape& block,
                 const ThreadGrid& threads) {
  if (s.refused()) return;
  const size_t leading = axes.size() - 2;
  const auto [i_block, i] = s.split(axes[leading], block.rows);
  const auto [j_block, j] = s.split(axes[leading + 1], block.columns);
  const auto [group, i_in_group] = s.split(i_block, block.group_m);
  s.reorder({group, j_block, i_in_group, i, j});
  const Axis tiles = s.rename(s.fuse({group, j_block, i_in_group}), "tile");
  s.compute_at(acc, tiles);
  bind_grid(s, block.batch > 1 ? axes[leading - 1] : Axis{}, block.splits > 1 ? axes[0] : Axis{}, tiles);
  const auto [vectors, lane] = s.split(j, block.vector);
  const auto [round, thread] = s.split(s.fuse({i, vectors}), threads.count());
  const auto [warp, lane_thread] = s.split(thread, threads.lanes);
  s.bind(s.rename(warp, "warp_thread"), LoopKind::kThreadY);
  s.bind(s.rename(lane_thread, "lane_thread"), LoopKind::kThreadX);
  if (block.vector > 1) s.vectorize(s.rename(lane, "lane"));
  // A few rows at a time, so that their loads overlap.
  if (s.refused()) return;
  const auto [rounds, few] = s.split(round, std::min<int64_t>(4, s.extent(round)));
  s.unroll(s.rename(few, "row"));
  s.rename(rounds, "rows");
}

void vectorize_by(Schedule& s, const Axis& axis, int64_t lanes) {
  const auto [vector, lane] = s.split(axis, lanes);
  s.unroll(vector);
  if (lanes > 1) s.vectorize(lane);
  s.rename(vector, "vector");
  s.rename(lane, "lane");
}

void add_partials(Schedule& s, const Tensor& acc, const std::vector<Axis>& axes, int64_t n,
                  int64_t vector_out) {
  constexpr int64_t kThreads = 256;
  const int64_t vector = std::min(vector_out, vector_width({n}));
  int64_t threads_x = 1;
  while (threads_x < 64 && threads_x * vector < n) threads_x *= 2;
  if (s.refused()) return;
  s.set_scope(acc, MemoryScope::kRegister);
  const auto [j_block, j_in_block] = s.split(axes.back(), threads_x * vector);
  const auto [j_thread, lane] = s.split(j_in_block, vector);
  const auto [i_block, i_thread] = s.split(axes[axes.size() - 2], kThreads / threads_x);
  s.reorder({i_block, j_block, i_thread, j_thread, lane});
  bind_grid(s, axes.size() > 2 ? axes[0] : Axis{}, {}, s.fuse({i_block, j_block}));
  s.bind(i_thread, LoopKind::kThreadY);
  s.bind(j_thread, LoopKind::kThreadX);
  s.compute_at(acc, j_thread);
  if (vector > 1) s.vectorize(lane);
  const auto [part] = s.reduce_axes<1>(acc);
  if (s.refused()) return;
  const Axis acc_lane = s.spatial_axes(acc).back();
  s.reorder({part, acc_lane});
  s.decompose_reduction(acc, part);
  s.unroll(part);
  if (vector > 1) s.vectorize(acc_lane);
}

SplitSums split_sums(Schedule& s, const Tensor& acc, const Axis& sum, int64_t chunk, int64_t splits,
                     MemoryScope scope, const std::vector<Axis>& out, int64_t n, int64_t vector_out) {
  if (splits == 1) {
    s.set_scope(acc, scope);
    return {acc, out};
  }
  const Tensor partial = s.rfactor(acc, s.split(sum, chunk).outer);
  add_partials(s, acc, out, n, vector_out);
  const Tensor sums = s.cache_write(partial, scope);
  return {sums, s.axes(partial)};
}

}  // namespace tuner::cuda
