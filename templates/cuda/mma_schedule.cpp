#include "templates/cuda/mma_schedule.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler_core/base/int_math.h"

namespace tuner::cuda {
namespace {

using Tile = MmaTile;
using Knobs = MmaKnobs;

constexpr int64_t kRows = 16, kColumns = 8;  // of one mma.sync
constexpr int64_t kPadSums = 8;  // behind a row of the sums in shared memory: four rows meet different banks
constexpr int64_t kMaxProducts = 512;  // mma.sync of one unrolled body
constexpr int64_t kMaxBlock = 256;
constexpr int64_t kMostRegisters = 255;  // of a thread
constexpr int64_t kLeastShared = 4096;   // bytes of a shared buffer that may lie on another
// Copies that one thread has under way for a step: each needs an address.
constexpr int64_t kMostCopies = 16;

// A default config.
struct Shape {
  int64_t warps_m, warps_n, tiles_m, tiles_n;
  int64_t block_k;    // of 16-bit types: 64 bytes are 32
  double efficiency;  // of the tensor cores, against the best of these on a GPU full of them

  int64_t block_m() const { return warps_m * tiles_m * kRows; }
  int64_t block_n() const { return warps_n * tiles_n * kColumns; }
};
// The larger the tile of a warp, the more products a matrix that is loaded serves.
constexpr Shape kShapes[] = {
    {2, 2, 4, 8, 32, 1.00},  // 128 x 128
    {2, 4, 4, 4, 32, 0.90},  // 128 x 128, eight warps
    {2, 2, 4, 4, 32, 0.85},  // 128 x 64
    {2, 2, 2, 8, 32, 0.85},  // 64 x 128
    {2, 2, 2, 4, 32, 0.70},  // 64 x 64
    {2, 2, 1, 4, 32, 0.50},  // 32 x 64
    {2, 2, 2, 2, 32, 0.50},  // 64 x 32
    {1, 4, 1, 4, 32, 0.45},  // 16 x 128
    {1, 4, 1, 2, 32, 0.35},  // 16 x 64
    {4, 1, 1, 2, 32, 0.35},  // 64 x 16
    {2, 2, 1, 2, 32, 0.35},  // 32 x 32
    {1, 2, 1, 2, 32, 0.20},  // 16 x 32
    {2, 1, 1, 2, 32, 0.20},  // 32 x 16
    {1, 1, 1, 2, 16, 0.10},  // 16 x 16
};
// A block reaches beyond out by less than itself, as far as a tile can be that small.
bool fits(int64_t block, int64_t extent) { return block < std::max<int64_t>(2 * extent, 2 * kRows); }

// Copies can be asynchronous: no instruction moves less than four bytes.
bool is_async(const MmaProduct& w) { return std::min(w.vector_a, w.vector_b) * w.element_bytes() >= 4; }

// In products of 16 x 8 x 16 that a multiprocessor does meanwhile: a second kernel, about 1.2 us; and a step
// of a block that is alone there, whose barrier, matrices and products wait for each other, about 240 clocks.
// (On sm_90 a convolution of 72 steps, one block a multiprocessor, took 8.6 us; cut into 6 and added up, 5.)
constexpr double kLaunchCost = 1'400, kStepCost = 140;

// Bytes of shared memory: the sums; one stage of both operands.
int64_t bytes_of_sums(const Shape& s) { return s.block_m() * (s.block_n() + kPadSums) * 4; }
int64_t terms_of(const Shape& s, const MmaProduct& w) {
  return std::max<int64_t>(s.block_k * 2 / w.element_bytes(), s.block_k);
}
int64_t bytes_of_stage(const Shape& s, const MmaProduct& w) {
  return (s.block_m() + s.block_n()) * terms_of(s, w) * w.element_bytes();
}

// Registers of the fragments of one step.
template <class Int>
Int registers_of_step(const Int& tiles_m, const Int& tiles_n) {
  return tiles_m * 4 + tiles_n * 2;
}

// Registers of a thread that holds sums and the fragments of a step. Of three terms each number is two, and
// the many addresses of copies count, too.
template <class Int>
Int registers_of(const MmaProduct& w, const Int& tiles_m, const Int& tiles_n, const Int& copies) {
  const Int all = tiles_m * tiles_n * 4 + kOtherRegisters;
  if (w.tf32_terms == 0) return all + registers_of_step(tiles_m, tiles_n);
  const int64_t halves = w.tf32_terms == 3 ? 2 : 1;
  return all + tiles_m * (8 * halves) + tiles_n * (4 * halves) + copies * 3 / 2;
}

int64_t copies_of(const Shape& s, const MmaProduct& w) {
  return (s.block_m() + s.block_n()) * terms_of(s, w) /
         (s.warps_m * s.warps_n * kWarp * std::min(w.vector_a, w.vector_b));
}

bool is_possible(const Shape& s, const MmaProduct& w, const Target& t) {
  const int64_t threads = s.warps_m * s.warps_n * kWarp, copied = threads * kMostCopies;
  const int64_t copies = copies_of(s, w);
  return registers_of(w, s.tiles_m, s.tiles_n, copies) <= kMostRegisters && fits(s.block_m(), w.m) &&
         fits(s.block_n(), w.n) && terms_of(s, w) <= round_up(w.k, w.depth()) &&
         s.block_m() * terms_of(s, w) <= copied * w.vector_a &&
         s.block_n() * terms_of(s, w) <= copied * w.vector_b &&
         std::max(bytes_of_sums(s), (is_async(w) ? 2 : 1) * bytes_of_stage(s, w)) + kLeastShared <=
             t.shared_bytes_per_block;
}

// Blocks that a multiprocessor holds, by registers and by four stages of shared memory.
int64_t blocks_at_once(const Shape& s, const MmaProduct& w, const Target& t) {
  constexpr int64_t kRegistersOfFile = 65536, kMostBlocks = 8, kStages = 4;
  const int64_t threads = s.warps_m * s.warps_n * kWarp;
  const int64_t by_registers =
      kRegistersOfFile / (threads * registers_of(w, s.tiles_m, s.tiles_n, copies_of(s, w)));
  const int64_t by_shared =
      t.shared_bytes_per_sm / std::max(bytes_of_sums(s), kStages * bytes_of_stage(s, w));
  return std::clamp<int64_t>(std::min(by_registers, by_shared), 1, kMostBlocks);
}

std::pair<Shape, int64_t> first_shape(const MmaProduct& w, const Target& t) {
  constexpr double kBytesCost = 0.5;  // such products, while a multiprocessor moves 4 bytes
  std::pair<Shape, int64_t> best{kShapes[std::size(kShapes) - 1], 1};
  double best_cost = 1e300;
  for (const Shape& shape : kShapes) {
    if (!is_possible(shape, w, t)) continue;
    const int64_t tiles = w.batch * ceil_div(w.m, shape.block_m()) * ceil_div(w.n, shape.block_n());
    for (const int64_t splits : kParts) {
      const int64_t steps = ceil_div(w.k, terms_of(shape, w)), part = ceil_div(steps, splits);
      if (ceil_div(steps, part) != splits) continue;
      if (w.most_terms() > 0 && part * terms_of(shape, w) > w.most_terms()) continue;
      const int64_t waves = ceil_div(tiles * splits, kMultiprocessors);
      const int64_t products =
          shape.block_m() / kRows * (shape.block_n() / kColumns) * (terms_of(shape, w) / w.depth());
      const auto work = static_cast<double>(products * (part + 6) * w.weight());
      const int64_t turns = ceil_div(waves, blocks_at_once(shape, w, t));
      double cost = std::max(static_cast<double>(waves) * work / shape.efficiency,
                             static_cast<double>(turns * (part + 6)) * kStepCost);
      if (splits > 1)
        cost += kBytesCost * static_cast<double>(w.batch * w.m * w.n * (2 * splits + 1)) / kMultiprocessors +
                kLaunchCost;
      if (cost < best_cost) {
        best_cost = cost;
        best = {shape, splits};
      }
    }
  }
  return best;
}

// Stages of the default config: a number that divides the steps of a part, if there is one, so that all of
// them are one iteration.
int64_t first_stages(const MmaProduct& w, int64_t part, int64_t room) {
  const int64_t most =
      is_async(w) ? std::min<int64_t>({4, room, part + 1}) : std::min<int64_t>({2, room, part});
  for (int64_t stages = most; stages > 2; --stages)
    if (part % stages == 0) return stages;
  return std::max<int64_t>(most, is_async(w) ? 2 : 1);
}

// Whether the default config has room for the fragments of two steps.
bool is_ahead(const Shape& s, const MmaProduct& w, int64_t part) {
  const int64_t registers =
      registers_of(w, s.tiles_m, s.tiles_n, copies_of(s, w)) + registers_of_step(s.tiles_m, s.tiles_n);
  // Of three terms each number is two, and compilers spill where the second set would just fit.
  return is_async(w) && w.tf32_terms < 3 && terms_of(s, w) > w.depth() && part > 1 &&
         registers <= kMostRegisters;
}

constexpr int64_t kXor = 0;  // positions in kLayouts
const std::vector<std::string> kLayouts = {"xor", "pad"};

// The units of a row in another order from row to row, so that those of one column in as many rows as meet
// all banks lie in different ones; or a unit behind each row.
std::string layout_text(int64_t layout, int64_t row, int64_t unit, int64_t bytes) {
  if (layout != kXor) return str("pad:", unit);
  const int64_t units = row / unit, all = 128 / (unit * bytes);
  const int64_t rows = std::min<int64_t>(int64_t{1} << std::countr_zero(static_cast<uint64_t>(units)), all);
  return str("xor:", unit, ",", rows, ",", all / rows);
}

// Four products for two matrices that are loaded: below that, shared memory is the slower one (a
// multiprocessor reads a matrix of 512 bytes in four cycles, and does a product in two).
template <class Number>
auto feeds_products(const Number& tiles_m, const Number& tiles_n) {
  return tiles_m * 2 + tiles_n <= tiles_m * tiles_n;
}

// Whether there is work for all schedulers of all multiprocessors, in tiles of 64 x 32. On an H200 the
// fastest configs of 7 of 18 NHWC convolutions with fewer elements than that have one or two warps, of 28
// with more only one has (3 % ahead).
bool fills_schedulers(const MmaProduct& w, const Shape& first) {
  return w.batch * w.m * w.n >= kMultiprocessors * 64 * 32 &&
         first.warps_m * first.warps_n % kSchedulers == 0;
}
// Whether there is that work in tiles that keep the tensor cores busy, too.
bool is_large(const MmaProduct& w, const Shape& first) {
  return w.batch * w.m * w.n >= kManyElements && fills_schedulers(w, first) &&
         feeds_products(first.tiles_m, first.tiles_n);
}

void constrain(ConfigSpace& space, const MmaProduct& w, const Target& t, const Knobs& k) {
  const IntExpr warps = k.warps_m * k.warps_n, threads = warps * kWarp;
  const IntExpr block_m = k.warps_m * k.tiles_m * kRows, block_n = k.warps_n * k.tiles_n * kColumns;
  space.require(warps <= 16);
  space.require(block_m <= kMaxBlock);
  space.require(block_n <= kMaxBlock);
  space.require(block_m < std::max<int64_t>(2 * w.m, 2 * kRows));
  space.require(block_n < std::max<int64_t>(2 * w.n, 2 * kRows));
  space.require(k.block_k <= round_up(w.k, w.depth()));
  // Sums, the fragments of one step, what is loaded on its way through registers, and the rest.
  const IntExpr copied = (block_m + block_n) * k.block_k;
  const IntExpr staged = is_async(w) ? IntExpr(0) : (k.stages - 1) * copied / threads;
  const IntExpr copies = copied / (threads * std::min(w.vector_a, w.vector_b));
  const IntExpr loaded_ahead = k.ahead * registers_of_step<IntExpr>(k.tiles_m, k.tiles_n);
  space.require(registers_of<IntExpr>(w, k.tiles_m, k.tiles_n, copies) + staged + loaded_ahead <=
                register_limit(t, threads, k.min_blocks));
  // Each row of a tile may be padded by a unit.
  const auto padded = [&](const CategoryKnob& layout, bool along_k, const IntExpr& block) {
    return block * k.block_k + layout * w.unit(along_k) * (along_k ? block : IntExpr(k.block_k));
  };
  const IntExpr tiles = padded(k.layout_a, w.a_along_k, block_m) + padded(k.layout_b, w.b_along_k, block_n);
  // The sums lie on the tiles, which are done with by then; small ones have bytes of their own
  // (lower/gpu_shared.cpp).
  const IntExpr sums = block_m * (block_n + kPadSums) * 4, of_tiles = tiles * w.element_bytes() * k.stages;
  for (const IntExpr& bytes : {of_tiles + min(sums, kLeastShared), sums + min(of_tiles, kLeastShared)}) {
    space.require((bytes + t.shared_bytes_reserved) * k.min_blocks <=
                  std::min(t.shared_bytes_per_block + t.shared_bytes_reserved, t.shared_bytes_per_sm));
  }
  space.require(k.tiles_m * k.tiles_n * (k.block_k / w.depth()) * (k.unroll_stages * (k.stages - 1) + 1) *
                    w.weight() <=
                kMaxProducts);
  // No thread without a vector to copy, none with too many.
  for (const auto& [block, vector] : {std::pair(block_m, w.vector_a), std::pair(block_n, w.vector_b)}) {
    space.require(block * k.block_k <= threads * (kMostCopies * vector));
    space.require(warps == 1 || threads * vector <= block * k.block_k * 2);
  }
  // Each part has steps to do, as many as there are stages, and one spelling for each number of parts.
  const IntExpr steps = ceil_div(w.k, k.block_k), part = ceil_div(steps, k.split_k);
  space.require(ceil_div(steps, part) == k.split_k);
  if (w.most_terms() > 0) space.require(part * k.block_k <= w.most_terms());
  space.require(k.stages <= part + (is_async(w) ? 1 : 0));
  space.require(!k.unroll_stages || (k.stages > 1 && part % k.stages == 0));
  // Two sets of fragments take turns, in a loop that waits for copies.
  if (!is_async(w)) space.require(!k.ahead);
  space.require(!k.ahead || (k.block_k > w.depth() && part > 1));
  space.require(k.group_m == 1 || k.group_m <= ceil_div(w.m, block_m));
}

// "bfloat16", "uint8.int8", "tf32x3".
std::string product_types(const MmaProduct& w) {
  if (w.tf32_terms > 0) return w.tf32_terms == 1 ? "tf32" : str("tf32x", w.tf32_terms);
  const std::string a(dtype_name(w.a_type)), b(dtype_name(w.b_type));
  return a == b ? a : str(a, ".", b);
}

// What loads an operand's fragments.
std::string load_of(const MmaProduct& w, DType type, bool along_k) {
  return str(w.tf32_terms > 0 && !along_k ? "mma.load." : "ldmatrix.", dtype_name(type));
}

// Both last axes of `t`, a copy, in tiles of an intrinsic.
void move_tiles(Schedule& s, const Tensor& t, int64_t rows, int64_t columns, const std::string& by) {
  if (s.refused()) return;
  const std::vector<Axis> axes = s.spatial_axes(t);
  const auto [down, row] = s.split(axes[axes.size() - 2], rows);
  const auto [across, column] = s.split(axes.back(), columns);
  s.reorder({down, across, row, column});
  s.unroll(s.rename(down, "down"));
  s.unroll(s.rename(across, "across"));
  s.tensorize(row, by);
}

// The sums of a warp, out of fragments into the block's shared tile. Returns the fragments.
Tensor hold_sums(Schedule& s, const Tensor& acc, DType type, const Tile& tile, const Knobs& k,
                 const Config& c) {
  const Tensor sums = s.cache_write(acc, MemoryScope::kFragment);
  if (s.refused()) return sums;
  const std::vector<Axis> spatial = s.spatial_axes(acc);
  const auto [warp_i, i_in_warp] = s.split(spatial[spatial.size() - 2], tile.block_m / c[k.warps_m]);
  const auto [warp_j, j_in_warp] = s.split(spatial.back(), tile.block_n / c[k.warps_n]);
  const auto [down, row] = s.split(i_in_warp, kRows);
  const auto [across, column] = s.split(j_in_warp, kColumns);
  s.reorder({warp_i, warp_j, down, across, row, column});
  const Axis warp = s.rename(s.fuse({warp_i, warp_j}), "warp");
  s.bind(warp, LoopKind::kThreadY);
  s.compute_at(sums, warp);
  s.unroll(down);
  s.unroll(across);
  s.tensorize(row, type == DType::kFloat32 ? "mma.store" : str("mma.store.", dtype_name(type)));
  s.set_layout(acc, str("pad:", kPadSums));
  return sums;
}

}  // namespace

MmaKnobs declare_mma(ConfigSpace& space, const MmaProduct& w, const Target& t) {
  const auto [first, splits] = first_shape(w, t);
  const int64_t part = ceil_div(ceil_div(w.k, terms_of(first, w)), splits);
  const int64_t room = (t.shared_bytes_per_block - kLeastShared) / bytes_of_stage(first, w);
  const int64_t stages = first_stages(w, part, room);
  const bool wide = ceil_div(w.m, first.block_m()) >= 8 && ceil_div(w.n, first.block_n()) >= 8;
  const bool ahead = is_ahead(first, w, part);
  const std::vector<int64_t> of_stages =
      is_async(w) ? std::vector<int64_t>{2, 3, 4, 5, 6} : std::vector<int64_t>{1, 2};
  Knobs k{
      // Warps of a block. More warps share each tile; too many leave no registers.
      .warps_m = space.choice("warps_m", {1, 2, 4, 8}).try_first(first.warps_m),
      .warps_n = space.choice("warps_n", {1, 2, 4, 8}).try_first(first.warps_n),
      // Tiles of 16 x 8 sums of a warp: the more, the more products a matrix that is loaded serves; too many
      // spill.
      .tiles_m = space.choice("tiles_m", {1, 2, 3, 4, 6, 8}).try_first(first.tiles_m),
      .tiles_n = space.choice("tiles_n", {2, 4, 6, 8, 12, 16}).try_first(first.tiles_n),
      // Terms between two barriers, against shared memory.
      .block_k = space.choice("block_k", {w.depth(), 2 * w.depth(), 4 * w.depth(), 8 * w.depth()})
                     .try_first(terms_of(first, w)),
      // Steps that are in shared memory at once, most of them on their way: what hides the latency of memory,
      // against shared memory. Rows of odd length are copied by way of registers, one step ahead at most.
      .stages = space.choice("stages", of_stages).try_first(stages),
      // All stages in one iteration of the loop, so that their addresses are constants.
      .unroll_stages = space.flag("unroll_stages")
                           .try_first(stages > 1 && part % stages == 0 && w.tf32_terms == 0 && !ahead),
      // The fragments of the next step are loaded while the products of this one run, over the barrier, too;
      // against registers.
      .ahead = space.flag("ahead").try_first(ahead),
      // How the shared tiles lie, against bank conflicts of the loads of matrices.
      .layout_a = space.category("layout_a", kLayouts).try_first(kLayouts[kXor]),
      .layout_b = space.category("layout_b", kLayouts).try_first(kLayouts[kXor]),
      // Parts of k in blocks of their own: more blocks where out is small, for a second pass over it.
      .split_k = space.choice("split_k", kParts).try_first(splits),
      // Rows of blocks that are done together, column by column: what they read stays in L2.
      .group_m = space.choice("group_m", {1, 2, 4, 8, 16}).try_first(wide ? 8 : 1),
      // Blocks that should fit a multiprocessor: bounds the registers of a thread.
      .min_blocks = space.choice("min_blocks", {1, 2, 3, 4}).try_first(1),
  };
  constrain(space, w, t, k);
  if (fills_schedulers(w, first)) space.require(k.warps_m * k.warps_n % kSchedulers == 0);
  if (is_large(w, first)) space.require(feeds_products(IntExpr(k.tiles_m), IntExpr(k.tiles_n)));
  return k;
}

BlockShape block_shape(const MmaProduct& w, const MmaTile& tile, int64_t group_m) {
  return {.batch = w.batch,
          .rows = tile.block_m,
          .columns = tile.block_n,
          .group_m = group_m,
          .splits = tile.splits,
          .vector = vector_width({tile.splits > 1 ? w.n : w.vector_out, tile.block_n})};
}

MmaTile mma_tile(const MmaProduct& w, const MmaKnobs& k, const Config& c) {
  Tile tile{};
  tile.warps = c[k.warps_m] * c[k.warps_n];
  tile.block_m = c[k.warps_m] * c[k.tiles_m] * kRows;
  tile.block_n = c[k.warps_n] * c[k.tiles_n] * kColumns;
  tile.block_k = c[k.block_k];
  tile.splits = c[k.split_k];
  tile.chunk = ceil_div(ceil_div(w.k, tile.block_k), tile.splits) * tile.block_k;
  return tile;
}

Tensor pack_mma_operand(Schedule& s, const Tensor& operand, const std::vector<int>& others, int line,
                        int64_t block, int k, const MmaTile& tile, bool along_k) {
  std::vector<PackDim> dims;
  for (const int other : others) dims.push_back({other});
  for (const bool inside : {false, true}) {
    const PackDim lines{line, block, inside},
        terms{k, tile.block_k, inside, inside ? 1 : tile.chunk / tile.block_k};
    dims.push_back(along_k ? lines : terms);
    dims.push_back(along_k ? terms : lines);
  }
  return s.pack(operand, dims);
}

void schedule_mma(Schedule& s, const MmaProduct& w, const MmaKnobs& k, const Config& c,
                  const MmaStages& stages) {
  if (s.refused()) return;
  const Tile tile = mma_tile(w, k, c);
  const Axis sum = s.reduce_axis_list(stages.acc).front();
  s.pad_reduction(sum, tile.chunk);
  const auto [acc, axes] = split_sums(s, stages.acc, sum, tile.chunk, tile.splits, MemoryScope::kShared,
                                      stages.out, w.n, w.vector_out);
  const ThreadGrid threads{.lanes = kWarp, .groups = tile.warps};
  place_block(s, axes, acc, block_shape(w, tile, c[k.group_m]), threads);
  const Tensor sums = hold_sums(s, acc, w.sum_type, tile, k, c);
  const Tensor a = shared_tile(s, stages.a, stages.packed_a, sums),
               b = shared_tile(s, stages.b, stages.packed_b, sums);
  const Tensor a_tiles = s.cache_read(a, MemoryScope::kFragment, sums);
  const Tensor b_tiles = s.cache_read(b, MemoryScope::kFragment, sums);

  const std::vector<Axis> spatial = s.spatial_axes(sums);
  const std::vector<Axis> terms = s.reduce_axis_list(sums);
  if (s.refused()) return;
  const auto [k_blocks, k_in_block] = s.split(terms.front(), tile.block_k);
  const Axis k_outer = s.rename(k_blocks, "k_tile");
  const auto [k_steps, k_in_tile] = s.split(k_in_block, w.depth());
  const Axis k_step = s.rename(k_steps, "k_step");
  const auto [down, row] = s.split(spatial[spatial.size() - 2], kRows);
  const auto [across, column] = s.split(spatial.back(), kColumns);
  s.reorder({k_outer, k_step, down, across, row, column, k_in_tile});
  s.decompose_reduction(sums, k_outer);
  s.compute_at(a_tiles, k_step);
  s.compute_at(b_tiles, k_step);
  s.compute_at(a, k_outer);
  s.compute_at(b, k_outer);
  s.unroll(k_step);
  s.unroll(s.rename(down, "down"));
  s.unroll(s.rename(across, "across"));
  const std::string lines_a = w.a_along_k ? ".mk" : ".km", lines_b = w.b_along_k ? ".nk" : ".kn";
  s.tensorize(row, str("mma.", product_types(w), lines_a, lines_b));
  move_tiles(s, a_tiles, kRows, w.depth(), load_of(w, w.a_type, w.a_along_k) + lines_a);
  const int64_t columns = w.tf32_terms > 0 ? kColumns : 2 * kColumns;
  move_tiles(s, b_tiles, w.b_along_k ? columns : w.depth(), w.b_along_k ? w.depth() : columns,
             load_of(w, w.b_type, w.b_along_k) + lines_b);
  share_tile(s, a, threads, w.vector_a);
  share_tile(s, b, threads, w.vector_b);
  if (is_async(w)) {
    s.pipeline({a, b}, k_outer, c[k.stages]);
    if (c[k.ahead]) s.load_ahead({a_tiles, b_tiles}, k_step);
  } else if (c[k.stages] > 1) {
    s.double_buffer(a, k_outer);
    s.double_buffer(b, k_outer);
  }
  if (c[k.unroll_stages]) s.unroll(s.rename(s.split(k_outer, c[k.stages]).inner, "stage"));
  const auto lay_out = [&](const Tensor& t, const CategoryKnob& layout, bool along_k, int64_t block) {
    if (const std::string text =
            layout_text(c[layout], along_k ? tile.block_k : block, w.unit(along_k), w.element_bytes());
        !text.empty())
      s.set_layout(t, text);
  };
  lay_out(a, k.layout_a, w.a_along_k, tile.block_m);
  lay_out(b, k.layout_b, w.b_along_k, tile.block_n);
  if (c[k.min_blocks] > 1) s.launch_bounds(static_cast<int>(c[k.min_blocks]));
}

}  // namespace tuner::cuda
