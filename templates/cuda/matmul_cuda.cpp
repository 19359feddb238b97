// matmul_cuda: float32 matrix product on the ordinary cores of any NVIDIA GPU.
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j])        [batch in blockIdx.z]
//
//   block: a tile of BM x BN of out, grouped so that neighbouring blocks share rows or columns in L2
//     threads: warps_m x warps_n warps, each lanes_m x 32/lanes_m threads of thread_m x thread_n elements
//       for k.outer, BK at a time            [double buffered: the next tiles are on their way meanwhile]
//         all threads copy a[BM, BK] -> shared [BK][BM] and b[BK, BN] -> shared [BK][BN]
//           zeros beyond M, N and K, so that nothing below needs a guard
//         for k.inner                        unrolled by `unroll_k`
//           vectors of both shared tiles -> registers
//           unrolled thread_m x thread_n     one multiply-add each
//       write the tile: bias, activation
//
// split_k > 1: blockIdx.y takes a part of k, sums go to global memory, and a second kernel adds them up.
// Serves batches, transposed operands, any sizes. Constant operands are read as they are: nothing is packed
// ahead on GPUs. Declines types other than float32.
#include <algorithm>
#include <array>

#include "compiler_core/base/int_math.h"
#include "templates/cuda/cuda_schedule.h"
#include "templates/cuda/cuda_templates.h"

namespace tuner {
namespace {

using cuda::kWarp;

struct Knobs {
  ChoiceKnob warps_m, warps_n, lanes_m, thread_m, thread_n, block_k;
  FlagKnob strided_m, strided_n;
  ChoiceKnob vector_a, vector_b;
  CategoryKnob layout_a, layout_b;
  ChoiceKnob unroll_k, split_k, group_m;
  FlagKnob double_buffer;
  ChoiceKnob min_blocks;
};

// One config in numbers. Dimension m: rows of out, n: columns.
struct Tile {
  int64_t threads, block_m, block_n, block_k;
  int64_t chunk;   // of k, that one block sums up: a multiple of block_k
  int64_t splits;  // chunks that cover k
};

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
    {2, 4, 8, 8, 8, 1.00},    // 128 x 128
    {2, 2, 8, 8, 8, 0.95},    // 128 x 64
    {1, 4, 8, 8, 8, 0.92},    // 64 x 128
    {2, 4, 8, 4, 4, 0.75},    // 64 x 64
    {1, 2, 8, 8, 8, 0.80},    // 64 x 64, two warps
    {1, 4, 8, 4, 4, 0.65},    // 32 x 64
    {1, 2, 8, 4, 4, 0.60},    // 32 x 32
    {1, 4, 4, 4, 4, 0.60},    // 16 x 128
    {1, 2, 4, 4, 4, 0.55},    // 16 x 64
    {4, 1, 16, 4, 4, 0.60},   // 256 x 8
    {1, 2, 1, 8, 4, 0.45},    // 8 x 256
    {1, 2, 1, 4, 4, 0.35},    // 4 x 256
    {1, 2, 1, 1, 4, 0.15},    // 1 x 256: a row
    {2, 1, 32, 4, 1, 0.15},   // 256 x 1: a column
    {1, 1, 8, 1, 1, 0.005},   // 8 x 4: where nothing else fits
    {1, 1, 1, 1, 1, 0.005},   // 1 x 32
    {1, 1, 32, 1, 1, 0.005},  // 32 x 1
};
constexpr Shape kOneElement = {1, 1, 1, 1, 1, 1.0};

class MatmulCuda final : public ScheduleTemplate<MatmulWorkload, Knobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_cuda"; }
  int version() const override { return 1; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return declined("needs a CUDA target, got ", t.name());
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    return supported();
  }

  Knobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    const auto [first, first_splits] = first_shape(w);
    const int64_t first_k = w.k > 8 ? 16 : 8;
    // Rows of the stored operands: a vector access must not reach from one into the next.
    const int64_t vector_a = cuda::vector_width({w.transpose_a ? w.m : w.k});
    const int64_t vector_b = cuda::vector_width({w.transpose_b ? w.k : w.n});
    const int64_t threads = first.warps_m * first.warps_n * warp_of(w);
    const int64_t share_a = std::max<int64_t>(1, first.block_m() * first_k / threads);
    const int64_t share_b = std::max<int64_t>(1, first.block_n() * first_k / threads);
    Knobs k{
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
        .block_k = space.choice("block_k", {8, 16, 32}).try_first(first_k),
        // A thread's rows (columns) in vectors of 4 that lie apart, in place of one run: the vectors of
        // neighbouring threads then lie side by side and meet different banks.
        .strided_m = space.flag("strided_m").try_first(first.thread_m > 4),
        .strided_n = space.flag("strided_n").try_first(first.thread_n > 4),
        // Elements of one load of the copies from global memory.
        .vector_a = space.choice("vector_a", {1, 2, 4}).at_most(vector_a).try_first(share_a),
        .vector_b = space.choice("vector_b", {1, 2, 4}).at_most(vector_b).try_first(share_b),
        // How the shared tiles lie, against bank conflicts of copies that transpose.
        .layout_a = space.category("layout_a", layouts(!w.transpose_a)),
        .layout_b = space.category("layout_b", layouts(w.transpose_b)),
        // Shares the loop's own instructions and lets reads run ahead; the code grows.
        .unroll_k = space.choice("unroll_k", {1, 2, 4, 8, 16, 32}).try_first(8),
        // Parts of k in blocks of their own: more blocks where out is small, for a second pass over it.
        .split_k = space.choice("split_k", {1, 2, 3, 4, 6, 8, 12, 16}).try_first(first_splits),
        // Rows of blocks that are done together, column by column: what they read stays in L2.
        .group_m = space.choice("group_m", {1, 2, 4, 8, 16}).try_first(first_group(w, first)),
        // Loads of the next tiles run during the multiply-adds, for twice the shared memory.
        .double_buffer = space.flag("double_buffer").try_first(w.k > first_k * first_splits),
        // Blocks that should fit a multiprocessor: bounds the registers of a thread.
        .min_blocks = space.choice("min_blocks", {1, 2, 3, 4}).try_first(1),
    };
    constrain(space, w, t, k);
    return k;
  }

  Program compute(const MatmulWorkload& w) const override {
    MatmulWorkload plain = w;
    plain.constant.clear();  // packing ahead is of no use here
    return Workload(plain).compute();
  }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target&, const Knobs& k,
                const Config& c) const override {
    const Tile tile = tile_of(w, k, c);
    const Tensor a = pack_tile(s, "a", w.batch > 1, w.transpose_a ? 1 : 0, tile.block_m, tile.chunk);
    const Tensor b = pack_tile(s, "b", w.batch > 1, w.transpose_b ? 0 : 1, tile.block_n, tile.chunk);
    Tensor acc = s.tensor("acc"), result = s.tensor("out");
    if (s.refused()) return;
    const auto [sum] = s.reduce_axes<1>(acc);
    s.pad_reduction(sum, tile.chunk);
    if (tile.splits > 1) {
      const Tensor partial = s.rfactor(acc, s.split(sum, tile.chunk).outer);
      add_partials(s, acc, result, w.n);
      result = partial;
      acc = s.cache_write(partial, MemoryScope::kRegister);
    } else {
      s.set_scope(acc, MemoryScope::kRegister);
    }
    const Tensor a_registers = s.cache_read(a, MemoryScope::kRegister, acc);
    const Tensor b_registers = s.cache_read(b, MemoryScope::kRegister, acc);
    s.set_scope(a, MemoryScope::kShared);
    s.set_scope(b, MemoryScope::kShared);

    place_tile(s, w, result, acc, tile, k, c);
    const Axis k_outer = accumulate(s, acc, a_registers, b_registers, tile, k, c);
    s.compute_at(a, k_outer);
    s.compute_at(b, k_outer);
    copy_tile(s, a, !w.transpose_a, tile.threads, c[k.vector_a]);
    copy_tile(s, b, w.transpose_b, tile.threads, c[k.vector_b]);
    lay_out(s, a, !w.transpose_a, c[k.layout_a], inner(c, k.strided_m, k.thread_m));
    lay_out(s, b, w.transpose_b, c[k.layout_b], inner(c, k.strided_n, k.thread_n));
    if (c[k.double_buffer]) {
      s.double_buffer(a, k_outer);
      s.double_buffer(b, k_outer);
    }
    if (c[k.min_blocks] > 1) s.launch_bounds(static_cast<int>(c[k.min_blocks]));
  }

 private:
  // Threads of a warp that have work to do at all: one where out is one element.
  static int64_t warp_of(const MatmulWorkload& w) { return w.m * w.n == 1 ? 1 : kWarp; }

  // Tiles that are written transposed meet few banks when their rows lie at multiples of 32 words.
  static std::vector<std::string> layouts(bool transposed) {
    return transposed ? std::vector<std::string>{"pad", "xor", "plain"} : std::vector<std::string>{"plain"};
  }
  static constexpr int64_t kPad = 0, kXor = 1;  // positions in that list; of a tile that has it
  // Steps of k that consecutive threads read of one row when the copy transposes: 32 bytes are what global
  // memory delivers at once, and with padded rows the 32 stores of a warp meet 32 banks.
  static constexpr int64_t kStrip = 8;

  static void constrain(ConfigSpace& space, const MatmulWorkload& w, const Target& t, const Knobs& k) {
    const int64_t warp = warp_of(w);
    const IntExpr threads = k.warps_m * k.warps_n * warp;
    const IntExpr block_m = k.warps_m * k.lanes_m * k.thread_m;
    const IntExpr block_n = k.warps_n * (warp / k.lanes_m) * k.thread_n;
    const IntExpr copied = (block_m + block_n) * k.block_k;
    space.require(threads <= 1024);
    space.require(block_m <= 256);
    space.require(block_n <= 512);
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
    space.require(k.thread_m * k.thread_n + k.thread_m + k.thread_n + staged + cuda::kOtherRegisters <=
                  cuda::register_limit(t, threads, k.min_blocks));
    // Rows are padded by at most a vector; as many blocks as are wished for must fit.
    space.require((copied + k.block_k * 8) * 4 * (k.double_buffer + 1) * k.min_blocks <=
                  t.shared_bytes_per_block);
    space.require(k.thread_m * k.thread_n * k.unroll_k <= cuda::kMaxBody);
    space.require(k.unroll_k <= k.block_k);
    space.require(k.block_k <= round_up(w.k, kStrip));
    // Runs of 4 or less are one vector already.
    space.require(!k.strided_m || k.thread_m > 4);
    space.require(!k.strided_n || k.thread_n > 4);
    constrain_copy(space, k.vector_a, block_m, k.block_k, threads, !w.transpose_a);
    constrain_copy(space, k.vector_b, block_n, k.block_k, threads, w.transpose_b);
    if (!w.transpose_a) space.require(k.layout_a != kXor || (block_m % 32 == 0 && block_m <= w.m));
    if (w.transpose_b) space.require(k.layout_b != kXor || (block_n % 32 == 0 && block_n <= w.n));
    // Each part has steps to do, and one spelling for each number of parts.
    const IntExpr steps = ceil_div(w.k, k.block_k);
    space.require(ceil_div(steps, ceil_div(steps, k.split_k)) == k.split_k);
    space.require(k.group_m == 1 || k.group_m <= ceil_div(w.m, block_m));
    space.require(!k.double_buffer || steps > k.split_k);
  }

  // Vectors of a copy that keeps the order lie along the tile's rows; and no thread is idle in a whole copy.
  static void constrain_copy(ConfigSpace& space, const ChoiceKnob& vector, const IntExpr& block,
                             const IntExpr& block_k, const IntExpr& threads, bool transposed) {
    if (!transposed) space.require(block % vector == 0);
    space.require(vector == 1 || threads * vector <= block * block_k);
  }

  static Tile tile_of(const MatmulWorkload& w, const Knobs& k, const Config& c) {
    Tile tile{};
    tile.threads = c[k.warps_m] * c[k.warps_n] * warp_of(w);
    tile.block_m = c[k.warps_m] * c[k.lanes_m] * c[k.thread_m];
    tile.block_n = c[k.warps_n] * (warp_of(w) / c[k.lanes_m]) * c[k.thread_n];
    tile.block_k = c[k.block_k];
    tile.splits = c[k.split_k];
    tile.chunk = ceil_div(ceil_div(w.k, tile.block_k), tile.splits) * tile.block_k;
    return tile;
  }

  // Elements of a thread in one run.
  static int64_t inner(const Config& c, const FlagKnob& strided, const ChoiceKnob& thread) {
    return c[strided] ? 4 : c[thread];
  }

  // The operand as [batch,] chunks of k, blocks, k, inside of the block: zeros where blocks and chunks reach
  // past it. `blocked`: its stored dimension (0, 1) that is tiled, the other is k.
  static Tensor pack_tile(Schedule& s, std::string_view operand, bool batch, int blocked, int64_t block,
                          int64_t chunk) {
    const int d = batch ? 1 : 0, tiled = d + blocked, k = d + 1 - blocked;
    std::vector<PackDim> dims = {{k, chunk}, {tiled, block}, {k, chunk, true}, {tiled, block, true}};
    if (batch) dims.insert(dims.begin(), {0});
    return s.pack(s.tensor(operand), dims);
  }

  // The loops of `result` become grid, threads, and the tile of a thread; `acc` is computed in it.
  static void place_tile(Schedule& s, const MatmulWorkload& w, const Tensor& result, const Tensor& acc,
                         const Tile& tile, const Knobs& k, const Config& c) {
    const std::vector<Axis> axes = s.axes(result);  // [part of k,] [batch,] i, j
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
    s.reorder({group, j_block, i_in_group, i_strip, j_strip, i_warp, j_warp, i_lane, j_lane, i, j});
    const Axis tiles = s.rename(s.fuse({group, j_block, i_in_group}), "tile");
    const Axis thread = s.rename(s.fuse({i_warp, j_warp, i_lane, j_lane}), "thread");

    const size_t leading = axes.size() - 2;
    cuda::bind_grid(s, w.batch > 1 ? axes[leading - 1] : Axis{}, tile.splits > 1 ? axes[0] : Axis{}, tiles);
    s.bind(i_strip, LoopKind::kVirtualThread);
    s.bind(j_strip, LoopKind::kVirtualThread);
    s.bind(thread, LoopKind::kThreadX);
    s.compute_at(acc, thread);
    s.unroll(i);
    cuda::vectorize_by(s, j, cuda::vector_width({inner_n, w.n}));
    s.rename(i_strip, "i_part");
    s.rename(j_strip, "j_part");
    s.rename(i, "row");
  }

  // The sum over k inside the tile of a thread. Returns the loop over steps of BK.
  static Axis accumulate(Schedule& s, const Tensor& acc, const Tensor& a_registers, const Tensor& b_registers,
                         const Tile& tile, const Knobs& k, const Config& c) {
    const std::vector<Axis> spatial = s.spatial_axes(acc);
    const auto [sum] = s.reduce_axes<1>(acc);
    if (s.refused()) return {};
    const Axis i = spatial[spatial.size() - 2], j = spatial[spatial.size() - 1];
    const auto [k_outer, k_in_tile] = s.split(sum, tile.block_k);
    const auto [k_step, k_unrolled] = s.split(k_in_tile, c[k.unroll_k]);
    s.reorder({k_outer, k_step, k_unrolled, i, j});
    s.decompose_reduction(acc, k_outer);
    s.unroll(k_unrolled);
    s.unroll(i);
    s.unroll(j);
    load_registers(s, a_registers, k_unrolled, inner(c, k.strided_m, k.thread_m));
    load_registers(s, b_registers, k_unrolled, inner(c, k.strided_n, k.thread_n));
    s.rename(k_step, "k_group");
    s.rename(k_unrolled, "k_in_group");
    return s.rename(k_outer, "k_tile");
  }

  static void load_registers(Schedule& s, const Tensor& registers, Axis at, int64_t elements) {
    s.compute_at(registers, at);
    if (s.refused()) return;
    cuda::vectorize_by(s, s.spatial_axes(registers).back(), cuda::vector_width({elements}));
  }

  // The copy of a shared tile: its last axes are k and the inside of the block.
  static void copy_tile(Schedule& s, const Tensor& tile, bool transposed, int64_t threads, int64_t vector) {
    if (s.refused()) return;
    const std::vector<Axis> axes = s.spatial_axes(tile);
    const Axis k = axes[axes.size() - 2], block = axes[axes.size() - 1];
    if (!transposed) return cuda::share_rows(s, {}, k, block, threads, vector);
    const auto [strip, k_in_strip] = s.split(k, kStrip);
    cuda::share_rows(s, strip, block, k_in_strip, threads, vector);
  }

  // `run`: elements that a thread reads at once; a padded row must not break their alignment.
  static void lay_out(Schedule& s, const Tensor& tile, bool transposed, int64_t layout, int64_t run) {
    if (!transposed) return;
    if (layout == kPad) s.set_layout(tile, str("pad:", cuda::vector_width({run})));
    if (layout == kXor) s.set_layout(tile, "xor:4,8");
  }

  // out = act(sum of the parts + bias), elementwise: a kernel of its own.
  static void add_partials(Schedule& s, const Tensor& acc, const Tensor& out, int64_t columns) {
    constexpr int64_t kThreads = 256;
    const int64_t vector = cuda::vector_width({columns});
    int64_t threads_x = 1;
    while (threads_x < 64 && threads_x * vector < columns) threads_x *= 2;
    const std::vector<Axis> axes = s.axes(out);  // [batch,] i, j
    if (s.refused()) return;
    s.set_scope(acc, MemoryScope::kRegister);
    const auto [j_block, j_in_block] = s.split(axes.back(), threads_x * vector);
    const auto [j_thread, lane] = s.split(j_in_block, vector);
    const auto [i_block, i_thread] = s.split(axes[axes.size() - 2], kThreads / threads_x);
    s.reorder({i_block, j_block, i_thread, j_thread, lane});
    cuda::bind_grid(s, axes.size() > 2 ? axes[0] : Axis{}, {}, s.fuse({i_block, j_block}));
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

  // The tile and the number of parts of k with the least time, in multiply-adds of a multiprocessor: blocks
  // come in waves, and partial sums are written, read and added up.
  static std::pair<Shape, int64_t> first_shape(const MatmulWorkload& w) {
    constexpr double kBytesCost = 32;  // multiply-adds a multiprocessor does while it moves 4 bytes
    std::pair<Shape, int64_t> best{kOneElement, 1};
    double best_cost = 1e300;
    for (const Shape& shape : kShapes) {
      if (!shape.fits(w.m, w.n)) continue;
      const int64_t tiles = w.batch * ceil_div(w.m, shape.block_m()) * ceil_div(w.n, shape.block_n());
      for (const int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16}) {
        const int64_t steps = ceil_div(w.k, w.k > 8 ? 16 : 8), part = ceil_div(steps, splits);
        if (ceil_div(steps, part) != splits) continue;
        const int64_t waves = ceil_div(tiles * splits, cuda::kMultiprocessors);
        const double work = static_cast<double>(shape.block_m() * shape.block_n() * (part + 2) * 16);
        double cost = static_cast<double>(waves) * work / shape.efficiency;
        if (splits > 1)
          cost += kBytesCost * static_cast<double>(w.batch * w.m * w.n * (2 * splits + 1)) /
                      cuda::kMultiprocessors +
                  kLaunchCost;
        if (cost < best_cost) {
          best_cost = cost;
          best = {shape, splits};
        }
      }
    }
    return best;
  }
  // A second kernel, about 2 us, in multiply-adds of a multiprocessor.
  static constexpr double kLaunchCost = 400'000;

  static int64_t first_group(const MatmulWorkload& w, const Shape& shape) {
    return ceil_div(w.m, shape.block_m()) >= 8 && ceil_div(w.n, shape.block_n()) >= 8 ? 8 : 1;
  }
};

}  // namespace

const AnyTemplate& matmul_cuda() {
  static const MatmulCuda instance;
  return instance;
}

}  // namespace tuner
