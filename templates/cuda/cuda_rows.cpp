#include "templates/cuda/cuda_rows.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"

namespace tuner::cuda {
namespace {

// Values of a row that a thread keeps at most: all loops over them are unrolled.
constexpr int64_t kMaxKept = 64;
constexpr int64_t kMaxThreads = 1024;
const std::vector<std::string> kKeptNames = {"registers", "shared", "nowhere"};  // in the order of RowKept
// Sums of warps on their way between threads, of all reductions of a kernel: bytes of shared memory.
constexpr int64_t kScratchBytes = 1024;
constexpr int64_t kMaxGridX = (int64_t{1} << 31) - 1;

void constrain(ConfigSpace& space, const Target& t, int64_t rows, int64_t columns, const RowKnobs& k) {
  const IntExpr threads = k.threads * k.rows, covered = k.threads * k.vector;
  const IntExpr chunks = ceil_div(columns, covered);
  // Whole warps: threads of a warp combine by shuffles, in which all of them take part.
  space.require(threads <= kMaxThreads);
  space.require(threads % (rows * columns < kManyElements ? kWarp : kWarp * kSchedulers) == 0);
  // No more than twice the threads a row has work for, nor twice the rows there are, unless to fill a warp.
  space.require(covered < 2 * columns || k.threads == 1);
  space.require(k.rows < 2 * rows || threads == kWarp);
  space.require(ceil_div(rows, k.rows) <= kMaxGridX);
  const IntExpr in_registers = k.kept ? *k.kept == static_cast<int64_t>(RowKept::kRegisters) : IntExpr(0);
  const IntExpr in_shared = k.kept ? *k.kept == static_cast<int64_t>(RowKept::kShared) : IntExpr(0);
  // A row in registers is loaded all at once: one spelling for it.
  space.require(!in_registers || k.loads == 1);
  space.require(k.loads < 2 * chunks);
  const IntExpr held = in_registers * chunks * k.vector + !in_registers * k.loads * k.vector;
  space.require(held <= kMaxKept);
  space.require(held + kOtherRegisters <= register_limit(t, threads, 1));
  if (k.kept)
    space.require(!in_shared || k.rows * chunks * covered * 4 + kScratchBytes <= t.shared_bytes_per_block);
}

// A stage that copies `data` in the layout of threads: its chunk loop unrolled, its lanes vectors.
void unroll_copy(Schedule& s, const Axis& chunk, const Axis& lane, int64_t vector) {
  s.unroll(chunk);
  if (vector > 1) s.vectorize(lane);
}

// `reader` reads `data` through registers that are filled inside `at`.
void read_ahead(Schedule& s, const Tensor& data, const Tensor& reader, const Axis& at, const RowTile& tile) {
  if (tile.kept == RowKept::kRegisters) return;  // it is there already
  const Tensor registers = s.cache_read(data, MemoryScope::kRegister, reader);
  s.compute_at(registers, at);
  const std::vector<Axis> axes = s.spatial_axes(registers);  // .., chunk, thread, lane
  if (s.refused()) return;
  unroll_copy(s, axes[axes.size() - 3], axes.back(), tile.vector);
}

}  // namespace

Support supports_rows(const Target& t, DType dtype) {
  if (!t.is_cuda()) return needs_target("a CUDA", t);
  if (dtype != DType::kFloat32) return declined("needs float32, got ", dtype);
  return supported();
}

RowTile first_row_tile(const Target& t, int64_t rows, int64_t columns, int passes) {
  RowTile first{};
  first.vector = vector_width({columns});
  const int64_t vectors = columns / first.vector;
  // A few vectors a thread: enough loads under way, few steps to combine.
  first.threads = std::min<int64_t>(power_of_two_at_least(ceil_div(vectors, 4)), 256);
  const auto kept_values = [&] { return ceil_div(vectors, first.threads) * first.vector; };
  constexpr int64_t kFewValues = kMaxKept / 2;
  if (passes > 1) {
    while (first.threads < kMaxThreads && kept_values() > kFewValues) first.threads *= 2;
    if (kept_values() > kFewValues) first.threads = kMaxThreads / 2;
  }
  first.chunks = ceil_div(vectors, first.threads);
  // About 128 threads a block, in whole warps, as long as there are blocks for all multiprocessors.
  first.rows = std::max<int64_t>(1, 128 / first.threads);
  while (first.rows * first.threads > kWarp && first.rows > 1 && rows / first.rows < kMultiprocessors)
    first.rows /= 2;
  const int64_t row_bytes = first.chunks * first.threads * first.vector * 4;
  first.kept = RowKept::kNowhere;
  if (passes > 1 && row_bytes + kScratchBytes <= t.shared_bytes_per_block) first.kept = RowKept::kShared;
  if (passes > 1 && kept_values() <= kFewValues) first.kept = RowKept::kRegisters;
  first.loads =
      first.kept == RowKept::kRegisters ? 1 : std::min<int64_t>(4, power_of_two_at_least(first.chunks));
  return first;
}

RowKnobs declare_rows(ConfigSpace& space, const Target& t, int64_t rows, int64_t columns, int passes) {
  const RowTile first = first_row_tile(t, rows, columns, passes);
  RowKnobs k{
      // Threads that share a row: more have more of it under way, fewer combine in fewer steps (up to 32
      // without shared memory).
      .threads = space.choice("threads", {1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024})
                     .try_first(first.threads),
      // Rows of a block: they fill it where rows are short.
      .rows = space.choice("rows", {1, 2, 4, 8, 16, 32, 64, 128, 256}).try_first(first.rows),
      // Elements of one access.
      .vector = space.choice("vector", {1, 2, 4}).at_most(first.vector).try_first(first.vector),
      // Vectors a thread has under way at once: hides the latency of memory, takes registers.
      .loads = space.choice("loads", {1, 2, 4, 8}).try_first(first.loads),
  };
  // Where the row stays between two passes: from registers nothing is read twice, but only so much fits;
  // shared memory holds more, for fewer blocks at once; the caches may hold all of it for nothing.
  if (passes > 1)
    k.kept = space.category("kept", kKeptNames).try_first(kKeptNames[static_cast<size_t>(first.kept)]);
  constrain(space, t, rows, columns, k);
  return k;
}

RowTile row_tile(const RowKnobs& k, const Config& c, int64_t columns) {
  RowTile tile{.threads = c[k.threads], .rows = c[k.rows], .vector = c[k.vector]};
  tile.chunks = ceil_div(columns, tile.threads * tile.vector);
  tile.kept = k.kept ? static_cast<RowKept>(c[*k.kept]) : RowKept::kNowhere;
  tile.loads = tile.kept == RowKept::kRegisters ? tile.chunks : c[k.loads];
  return tile;
}

Tensor by_threads(Schedule& s, const Tensor& t, const RowTile& tile) {
  if (s.refused()) return {};
  const int64_t covered = tile.threads * tile.vector;
  const Tensor chunks = s.pack(t, {{0}, {1, covered}, {1, covered, true}});
  const Tensor laid = s.pack(chunks, {{0}, {1}, {2, tile.vector}, {2, tile.vector, true}});
  s.inline_compute(chunks);
  if (!s.refused() && t.buffer->role == BufferRole::kIntermediate) s.inline_compute(t);
  return laid;
}

Tensor sums_of_threads(Schedule& s, const Tensor& total, const RowTile& tile) {
  const auto [column] = s.reduce_axes<1>(total);
  const auto [chunk, in_chunk] = s.split(column, tile.threads * tile.vector);
  const auto [thread, lane] = s.split(in_chunk, tile.vector);
  return s.rfactor(total, thread);
}

Axis place_rows(Schedule& s, const Axis& rows, const RowTile& tile) {
  const auto [block, row] = s.split(rows, tile.rows);
  s.bind(block, LoopKind::kBlockX);
  s.bind(row, LoopKind::kThreadY);
  return row;
}

void place_columns(Schedule& s, const Tensor& out, const Axis& row, const Axis& columns, const Tensor& data,
                   const RowTile& tile) {
  const auto [chunk, in_chunk] = s.split(columns, tile.threads * tile.vector);
  const auto [thread, lane] = s.split(in_chunk, tile.vector);
  const auto [step, load] = s.split(chunk, tile.loads);
  s.reorder({row, step, thread, load, lane});
  s.bind(thread, LoopKind::kThreadX);
  s.unroll(load);
  if (tile.vector > 1) s.vectorize(lane);
  read_ahead(s, data, out, thread, tile);
}

void compute_total(Schedule& s, const Tensor& total, const Tensor& sums, const Tensor& data, const Axis& row,
                   const RowTile& tile) {
  s.set_scope(total, MemoryScope::kRegister);
  s.compute_at(total, row);
  const auto [thread] = s.reduce_axes<1>(total);
  s.bind(thread, LoopKind::kThreadX);

  s.set_scope(sums, MemoryScope::kRegister);
  s.compute_at(sums, row);
  const std::vector<Axis> own = s.spatial_axes(sums);  // thread, row
  const auto [chunk, lane] = s.reduce_axes<2>(sums);
  const auto [step, load] = s.split(chunk, tile.loads);
  if (s.refused()) return;
  s.decompose_reduction(sums, step);
  s.bind(own.front(), LoopKind::kThreadX);
  s.unroll(load);
  s.unroll(lane);
  read_ahead(s, data, sums, step, tile);
}

void compute_in_row(Schedule& s, const Tensor& t, const Axis& row) {
  s.set_scope(t, MemoryScope::kRegister);
  s.compute_at(t, row);
}

void keep_row(Schedule& s, const Tensor& data, const Axis& row, const RowTile& tile) {
  if (tile.kept == RowKept::kNowhere) return s.inline_compute(data);
  const bool shared = tile.kept == RowKept::kShared;
  s.set_scope(data, shared ? MemoryScope::kShared : MemoryScope::kRegister);
  s.compute_at(data, row);
  if (s.refused()) return;
  const std::vector<Axis> axes = s.spatial_axes(data);  // row (of the block, if shared), chunk, thread, lane
  const auto [step, load] = s.split(axes[1], shared ? tile.loads : tile.chunks);
  s.reorder({axes[2], step, load, axes[3]});
  if (shared) s.bind(axes[0], LoopKind::kThreadY);
  s.bind(axes[2], LoopKind::kThreadX);
  unroll_copy(s, load, axes[3], tile.vector);
}

}  // namespace tuner::cuda
