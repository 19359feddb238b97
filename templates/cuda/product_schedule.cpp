#include "templates/cuda/product_schedule.h"

#include <algorithm>
#include <numeric>

#include "compiler_core/base/int_math.h"

namespace tuner::cuda {
namespace {

using Tile = ProductTile;
using Knobs = ProductKnobs;

// A default config: warps, lanes, thread tile.
struct Shape {
  int64_t warps_m, warps_n, lanes_m, thread_m, thread_n;
  double efficiency;  // of the multipliers, against the best of these on a GPU full of them

  int64_t block_m() const { return warps_m * lanes_m * thread_m; }
  int64_t block_n() const { return warps_n * (kWarp / lanes_m) * thread_n; }
  // As constrain() wants it.
  bool fits(int64_t m, int64_t n) const {
    const auto strips = [](int64_t block, int64_t thread) { return thread > 4 ? block / thread * 4 : block; };
    return block_m() < std::max<int64_t>(2 * m, kWarp + 1) &&
           block_n() < std::max<int64_t>(2 * n, kWarp + 1) && block_m() - strips(block_m(), thread_m) < m &&
           block_n() - strips(block_n(), thread_n) < n && (m > 1 || (block_m() == 1 && thread_n < n)) &&
           (n > 1 || (block_n() == 1 && thread_m < m));
  }
};
// Smaller thread tiles read more of shared memory for each multiply-add; smaller blocks more of L2.
constexpr Shape kShapes[] = {
    {2, 4, 8, 8, 8, 1.00},   // 128 x 128
    {2, 2, 8, 8, 8, 0.95},   // 128 x 64
    {1, 4, 8, 8, 8, 0.92},   // 64 x 128
    {2, 2, 4, 8, 4, 0.85},   // 64 x 64, four warps
    {2, 4, 8, 4, 4, 0.75},   // 64 x 64
    {1, 4, 8, 4, 4, 0.65},   // 32 x 64
    {1, 4, 8, 4, 2, 0.50},   // 32 x 32
    {1, 4, 4, 4, 4, 0.60},   // 16 x 128
    {1, 4, 4, 4, 2, 0.45},   // 16 x 64
    {2, 2, 8, 2, 2, 0.30},   // 32 x 16
    {4, 1, 16, 4, 4, 0.60},  // 256 x 8
    {1, 4, 1, 8, 4, 0.45},   // 8 x 512
    {1, 4, 1, 4, 4, 0.35},   // 4 x 512
    {1, 4, 1, 4, 1, 0.15},   // 4 x 128
    {1, 4, 1, 1, 4, 0.15},   // 1 x 512: a row
    {4, 1, 32, 2, 1, 0.15},  // 256 x 1: a column
    // Where a block of four warps would have nothing to do.
    {1, 2, 8, 4, 4, 0.30},    // 32 x 32
    {1, 2, 4, 4, 4, 0.30},    // 16 x 64
    {1, 2, 1, 1, 4, 0.10},    // 1 x 256
    {2, 1, 32, 4, 1, 0.10},   // 256 x 1
    {1, 1, 8, 1, 1, 0.005},   // 8 x 4
    {1, 1, 1, 1, 1, 0.005},   // 1 x 32
    {1, 1, 32, 1, 1, 0.005},  // 32 x 1
};
constexpr Shape kOneElement = {1, 1, 1, 1, 1, 1.0};

// Threads of a warp that have work to do at all: one where out is one element.
int64_t warp_of(const Product& w) { return w.m * w.n == 1 ? 1 : kWarp; }

// Tiles that are written transposed meet few banks when their rows lie at multiples of 32 words.
std::vector<std::string> layouts(bool transposed) {
  return transposed ? std::vector<std::string>{"pad", "xor", "plain"} : std::vector<std::string>{"plain"};
}
constexpr int64_t kPad = 0, kXor = 1;  // positions in that list; of a tile that has it
// Steps of k that consecutive threads read of one row when the copy transposes: 32 bytes are what global
// memory delivers at once, and with padded rows the 32 stores of a warp meet 32 banks.
constexpr int64_t kStrip = 8;
// Steps of k between two barriers in a default config: few, so that loads under way take few registers; more
// where the addresses of a step cost more, because its kind has to be found out.
int64_t first_k(const Product& w) {
  return w.steps > 1 && w.k >= 16 && w.m >= kWarp && w.n >= kWarp ? 16 : 8;
}

// Two of what is on its way fit shared memory everywhere: elements that a step copies.
constexpr int64_t kMostCopied = 6144;

// The steps between barriers of a default config with these tiles: twice as many where a thread's tile is
// large and blocks have all of k, for the share of multiply-adds in the loop (90.7 % in place of 87.1 of a
// 3x3 convolution).
int64_t first_block_k(const Product& w, const Shape& shape, int64_t splits) {
  const int64_t twice = 2 * first_k(w);
  return w.steps > 1 && splits == 1 && w.k >= twice && shape.thread_m * shape.thread_n >= 64 &&
                 (shape.block_m() + shape.block_n()) * twice <= kMostCopied
             ? twice
             : first_k(w);
}

// Out is large enough for blocks of as many warps as a multiprocessor has schedulers, whatever its shape.
bool fills_schedulers(const Product& w) { return w.m * w.n >= 4 * kWarp * kSchedulers; }

// Of a default copy that transposes `share` elements a thread: rows of a thread. A run of a thread's operand
// is one of the vectors that are stored.
int64_t first_rows(bool transposed, int64_t share, int64_t block, int64_t thread) {
  return transposed && share % 4 == 0 && block % 4 == 0 && thread % 4 == 0 ? 4 : 1;
}

// Vectors of a copy that keeps the order lie along the tile's rows; and no thread is idle in a whole copy.
void constrain_copy(ConfigSpace& space, const ChoiceKnob& vector, const ChoiceKnob& rows,
                    const IntExpr& block, const IntExpr& block_k, const IntExpr& threads, bool transposed) {
  space.require(block % (transposed ? IntExpr(rows) : IntExpr(vector)) == 0);
  space.require(vector * rows == 1 || threads * vector * rows <= block * block_k);
}

void constrain(ConfigSpace& space, const Product& w, const Target& t, const Knobs& k) {
  const int64_t warp = warp_of(w);
  const IntExpr threads = k.warps_m * k.warps_n * warp;
  const IntExpr block_m = k.warps_m * k.lanes_m * k.thread_m;
  const IntExpr block_n = k.warps_n * (warp / k.lanes_m) * k.thread_n;
  const IntExpr copied = (block_m + block_n) * k.block_k;
  space.require(threads <= 1024);
  space.require(block_m <= kMaxBlockM);
  space.require(block_n <= kMaxBlockN);
  // No block more than half beside out, as far as a warp can be that narrow, and no part of a thread's tile
  // wholly beside it.
  space.require(block_m < std::max<int64_t>(2 * w.m, kWarp + 1));
  space.require(block_n < std::max<int64_t>(2 * w.n, kWarp + 1));
  space.require(!k.strided_m || block_m - block_m / k.thread_m * 4 < w.m);
  space.require(!k.strided_n || block_n - block_n / k.thread_n * 4 < w.n);
  // A row or a column has its threads along itself, more than one of them at work.
  if (w.m == 1)
    space.require(k.warps_m * k.lanes_m * k.thread_m == 1 && k.thread_n < std::max<int64_t>(w.n, 2));
  if (w.n == 1) space.require(block_n == 1 && k.thread_m < std::max<int64_t>(w.m, 2));
  // Accumulators, one step of both operands, loads under way, and the rest.
  const IntExpr staged = k.double_buffer * (copied / threads);
  space.require(k.thread_m * k.thread_n + k.thread_m + k.thread_n + staged + kOtherRegisters <=
                register_limit(t, threads, k.min_blocks));
  // Rows are padded by at most a vector; as many blocks as are wished for must fit.
  space.require((copied + k.block_k * 8) * 4 * (k.double_buffer + 1) * k.min_blocks <=
                t.shared_bytes_per_block);
  space.require(k.thread_m * k.thread_n * k.unroll_k * (k.unroll_stages + 1) <= kMaxBody);
  space.require(k.unroll_k <= k.block_k);
  space.require(k.block_k <= round_up(w.k, kStrip));
  // Runs of 4 or less are one vector already.
  space.require(!k.strided_m || k.thread_m > 4);
  space.require(!k.strided_n || k.thread_n > 4);
  if (fills_schedulers(w)) space.require(k.warps_m * k.warps_n % kSchedulers == 0);
  constrain_copy(space, k.vector_a, k.rows_a, block_m, k.block_k, threads, w.transposes_a);
  constrain_copy(space, k.vector_b, k.rows_b, block_n, k.block_k, threads, w.transposes_b);
  // The padding of a tile keeps vectors aligned that threads read, and those that are stored must be no
  // longer.
  space.require(k.rows_a == 1 || k.layout_a != kPad || k.thread_m % 4 == 0);
  space.require(k.rows_b == 1 || k.layout_b != kPad || k.thread_n % 4 == 0);
  if (w.transposes_a) space.require(k.layout_a != kXor || (block_m % 32 == 0 && block_m <= w.m));
  if (w.transposes_b) space.require(k.layout_b != kXor || (block_n % 32 == 0 && block_n <= w.n));
  // Each part has steps to do, and one spelling for each number of parts.
  const IntExpr steps = ceil_div(w.k, k.block_k);
  space.require(ceil_div(steps, ceil_div(steps, k.split_k)) == k.split_k);
  space.require(k.group_m == 1 || k.group_m <= ceil_div(w.m, block_m));
  space.require(!k.double_buffer || steps * w.steps > k.split_k);
  space.require(!k.unroll_stages || (k.double_buffer && ceil_div(steps, k.split_k) * w.steps % 2 == 0));
}

// Elements of a thread in one run.
int64_t inner(const Config& c, const FlagKnob& strided, const ChoiceKnob& thread) {
  return c[strided] ? 4 : c[thread];
}

// The loops `axes` of out, or of the sums of parts, become grid, threads, and the tile of a thread; `acc` is
// computed in it.
void place_tile(Schedule& s, const Product& w, const std::vector<Axis>& axes, const Tensor& acc,
                const Tile& tile, const Knobs& k, const Config& c) {
  if (s.refused()) return;
  const int64_t inner_m = inner(c, k.strided_m, k.thread_m), inner_n = inner(c, k.strided_n, k.thread_n);
  const int64_t lanes_m = c[k.lanes_m], lanes_n = warp_of(w) / lanes_m;
  const auto [i_block, i_in_block] = s.split(axes[axes.size() - 2], tile.block_m);
  const auto [j_block, j_in_block] = s.split(axes[axes.size() - 1], tile.block_n);
  const auto [i_strip, i_in_strip] = s.split(i_in_block, c[k.warps_m] * lanes_m * inner_m);
  const auto [j_strip, j_in_strip] = s.split(j_in_block, c[k.warps_n] * lanes_n * inner_n);
  const auto [i_warp, i_in_warp] = s.split(i_in_strip, lanes_m * inner_m);
  const auto [j_warp, j_in_warp] = s.split(j_in_strip, lanes_n * inner_n);
  const auto [i_lane, i] = s.split(i_in_warp, inner_m);
  const auto [j_lane, j] = s.split(j_in_warp, inner_n);
  const auto [group, i_in_group] = s.split(i_block, c[k.group_m]);
  // Neighbouring lanes come in pairs of rows: then of the lanes 2i and 2i + 1 both read the same of b, and of
  // i and i + 2 both the same of a, and the hardware serves 16 lanes of a 16-byte read at once, not 8.
  const auto [i_pair, i_in_pair] = s.split(i_lane, lanes_m % 2 == 0 && lanes_n > 1 ? 2 : 1);
  s.reorder({group, j_block, i_in_group, i_strip, j_strip, i_warp, j_warp, i_pair, j_lane, i_in_pair, i, j});
  const Axis tiles = s.rename(s.fuse({group, j_block, i_in_group}), "tile");
  const Axis thread = s.rename(s.fuse({i_warp, j_warp, i_pair, j_lane, i_in_pair}), "thread");

  const size_t leading = axes.size() - 2;
  bind_grid(s, w.batch > 1 ? axes[leading - 1] : Axis{}, tile.splits > 1 ? axes[0] : Axis{}, tiles);
  s.bind(i_strip, LoopKind::kVirtualThread);
  s.bind(j_strip, LoopKind::kVirtualThread);
  s.bind(thread, LoopKind::kThreadX);
  s.compute_at(acc, thread);
  s.unroll(i);
  vectorize_by(s, j, vector_width({inner_n, tile.splits > 1 ? w.n : w.vector_out}));
  s.rename(i_strip, "i_part");
  s.rename(j_strip, "j_part");
  s.rename(i, "row");
}

void load_registers(Schedule& s, const Tensor& registers, const Axis& at, int64_t elements, int64_t group) {
  s.compute_at(registers, at);
  if (s.refused()) return;
  const std::vector<Axis> axes = s.spatial_axes(registers);
  const Axis all = group > 1 ? s.fuse({axes[axes.size() - 2], axes.back()}) : axes.back();
  vectorize_by(s, all, vector_width({elements}) * group);
}

// The sum over k inside the tile of a thread. Returns the loop over steps of BK.
Axis accumulate(Schedule& s, const Product& w, const Tensor& acc, const Tensor& a_registers,
                const Tensor& b_registers, const Tile& tile, const Knobs& k, const Config& c) {
  const std::vector<Axis> spatial = s.spatial_axes(acc);
  const std::vector<Axis> sums = s.reduce_axis_list(acc);
  if (s.refused()) return {};
  const Axis &i = spatial[spatial.size() - 2], &j = spatial[spatial.size() - 1];
  const auto [k_outer, k_in_tile] = s.split(sums.front(), tile.block_k * w.group);
  const auto [k_step, k_terms] = s.split(k_in_tile, c[k.unroll_k] * w.group);
  const SplitAxes groups = w.group > 1 ? s.split(k_terms, w.group) : SplitAxes{k_terms, {}};
  const Axis k_unrolled = groups.outer;
  std::vector<Axis> order(sums.begin() + 1, sums.end());
  order.push_back(k_outer);
  const std::vector<Axis> steps = order;
  order.insert(order.end(), {k_step, k_unrolled, i, j});
  if (w.group > 1) order.push_back(groups.inner);
  s.reorder(order);
  const Axis step = steps.size() > 1 ? s.fuse(steps) : k_outer;
  s.decompose_reduction(acc, step);
  s.unroll(k_unrolled);
  s.unroll(i);
  s.unroll(j);
  if (w.group > 1) s.dot(s.rename(groups.inner, "term"));
  load_registers(s, a_registers, k_unrolled, inner(c, k.strided_m, k.thread_m), w.group);
  load_registers(s, b_registers, k_unrolled, inner(c, k.strided_n, k.thread_n), w.group);
  s.rename(k_step, "k_group");
  s.rename(k_unrolled, "k_in_group");
  return s.rename(step, "k_tile");
}

// How an operand comes into its shared tile.
struct Copied {
  bool packed, transposed;
  int64_t vector, rows, layout;
  int64_t run;  // elements that a thread reads of the tile at once
};

// The copy of a shared tile: its last axes are k and the inside of the block, and of bytes the group.
void copy_tile(Schedule& s, const Tensor& tile, const Product& w, const Copied& how, int64_t threads) {
  if (s.refused()) return;
  const std::vector<Axis> axes = s.spatial_axes(tile);
  const size_t at = axes.size() - (w.group > 1 ? 3 : 2);
  const Axis &k = axes[at], &block = axes[at + 1];
  ColumnGroup group;
  if (w.group > 1) group = {axes.back(), !how.packed && !how.transposed};
  if (!how.transposed) return share_rows(s, {}, k, block, threads, how.vector, 1, group);
  const auto [strip, k_in_strip] = s.split(k, kStrip);
  share_rows(s, strip, block, k_in_strip, threads, how.vector, how.rows, group);
}

// A padded row must not break the alignment of what a thread reads.
void lay_out(Schedule& s, const Tensor& tile, const Product& w, const Copied& how) {
  if (!how.transposed) return;
  const char* const of = w.group > 1 ? "groups:" : "";
  if (how.layout == kPad) s.set_layout(tile, str(of, "pad:", vector_width({how.run})));
  if (how.layout == kXor) s.set_layout(tile, str(of, "xor:4,8"));
}

// A second kernel, about 2 us, in multiply-adds of a multiprocessor.
constexpr double kLaunchCost = 400'000;

// The tile and the number of parts of k with the least time, in multiply-adds of a multiprocessor: blocks
// come in waves, and partial sums are written, read and added up.
std::pair<Shape, int64_t> first_shape(const Product& w) {
  constexpr double kBytesCost = 32;  // multiply-adds a multiprocessor does while it moves 4 bytes
  std::pair<Shape, int64_t> best{kOneElement, 1};
  double best_cost = 1e300;
  for (const Shape& shape : kShapes) {
    if (!shape.fits(w.m, w.n) || (shape.block_m() + shape.block_n()) * first_k(w) > kMostCopied) continue;
    if (fills_schedulers(w) && shape.warps_m * shape.warps_n % kSchedulers != 0) continue;
    const int64_t tiles = w.batch * ceil_div(w.m, shape.block_m()) * ceil_div(w.n, shape.block_n());
    for (const int64_t splits : kParts) {
      const int64_t steps = ceil_div(w.k, first_k(w)), part = ceil_div(steps, splits);
      if (ceil_div(steps, part) != splits) continue;
      const int64_t waves = ceil_div(tiles * splits, kMultiprocessors);
      const double work =
          static_cast<double>(shape.block_m() * shape.block_n() * (part * w.steps + 4) * first_k(w));
      double cost = static_cast<double>(waves) * work / shape.efficiency;
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
// The steps of a part are even.
bool first_stages(const Product& w, int64_t block_k, int64_t splits) {
  return ceil_div(ceil_div(w.k, block_k), splits) * w.steps % 2 == 0;
}

int64_t first_group(const Product& w, const Shape& shape) {
  return ceil_div(w.m, shape.block_m()) >= 8 && ceil_div(w.n, shape.block_n()) >= 8 ? 8 : 1;
}

}  // namespace

ProductKnobs declare_product(ConfigSpace& space, const Product& w, const Target& t) {
  const auto [first, first_splits] = first_shape(w);
  const int64_t threads = first.warps_m * first.warps_n * warp_of(w),
                block_k = first_block_k(w, first, first_splits);
  const int64_t share_a = std::max<int64_t>(1, first.block_m() * block_k / threads);
  const int64_t share_b = std::max<int64_t>(1, first.block_n() * block_k / threads);
  // A group is a vector of what is stored.
  const bool turns_a = w.transposes_a && w.group == 1, turns_b = w.transposes_b && w.group == 1;
  const int64_t rows_a = first_rows(turns_a, share_a, first.block_m(), first.thread_m);
  const int64_t rows_b = first_rows(turns_b, share_b, first.block_n(), first.thread_n);
  const int64_t block_n = first.warps_n * (warp_of(w) / first.lanes_m) * first.thread_n;
  // Vectors lie along the tile's rows, except where the copy transposes.
  const int64_t vector_a = rows_a > 1 ? 1 : w.transposes_a ? share_a : std::gcd(share_a, first.block_m());
  const int64_t vector_b = rows_b > 1 ? 1 : w.transposes_b ? share_b : std::gcd(share_b, block_n);
  const bool two_fit = threads <= 256 && (first.block_m() + first.block_n() + 8) * block_k * 4 * 2 * 2 <=
                                             t.shared_bytes_per_block;
  // Products of bytes need more registers for what is on its way.
  const int64_t first_blocks = two_fit && w.group == 1 ? 2 : 1;
  ProductKnobs k{
      // Warps of a block. More warps share each tile; too many leave no registers.
      .warps_m = space.choice("warps_m", {1, 2, 3, 4, 6, 8}).try_first(first.warps_m),
      .warps_n = space.choice("warps_n", {1, 2, 3, 4, 6, 8}).try_first(first.warps_n),
      // Rows of threads in a warp; the others are columns. Square warps read least of shared memory.
      .lanes_m = space.choice("lanes_m", {1, 2, 4, 8, 16, 32}).at_most(warp_of(w)).try_first(first.lanes_m),
      // Elements of out a thread computes, thread_m x thread_n: the larger, the fewer reads of shared
      // memory a multiply-add; too many spill.
      .thread_m = space.choice("thread_m", {1, 2, 4, 8, 16}).try_first(first.thread_m),
      .thread_n = space.choice("thread_n", {1, 2, 4, 8, 16}).try_first(first.thread_n),
      // Steps of k between two barriers, against shared memory.
      .block_k = space.choice("block_k", {8, 16, 32}).try_first(block_k),
      // A thread's rows (columns) in vectors of 4 that lie apart, in place of one run: the vectors of
      // neighbouring threads then lie side by side and meet different banks.
      .strided_m = space.flag("strided_m").try_first(first.thread_m > 4),
      .strided_n = space.flag("strided_n").try_first(first.thread_n > 4),
      // Elements of one load of the copies from global memory. Those that are stored by rows are loaded one
      // by one at first: each then has the register that its store wants.
      .vector_a = space.choice("vector_a", {1, 2, 4}).at_most(w.vector_a).try_first(vector_a),
      .vector_b = space.choice("vector_b", {1, 2, 4}).at_most(w.vector_b).try_first(vector_b),
      // Elements of one store of the copies that transpose: rows of a that a thread loads (columns of b).
      .rows_a = space.choice("rows_a", {1, 4}).at_most(turns_a ? 4 : 1).try_first(rows_a),
      .rows_b = space.choice("rows_b", {1, 4}).at_most(turns_b ? 4 : 1).try_first(rows_b),
      // How the shared tiles lie, against bank conflicts of copies that transpose.
      .layout_a = space.category("layout_a", layouts(w.transposes_a)),
      .layout_b = space.category("layout_b", layouts(w.transposes_b)),
      // Shares the loop's own instructions and lets reads run ahead; the code grows.
      .unroll_k = space.choice("unroll_k", {1, 2, 4, 8, 16, 32}).try_first(first_k(w)),
      // Parts of k in blocks of their own: more blocks where out is small, for a second pass over it.
      .split_k = space.choice("split_k", kParts).try_first(first_splits),
      // Rows of blocks that are done together, column by column: what they read stays in L2.
      .group_m = space.choice("group_m", {1, 2, 4, 8, 16}).try_first(first_group(w, first)),
      // Loads of the next tiles run during the multiply-adds, for twice the shared memory.
      .double_buffer = space.flag("double_buffer").try_first(ceil_div(w.k, block_k) * w.steps > first_splits),
      // Both stages of a double buffer in one iteration of the loop, so that their addresses are constants.
      .unroll_stages = space.flag("unroll_stages").try_first(first_stages(w, block_k, first_splits)),
      // Blocks that should fit a multiprocessor: bounds the registers of a thread.
      .min_blocks = space.choice("min_blocks", {1, 2, 3, 4}).try_first(first_blocks),
  };
  constrain(space, w, t, k);
  return k;
}

ProductTile product_tile(const Product& w, const ProductKnobs& k, const Config& c) {
  Tile tile{};
  tile.threads = c[k.warps_m] * c[k.warps_n] * warp_of(w);
  tile.block_m = c[k.warps_m] * c[k.lanes_m] * c[k.thread_m];
  tile.block_n = c[k.warps_n] * (warp_of(w) / c[k.lanes_m]) * c[k.thread_n];
  tile.block_k = c[k.block_k];
  tile.splits = c[k.split_k];
  tile.chunk = ceil_div(ceil_div(w.k, tile.block_k), tile.splits) * tile.block_k;
  return tile;
}

int64_t repeated(int64_t extent) { return vector_width({extent}); }

Tensor pack_operand(Schedule& s, const Tensor& operand, const std::vector<int>& others, int k, int64_t chunk,
                    int tiled, int64_t block, int64_t repeat, int64_t group) {
  std::vector<PackDim> dims;
  for (const int other : others) dims.push_back({other});
  if (group > 1) {
    dims.insert(
        dims.end(),
        {{tiled, block}, {k, group, false, chunk}, {tiled, block, true, 1, repeat}, {k, group, true}});
    return s.pack(operand, dims);
  }
  for (const bool inside : {false, true}) {
    dims.push_back({k, chunk, inside});
    dims.push_back({tiled, block, inside, 1, inside ? repeat : 0});
  }
  return s.pack(operand, dims);
}

PackedOperands pack_product(Schedule& s, const MatmulWorkload& w, const ProductTile& tile, int64_t group) {
  std::vector<int> batch;
  if (w.batch > 1) batch.push_back(0);
  const int d = static_cast<int>(batch.size());
  const auto repeats = [&](const char* operand, int64_t extent) {
    return Workload(w).is_constant(operand) ? 0 : repeated(extent);
  };
  return {.a = pack_operand(s, s.tensor("a"), batch, w.transpose_a ? d : d + 1, tile.chunk,
                            w.transpose_a ? d + 1 : d, tile.block_m, repeats("a", w.m), group),
          .b = pack_operand(s, s.tensor("b"), batch, w.transpose_b ? d + 1 : d, tile.chunk,
                            w.transpose_b ? d : d + 1, tile.block_n, repeats("b", w.n), group)};
}

void schedule_product(Schedule& s, const Product& w, const ProductKnobs& k, const Config& c,
                      const ProductStages& stages) {
  if (s.refused()) return;
  const ProductTile tile = product_tile(w, k, c);
  const Axis sum = s.reduce_axis_list(stages.acc).front();
  s.pad_reduction(sum, tile.chunk * w.group);
  const auto [acc, axes] = split_sums(s, stages.acc, sum, tile.chunk * w.group, tile.splits,
                                      MemoryScope::kRegister, stages.out, w.n, w.vector_out);
  const Tensor a = shared_tile(s, stages.a, w.packed_a, acc), b = shared_tile(s, stages.b, w.packed_b, acc);
  const Tensor a_registers = s.cache_read(a, MemoryScope::kRegister, acc);
  const Tensor b_registers = s.cache_read(b, MemoryScope::kRegister, acc);

  place_tile(s, w, axes, acc, tile, k, c);
  const Axis k_outer = accumulate(s, w, acc, a_registers, b_registers, tile, k, c);
  s.compute_at(a, k_outer);
  s.compute_at(b, k_outer);
  const Copied copied_a{w.packed_a,  w.transposes_a, c[k.vector_a],
                        c[k.rows_a], c[k.layout_a],  inner(c, k.strided_m, k.thread_m)};
  const Copied copied_b{w.packed_b,  w.transposes_b, c[k.vector_b],
                        c[k.rows_b], c[k.layout_b],  inner(c, k.strided_n, k.thread_n)};
  copy_tile(s, a, w, copied_a, tile.threads);
  copy_tile(s, b, w, copied_b, tile.threads);
  lay_out(s, a, w, copied_a);
  lay_out(s, b, w, copied_b);
  if (c[k.double_buffer]) {
    s.double_buffer(a, k_outer);
    s.double_buffer(b, k_outer);
    if (c[k.unroll_stages] && !s.refused()) {
      const auto [tiles, stage] = s.split(k_outer, 2);
      s.unroll(s.rename(stage, "stage"));
      s.rename(tiles, "k_tiles");
    }
  }
  if (c[k.min_blocks] > 1) s.launch_bounds(static_cast<int>(c[k.min_blocks]));
}

}  // namespace tuner::cuda
