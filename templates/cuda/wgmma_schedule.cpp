#include "templates/cuda/wgmma_schedule.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"

namespace tuner::cuda {
namespace {

using Tile = MmaTile;
using Knobs = WgmmaKnobs;

constexpr int64_t kGroup = 128;  // threads of a warpgroup
constexpr int64_t kPiece = 64;   // rows of its sums, and both sides of a piece of an operand
constexpr int64_t kPadSums = 8;  // behind a row of the sums in shared memory: four rows meet different banks
constexpr int64_t kMaxBlock = 256, kMostGroups = 4;
constexpr int64_t kMostCopies = 16;     // of one thread under way for a step, for each operand; not of TMA
constexpr int64_t kBarrierBytes = 128;  // of shared memory, for those that copies by TMA arrive at
// Registers of a thread beside its sums: addresses of copies, descriptors, counters.
constexpr int64_t kBesideSums = 32;
constexpr const char* kSwizzle = "xor:8,8";  // 128 bytes: 8 units of 16 bytes, by row % 8

// A default config.
struct Shape {
  int64_t groups_m, columns;
  double efficiency;  // of the tensor cores, against the best of these on a GPU full of them

  int64_t block_m() const { return groups_m * kPiece; }
  int64_t threads() const { return groups_m * kGroup; }
};
constexpr Shape kShapes[] = {
    {2, 256, 1.00},  // 128 x 256
    {2, 192, 0.95},  // 128 x 192
    {2, 128, 0.90},  // 128 x 128
    {1, 256, 0.75},  // 64 x 256
    {1, 128, 0.65},  // 64 x 128
    {2, 64, 0.60},   // 128 x 64
    {1, 64, 0.45},   // 64 x 64
};

int64_t bytes_of_stage(const Shape& s) { return (s.block_m() + s.columns) * kPiece * 2; }
int64_t bytes_of_sums(const Shape& s) { return s.block_m() * (s.columns + kPadSums) * 4; }
// A block reaches beyond out by less than itself, as far as a tile can be that small.
bool fits(int64_t block, int64_t extent) { return block < std::max<int64_t>(2 * extent, 2 * kPiece); }

// Stages of a default config: as many as there is room for, since each step waits for copies that take
// microseconds.
int64_t stages_of(const Shape& s, int64_t part, const Target& t) {
  return std::clamp<int64_t>(t.shared_bytes_per_block / bytes_of_stage(s), 2, std::min<int64_t>(8, part + 1));
}

bool is_possible(const Shape& s, const MmaProduct& w, const Target& t) {
  const int64_t copied = s.threads() * kMostCopies;
  const bool copies = serves_tma(w) || (s.block_m() * kPiece <= copied * w.vector_a &&
                                        s.columns * kPiece <= copied * w.vector_b);
  return fits(s.block_m(), w.m) && fits(s.columns, w.n) && copies &&
         std::max(bytes_of_sums(s), 2 * bytes_of_stage(s)) <= t.shared_bytes_per_block;
}

// In instructions of 64 x 8 x 16 that a multiprocessor does meanwhile, of 4 clocks: a second kernel, about
// 1.2 us; from the begin of a copy until what it brings is there for all threads (on an H200 a step of 64 x
// 64 took 780 clocks with copies by threads two steps ahead; of TMA some 800 clocks are read of); and while a
// multiprocessor moves 4 bytes to or from memory.
constexpr double kLaunchCost = 600, kCopyCost = 400, kTmaCost = 200, kBytesCost = 0.1;

double cost_of(const Shape& s, int64_t splits, int64_t part, const MmaProduct& w, const Target& t) {
  const int64_t tiles = w.batch * ceil_div(w.m, s.block_m()) * ceil_div(w.n, s.columns);
  const int64_t stages = stages_of(s, part, t), waves = ceil_div(tiles * splits, kMultiprocessors);
  const int64_t at_once = std::clamp<int64_t>(t.shared_bytes_per_sm / (stages * bytes_of_stage(s)), 1, 4);
  const int64_t products = s.groups_m * (s.columns / 8) * (kPiece / 16);
  const double steps = static_cast<double>(part + 6);
  const bool tma = serves_tma(w);
  const double ahead = static_cast<double>(std::max<int64_t>(stages - (tma ? 1 : 2), 1));
  const double cost =
      std::max(static_cast<double>(waves * products) * steps / s.efficiency,
               static_cast<double>(ceil_div(waves, at_once)) * steps * (tma ? kTmaCost : kCopyCost) / ahead);
  if (splits == 1) return cost;
  return cost + kLaunchCost +
         kBytesCost * static_cast<double>(w.batch * w.m * w.n * (2 * splits + 1)) / kMultiprocessors;
}

std::pair<Shape, int64_t> first_shape(const MmaProduct& w, const Target& t) {
  std::pair<Shape, int64_t> best{kShapes[std::size(kShapes) - 1], 1};
  double best_cost = 1e300;
  for (const Shape& shape : kShapes) {
    if (!is_possible(shape, w, t)) continue;
    for (const int64_t splits : kParts) {
      const int64_t steps = ceil_div(w.k, kPiece), part = ceil_div(steps, splits);
      if (ceil_div(steps, part) != splits || (w.most_terms() > 0 && part * kPiece > w.most_terms())) continue;
      if (const double cost = cost_of(shape, splits, part, w, t); cost < best_cost) {
        best_cost = cost;
        best = {shape, splits};
      }
    }
  }
  return best;
}

void constrain(ConfigSpace& space, const MmaProduct& w, const Target& t, const Knobs& k) {
  const IntExpr groups = k.groups_m * k.groups_n, threads = groups * kGroup;
  const IntExpr block_m = k.groups_m * kPiece, block_n = k.groups_n * k.columns, block_k = k.steps * kPiece;
  space.require(groups <= kMostGroups);
  space.require(block_n <= kMaxBlock);
  space.require(block_m < std::max<int64_t>(2 * w.m, 2 * kPiece));
  space.require(block_n < std::max<int64_t>(2 * w.n, 2 * kPiece));
  space.require(block_k <= round_up(w.k, kPiece));
  space.require(k.columns / 2 + kBesideSums <= register_limit(t, threads, k.min_blocks));
  // The sums lie on the tiles, which are done with by then.
  const IntExpr of_tiles =
      (block_m + block_n) * block_k * (w.element_bytes() * k.stages) + k.tma * kBarrierBytes;
  const IntExpr of_sums = block_m * (block_n + kPadSums) * 4;
  for (const IntExpr& bytes : {of_tiles, of_sums})
    space.require((bytes + t.shared_bytes_reserved) * k.min_blocks <=
                  std::min(t.shared_bytes_per_block + t.shared_bytes_reserved, t.shared_bytes_per_sm));
  for (const auto& [block, vector] : {std::pair(block_m, w.vector_a), std::pair(block_n, w.vector_b)})
    space.require(k.tma || block * block_k <= threads * (kMostCopies * vector));
  if (!serves_tma(w)) space.require(!k.tma);
  // Each part has steps to do, as many as there are stages, and one spelling for each number of parts.
  const IntExpr steps = ceil_div(w.k, block_k), part = ceil_div(steps, k.split_k);
  space.require(ceil_div(steps, part) == k.split_k);
  if (w.most_terms() > 0) space.require(part * block_k <= w.most_terms());
  space.require(k.stages <= part + 1);
  // Threads do not copy to the stage that products still read.
  space.require(!k.overlap || ((k.tma || k.stages >= 3) && part > 1));
  space.require(k.group_m == 1 || k.group_m <= ceil_div(w.m, block_m));
}

// The sums of a warpgroup, out of fragments into the block's shared tile. Returns the fragments.
Tensor hold_sums(Schedule& s, const Tensor& acc, const Knobs& k, const Config& c) {
  const Tensor sums = s.cache_write(acc, MemoryScope::kFragment);
  if (s.refused()) return sums;
  const std::vector<Axis> spatial = s.spatial_axes(acc);
  const auto [group_i, row] = s.split(spatial[spatial.size() - 2], kPiece);
  const auto [group_j, j_in_group] = s.split(spatial.back(), c[k.columns]);
  const auto [across, column] = s.split(j_in_group, 8);
  s.reorder({group_i, group_j, across, row, column});
  const Axis group = s.rename(s.fuse({group_i, group_j}), "warpgroup");
  s.bind(group, LoopKind::kThreadY);
  s.compute_at(sums, group);
  s.unroll(s.rename(across, "across"));
  s.tensorize(row, "wgmma.store");
  s.set_layout(acc, str("pad:", kPadSums));
  return sums;
}

}  // namespace

bool serves_wgmma(const MmaProduct& w) { return std::min(w.vector_a, w.vector_b) * w.element_bytes() >= 4; }
bool serves_tma(const MmaProduct& w) { return std::min(w.vector_a, w.vector_b) * w.element_bytes() >= 16; }

WgmmaKnobs declare_wgmma(ConfigSpace& space, const MmaProduct& w, const Target& t) {
  const auto [first, splits] = first_shape(w, t);
  const int64_t part = ceil_div(ceil_div(w.k, kPiece), splits);
  const int64_t stages = stages_of(first, part, t);
  const bool wide = ceil_div(w.m, first.block_m()) >= 8 && ceil_div(w.n, first.columns) >= 8;
  Knobs k{
      // Warpgroups of a block, below and beside each other. Two take turns at the tensor cores while one
      // waits; more share each tile.
      .groups_m = space.choice("groups_m", {1, 2, 3, 4}).try_first(first.groups_m),
      .groups_n = space.choice("groups_n", {1, 2}).try_first(1),
      // Columns of an instruction: the more, the less often operands are fetched; against registers and
      // multiprocessors that idle.
      .columns = space.choice("columns", {64, 128, 192, 256}).try_first(first.columns),
      // Terms between two barriers, in pieces of 64, against shared memory.
      .steps = space.choice("steps", {1, 2}).try_first(1),
      // Steps that are in shared memory at once, most of them on their way: what hides the latency of memory.
      .stages = space.choice("stages", {2, 3, 4, 5, 6, 7, 8}).try_first(stages),
      // Products of a step run on while the next one begins, so that the tensor cores do not wait for
      // barriers and copies; against a stage that is not copied to meanwhile.
      .overlap = space.flag("overlap").try_first(stages >= 3 && part > 1),
      // One thread asks the device for a step's tiles, in place of all threads copying them: no addresses, no
      // guards. Rows in memory must be a multiple of 16 bytes.
      .tma = space.flag("tma").try_first(serves_tma(w)),
      // Parts of k in blocks of their own: more blocks where out is small, for a second pass over it.
      .split_k = space.choice("split_k", kParts).try_first(splits),
      // Rows of blocks that are done together, column by column: what they read stays in L2.
      .group_m = space.choice("group_m", {1, 2, 4, 8, 16}).try_first(wide ? 8 : 1),
      // Blocks that should fit a multiprocessor: bounds the registers of a thread.
      .min_blocks = space.choice("min_blocks", {1, 2, 3, 4}).try_first(1),
  };
  constrain(space, w, t, k);
  return k;
}

MmaTile wgmma_tile(const MmaProduct& w, const WgmmaKnobs& k, const Config& c) {
  Tile tile{};
  tile.warps = c[k.groups_m] * c[k.groups_n] * (kGroup / kWarp);
  tile.block_m = c[k.groups_m] * kPiece;
  tile.block_n = c[k.groups_n] * c[k.columns];
  tile.block_k = c[k.steps] * kPiece;
  tile.splits = c[k.split_k];
  tile.chunk = ceil_div(ceil_div(w.k, tile.block_k), tile.splits) * tile.block_k;
  return tile;
}

Tensor pack_wgmma_operand(Schedule& s, const Tensor& operand, const std::vector<int>& others, int line,
                          int64_t block, int k, const MmaTile& tile, bool along_k) {
  std::vector<PackDim> dims;
  for (const int other : others) dims.push_back({other});
  dims.push_back({k, kPiece, false, tile.chunk / kPiece});
  dims.push_back({line, kPiece, false, block / kPiece});
  dims.push_back({along_k ? line : k, kPiece, true});
  dims.push_back({along_k ? k : line, kPiece, true});
  return s.pack(operand, dims);
}

void schedule_wgmma(Schedule& s, const MmaProduct& w, const WgmmaKnobs& k, const Config& c,
                    const MmaStages& stages) {
  if (s.refused()) return;
  const Tile tile = wgmma_tile(w, k, c);
  const ThreadGrid threads{.lanes = kGroup, .groups = c[k.groups_m] * c[k.groups_n]};
  const Axis sum = s.reduce_axis_list(stages.acc).front();
  s.pad_reduction(sum, tile.chunk);
  const auto [acc, axes] = split_sums(s, stages.acc, sum, tile.chunk, tile.splits, MemoryScope::kShared,
                                      stages.out, w.n, w.vector_out);
  place_block(s, axes, acc, block_shape(w, tile, c[k.group_m]), threads);
  const Tensor sums = hold_sums(s, acc, k, c);
  const Tensor a = shared_tile(s, stages.a, stages.packed_a, sums),
               b = shared_tile(s, stages.b, stages.packed_b, sums);

  const std::vector<Axis> spatial = s.spatial_axes(sums);
  const std::vector<Axis> terms = s.reduce_axis_list(sums);
  if (s.refused()) return;
  const auto [k_blocks, k_in_block] = s.split(terms.front(), tile.block_k);
  const Axis k_outer = s.rename(k_blocks, "k_tile");
  const auto [k_steps, k_in_piece] = s.split(k_in_block, kPiece);
  const Axis k_step = s.rename(k_steps, "k_step");
  const Axis& row = spatial[spatial.size() - 2];
  const auto [piece, column] = s.split(spatial.back(), kPiece);
  s.reorder({k_outer, k_step, row, piece, column, k_in_piece});
  s.decompose_reduction(sums, k_outer);
  s.compute_at(a, k_outer);
  s.compute_at(b, k_outer);
  s.unroll(k_step);
  s.tensorize(row, str("wgmma.", dtype_name(w.a_type), ".", c[k.columns], w.a_along_k ? ".mk" : ".km",
                       w.b_along_k ? ".nk" : ".kn"));
  const Tensor both[] = {a, b};
  if (c[k.tma]) {
    // Constants lie in memory as in the tile: no tensor maps.
    if (stages.packed_a) s.set_layout(stages.a, kSwizzle);
    if (stages.packed_b) s.set_layout(stages.b, kSwizzle);
    for (const Tensor& shared : both) {
      s.set_layout(shared, kSwizzle);
      s.copy_by_tma(shared);
    }
  } else {
    share_tile(s, a, threads, w.vector_a);
    share_tile(s, b, threads, w.vector_b);
  }
  if (c[k.overlap])
    s.pipeline_products(both, k_outer, c[k.stages]);
  else
    s.pipeline(both, k_outer, c[k.stages]);
  for (const Tensor& shared : both)
    if (!c[k.tma]) s.set_layout(shared, kSwizzle);
  if (c[k.min_blocks] > 1) s.launch_bounds(static_cast<int>(c[k.min_blocks]));
}

}  // namespace tuner::cuda
