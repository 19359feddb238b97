// matmul_tile_cpu: matrix product of bfloat16, float16 or int8 by tiles (AMX), on x86 CPUs that have them.
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j] + residual[i, j])        [batch outermost]
//
//   A step is what one product of tiles adds up: 16 groups of 32 bits along k, 32 bfloat16 or 64 int8.
//   b packed in panels of 16 columns, groups side by side: [N/16][K/D][16][D], zeros beyond K and N: by the
//       packing entry when constant, else by a stage before (of a batch on one thread before each product)
//   a read as it is, or packed in tiles, [M/R][K/step][R][step], zeros beyond
//   All of k at once (block_k = 0):                   k in blocks, so much of the panels staying in L1:
//
//   parallel batch, block of tiles of rows, panels      parallel batch, block of tiles of rows, panels
//     for tiles of rows in block                          acc = 0
//       sums over k: a block of tiles                     for block of k
//       write the block, by vectors                         for tiles of rows in block
//                                                             acc += sums over the block of k: a block of tiles
//                                                         write acc, by vectors
//   A block of tiles:
//       C = 0                            `down` x `across` tile registers of R rows
//       for step of k
//         `down` tiles of a, `across` tiles of b: loads
//         down * across products
//       C into a small block of memory, which stays in L1; where out is nothing but whole tiles of the sums, into out
//
// Rows and columns beyond the shape are computed on zeros, and not written. Declines float32, targets without
// tiles, and what leaves most of a tile empty: one column, or no more terms than a group.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/visitor.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

// Of tiles: rows at most, columns of C, groups of 32 bits along k; and tile registers.
constexpr int64_t kMostRows = 16, kColumns = 16, kGroups = 16, kRegisters = 8;

struct Knobs {
  ChoiceKnob rows, down, across, block_m, block_k;
  FlagKnob pack_a;
};

class MatmulTileCpu final : public ScheduleTemplate<MatmulWorkload, Knobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_tile_cpu"; }
  int version() const override { return 1; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return declined("needs a CPU target, got ", t.name());
    if (w.dtype == DType::kFloat32) return declined("needs bfloat16, float16 or int8, got ", w.dtype);
    if (!t.has_tiles(w.dtype))
      return declined("needs tiles of ", w.dtype, " (AMX), which ", t.name(), " has not");
    if (w.n < 2) return declined("needs n >= 2, got ", w.n);
    if (w.k <= group_of(w)) return declined("needs k > ", group_of(w), ", got ", w.k);
    return supported();
  }

  Knobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    const bool packs_a = Workload(w).is_constant("a") || w.transpose_a || w.k % step_of(w) != 0;
    // As few tiles as 16 rows make, and as equal: less work on zeros.
    const int64_t equal = ceil_div(w.m, ceil_div(w.m, kMostRows)), full = std::min(w.m, kMostRows);
    const int64_t row_tiles = ceil_div(w.m, equal), panels = ceil_div(w.n, kColumns);
    Knobs k{
        // Rows of a tile. Fewer take less time each, and leave registers half empty.
        .rows = space
                    .choice("rows",
                            equal == full ? std::vector<int64_t>{full} : std::vector<int64_t>{equal, full})
                    .try_first(equal),
        // Tiles of C below each other. Each tile of b that is loaded serves so many products.
        .down = space.choice("down", {1, 2, 3}).at_most(row_tiles).try_first(std::min<int64_t>(2, row_tiles)),
        // Tiles of C side by side. Each tile of a that is loaded serves so many.
        .across = space.choice("across", {1, 2, 3}).at_most(panels).try_first(std::min<int64_t>(2, panels)),
        // Blocks of rows done with one panel before the next panel: the block of a stays in L2. 0: all rows,
        // panels outermost.
        .block_m = space.choice("block_m", {0, 1, 2, 4, 8, 16, 32}).try_first(0),
        // Terms added before the sums go to memory: so much of the panels stays in L1 for the rows of a block. 0:
        // all of them.
        .block_k = space.choice("block_k", blocks_of_k(w, t)).try_first(0),
        // a in tiles, each in 16 lines side by side: no strided streams, for a copy of a. What is no whole
        // number of tiles has to be.
        .pack_a =
            space.flag("pack_a").try_first(packs_a || w.m % (equal * std::min<int64_t>(2, row_tiles)) != 0),
    };
    space.require(k.down * k.across + k.down + k.across <= kRegisters);
    // One spelling for "all rows".
    space.require(k.block_m < ceil_div(w.m, k.rows * k.down));
    // Sums in memory are of whole tiles.
    space.require(k.block_k == 0 ||
                  (IntExpr(w.m) % (k.rows * k.down) == 0 && IntExpr(w.n) % (k.across * kColumns) == 0 &&
                   (k.block_m == 0 || IntExpr(w.m) % (k.rows * k.down * k.block_m) == 0)));
    if (packs_a)
      space.require(k.pack_a == 1);
    else
      space.require(k.pack_a == 1 || IntExpr(w.m) % (k.rows * k.down) == 0);
    return k;
  }

  Program compute(const MatmulWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target& t, const Knobs& k,
                const Config& c) const override {
    const Block block{.rows = c[k.rows], .down = c[k.down], .across = c[k.across]};
    const bool parallel = t.threads > 1;
    const int b_along_k = w.transpose_b ? 1 : 0, a_along_k = w.transpose_a ? 0 : 1;
    const Tensor a = s.tensor("a"), b = s.tensor("b"), acc = s.tensor("acc"), out = s.tensor("out");
    // Of several products each packs its own b just before, so that the panels stay in the cache.
    const bool constant_b = Workload(w).is_constant("b"),
               b_before_each = w.batch > 1 && !parallel && !constant_b;
    const Tensor panels = cpu::pack_groups(
        s, b, b_along_k,
        {.group = group_of(w), .block = kColumns, .multiple = kGroups, .blocks = block.across});
    if (!constant_b && !b_before_each) cpu::weave_groups(s, panels, b_along_k, kColumns, parallel);
    Tensor tiles = a;
    if (c[k.pack_a]) {
      tiles = cpu::pack_groups(
          s, a, a_along_k, {.group = step_of(w), .block = block.rows, .multiple = 1, .blocks = block.down});
      if (!Workload(w).is_constant("a")) cpu::weave_groups(s, tiles, a_along_k, block.rows, parallel);
    }
    if (s.refused()) return;
    s.pad_reduction(s.reduce_axes<1>(acc)[0], step_of(w));

    std::vector<Axis> outer = s.axes(out);  // [batch,] i, j
    const auto [row_tile, row] = s.split(outer[outer.size() - 2], block.rows * block.down);
    const auto [panel, column] = s.split(outer[outer.size() - 1], kColumns * block.across);
    const int64_t row_tiles = ceil_div(w.m, block.rows * block.down);
    const auto [row_block, tile] = s.split(row_tile, c[k.block_m] == 0 ? row_tiles : c[k.block_m]);
    s.reorder({row_block, panel, tile, row, column});
    const bool whole = w.m % (block.rows * block.down) == 0 && w.n % (kColumns * block.across) == 0;
    if (c[k.block_k] != 0) {
      cpu::vectorize_by(s, column, t.f32_lanes());
      sum_by_blocks(s, acc, panel, tiles, panels, block, c[k.block_k], t.f32_lanes());
    } else if (whole && copies(s, out, acc)) {
      s.set_scope(acc, MemoryScope::kFragment);
      s.compute_at(acc, tile);
      sum_in_tiles(s, acc, tiles, panels, block);
      by_tiles(s, {}, {row, column}, {block.rows, kColumns}, store_of(acc, block));
    } else {
      cpu::vectorize_by(s, column, t.f32_lanes());
      s.compute_at(acc, tile);
      sum_through_memory(s, acc, tiles, panels, block);
    }

    if (b_before_each) {
      s.compute_at(panels, outer.front());
      cpu::weave_groups(s, panels, b_along_k, kColumns, parallel);
    }
    outer.resize(outer.size() - 2);
    outer.push_back(row_block);
    outer.push_back(panel);
    if (parallel) s.parallel(s.fuse(outer));
  }

 private:
  struct Block {
    int64_t rows, down, across;
  };

  static int64_t group_of(const MatmulWorkload& w) { return std::max<int64_t>(1, 4 / dtype_bytes(w.dtype)); }
  static int64_t step_of(const MatmulWorkload& w) { return kGroups * group_of(w); }

  // Blocks pay when panels of all of k do not stay in L1 beside the tiles of a.
  static std::vector<int64_t> blocks_of_k(const MatmulWorkload& w, const Target& t) {
    std::vector<int64_t> blocks{0};
    for (const int64_t block : {256, 512, 1024, 2048})
      if (w.k * dtype_bytes(w.dtype) * 2 * kColumns > t.l1d_bytes / 2 && w.k % block == 0 && block < w.k)
        blocks.push_back(block);
    return blocks;
  }

  // acc, in memory, is computed inside `panel` of its reader, a block of k at a time.
  static void sum_by_blocks(Schedule& s, const Tensor& acc, const Axis& panel, const Tensor& a,
                            const Tensor& b, const Block& block, int64_t block_k, int64_t lanes) {
    const auto [sum] = s.reduce_axes<1>(acc);
    const Axis k_block = s.split(sum, block_k).outer;
    const Tensor part = s.rfactor(acc, k_block);
    s.compute_at(acc, panel);
    const std::vector<Axis> spatial = s.spatial_axes(acc);
    const auto [added] = s.reduce_axes<1>(acc);
    if (s.refused()) return;
    const auto [tile, row] = s.split(spatial[spatial.size() - 2], block.rows * block.down);
    const auto [vector, lane] = s.split(spatial.back(), lanes);
    s.reorder({added, tile, row, vector, lane});
    s.decompose_reduction(acc, added);
    s.compute_at(part, tile);
    sum_through_memory(s, part, a, b, block);
    s.unroll(vector);
    s.vectorize(lane);
  }

  // True if out is the sums and nothing else.
  static bool copies(const Schedule& s, const Tensor& out, const Tensor& acc) {
    bool found = false;
    visit(s.program().body, [&](const Stmt& store) {
      if (store->kind == StmtKind::kStore && store->buffer == out.buffer)
        found = store->value->kind == ExprKind::kLoad && store->value->buffer == acc.buffer;
    });
    return found;
  }
  static std::string store_of(const Tensor& sums, const Block& block) {
    return str("amx.store.", dtype_name(sums.buffer->dtype), ".", block.rows);
  }

  // The sums of `acc`, one block of tiles in memory.
  static void sum_through_memory(Schedule& s, const Tensor& acc, const Tensor& a, const Tensor& b,
                                 const Block& block) {
    const Tensor sums = s.cache_write(acc, MemoryScope::kFragment);
    sum_in_tiles(s, sums, a, b, block);
    copy_tiles(s, acc, 2, {block.rows, kColumns}, store_of(acc, block));
  }

  // The sums of one block of tiles, in tile registers.
  static void sum_in_tiles(Schedule& s, const Tensor& sums, const Tensor& a, const Tensor& b,
                           const Block& block) {
    if (s.refused()) return;
    const DType a_type = a.buffer->dtype, b_type = b.buffer->dtype;
    const int64_t group = 4 / dtype_bytes(a_type);
    const std::vector<Axis> spatial = s.spatial_axes(sums);
    const auto [k] = s.reduce_axes<1>(sums);
    if (s.refused()) return;
    const auto [step, in_step] = s.split(k, kGroups * group);
    const auto [group_axis, element] = s.split(in_step, group);
    const auto [down, row] = s.split(spatial[spatial.size() - 2], block.rows);
    const auto [across, column] = s.split(spatial.back(), kColumns);
    s.reorder({step, down, across, row, group_axis, column, element});
    s.decompose_reduction(sums, step);
    const Tensor a_tiles = s.cache_read(a, MemoryScope::kFragment, sums);
    const Tensor b_tiles = s.cache_read(b, MemoryScope::kFragment, sums);
    s.compute_at(a_tiles, step);
    s.compute_at(b_tiles, step);
    s.unroll(down);
    s.unroll(across);
    const std::string types =
        is_float(a_type) ? std::string(dtype_name(a_type)) : str(dtype_name(a_type), ".", dtype_name(b_type));
    s.tensorize(row, str("amx.", types, ".", block.rows));
    copy_tiles(s, a_tiles, 2, {block.rows}, str("amx.load.", dtype_name(a_type), ".", block.rows));
    copy_tiles(s, b_tiles, 3, {}, str("amx.groups.", dtype_name(b_type)));
  }

  // The copy `t`, whose last `rank` dimensions hold tiles.
  static void copy_tiles(Schedule& s, const Tensor& t, size_t rank, const std::vector<int64_t>& cut,
                         const std::string& intrinsic) {
    const std::vector<Axis> axes = s.spatial_axes(t);
    if (s.refused()) return;
    const auto first = axes.end() - static_cast<std::ptrdiff_t>(rank);
    by_tiles(s, {axes.begin(), first}, {first, axes.end()}, cut, intrinsic);
  }

  // Loops of a copy, by an intrinsic for each tile: `axes` are cut into tiles by `cut`, those without a number there are
  // whole; `around` are loops directly around them.
  static void by_tiles(Schedule& s, std::vector<Axis> around, const std::vector<Axis>& axes,
                       const std::vector<int64_t>& cut, const std::string& intrinsic) {
    std::vector<Axis> inside;
    for (size_t d = 0; d < axes.size(); ++d) {
      if (d < cut.size()) {
        const SplitAxes parts = s.split(axes[d], cut[d]);
        around.push_back(parts.outer);
        inside.push_back(parts.inner);
      } else {
        inside.push_back(axes[d]);
      }
    }
    std::vector<Axis> order = around;
    order.insert(order.end(), inside.begin(), inside.end());
    s.reorder(order);
    for (const Axis& axis : around) s.unroll(axis);
    s.tensorize(inside.front(), intrinsic);
  }
};

}  // namespace

const AnyTemplate& matmul_tile_cpu() {
  static const MatmulTileCpu instance;
  return instance;
}

}  // namespace tuner
