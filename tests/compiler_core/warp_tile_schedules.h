// Products on tensor cores, scheduled by hand, for the tests of fragments over lanes and what comes after.
#pragma once

#include "compiler_core/ir/intrinsic.h"
#include "tests/compiler_core/programs.h"

namespace tuner::testing {

struct WarpTiles {
  int64_t bm = 32, bn = 32, bk = 32;  // of a block
  int64_t warps_m = 1, warps_n = 2;   // that share it
  bool k_first = true;                // b is [k, n], or [n, k]
  bool m_first = true;                // a is [m, k], or [k, m]; the latter of float32
  int terms = 0;                      // of float32
  bool double_buffer = false;
  int64_t stages = 1;  // above 1: of asynchronous copies
  bool ahead = false;  // of such copies: fragments of the next step are loaded meanwhile
  bool unroll_stages = false;
  int64_t vector = 1;  // elements that a thread copies at once
  std::string layout_a, layout_b, layout_c;
};

// out = max(a b, 0): operands of type t, float32 sums. `terms`: of float32, the product of two numbers is
// that of tensor cores.
inline Program tile_product(DType t, int64_t m, int64_t n, int64_t k, bool m_first, bool k_first, int terms) {
  te::Builder b("product");
  const Buffer A = b.input("a", m_first ? std::vector<int64_t>{m, k} : std::vector<int64_t>{k, m}, t);
  const Buffer B = b.input("b", k_first ? std::vector<int64_t>{k, n} : std::vector<int64_t>{n, k}, t);
  const Buffer acc = b.reduce(
      "acc", {m, n}, {{"k", k}}, ReduceOp::kSum,
      [&](const te::Indices& i, const te::Indices& r) {
        const std::vector<Expr> at = k_first ? std::vector<Expr>{r[0], i[1]} : std::vector<Expr>{i[1], r[0]};
        const std::vector<Expr> at_a =
            m_first ? std::vector<Expr>{i[0], r[0]} : std::vector<Expr>{r[0], i[0]};
        const Expr x = cast(DType::kFloat32, load(A, at_a)), y = cast(DType::kFloat32, load(B, at));
        return terms > 0 ? tf32_product(x, y, terms) : x * y;
      },
      BufferRole::kIntermediate, {"i", "j"});
  b.compute("out", {m, n}, [&](const te::Indices& i) { return max(load(acc, i), float_imm(0)); },
            BufferRole::kOutput, {"i", "j"});
  return b.finish();
}

inline Program half_product(DType t, int64_t m, int64_t n, int64_t k, bool k_first) {
  return tile_product(t, m, n, k, /*m_first=*/true, k_first, /*terms=*/0);
}

// The copy of a shared tile, 32 lanes of each warp side by side.
inline void share_over_warps(Schedule& s, const Tensor& tile, int64_t warps, int64_t vector, bool unrolled) {
  Axis vectors = s.fuse(s.axes(tile));
  if (vector > 1) {
    const SplitAxes parts = s.split(vectors, vector);
    vectors = parts.outer;
    s.vectorize(parts.inner);
  }
  const auto [round, thread] = s.split(vectors, 32 * warps);
  const auto [warp, lane] = s.split(thread, 32);
  s.bind(warp, LoopKind::kThreadY);
  s.bind(lane, LoopKind::kThreadX);
  if (unrolled) s.unroll(round);
}

// Both last axes of `t` cut into tiles, each by an intrinsic.
inline void copy_by_tiles(Schedule& s, const Tensor& t, int64_t rows, int64_t columns,
                          const std::string& by) {
  if (s.refused()) return;
  const std::vector<Axis> axes = s.spatial_axes(t);
  const auto [down, row] = s.split(axes[axes.size() - 2], rows);
  const auto [across, column] = s.split(axes.back(), columns);
  s.reorder({down, across, row, column});
  s.unroll(down);
  s.unroll(across);
  s.tensorize(row, by);
}

inline Schedule warp_product(const Program& math, const WarpTiles& o) {
  Schedule s(math);
  const Tensor out = s.tensor("out"), acc = s.tensor("acc");
  const std::string type(dtype_name(s.tensor("a").buffer->dtype));
  const int64_t warps = o.warps_m * o.warps_n;
  const Tensor a = o.m_first
                       ? s.pack(s.tensor("a"), {{0, o.bm}, {1, o.bk}, {0, o.bm, true}, {1, o.bk, true}})
                       : s.pack(s.tensor("a"), {{0, o.bk}, {1, o.bm}, {0, o.bk, true}, {1, o.bm, true}});
  const Tensor b = o.k_first
                       ? s.pack(s.tensor("b"), {{0, o.bk}, {1, o.bn}, {0, o.bk, true}, {1, o.bn, true}})
                       : s.pack(s.tensor("b"), {{0, o.bn}, {1, o.bk}, {0, o.bn, true}, {1, o.bk, true}});
  for (const Tensor& t : {a, b, acc}) s.set_scope(t, MemoryScope::kShared);
  s.pad_reduction(s.reduce_axes<1>(acc)[0], o.bk);
  const auto [i, j] = s.axes<2>(out);
  const auto [by, row] = s.split(i, o.bm);
  const auto [bx, column] = s.split(j, o.bn);
  s.reorder({by, bx, row, column});
  s.bind(by, LoopKind::kBlockY);
  s.bind(bx, LoopKind::kBlockX);
  s.compute_at(acc, bx);
  const auto [round, thread] = s.split(s.fuse({row, column}), 32 * warps);
  const auto [out_warp, out_lane] = s.split(thread, 32);
  s.bind(out_warp, LoopKind::kThreadY);
  s.bind(out_lane, LoopKind::kThreadX);

  // The sums of a warp, and their way to shared memory.
  const Tensor sums = s.cache_write(acc, MemoryScope::kFragment);
  const auto [acc_i, acc_j] = s.inner_axes<2>(acc);
  const auto [warp_i, i_in_warp] = s.split(acc_i, o.bm / o.warps_m);
  const auto [warp_j, j_in_warp] = s.split(acc_j, o.bn / o.warps_n);
  const auto [down, tile_row] = s.split(i_in_warp, 16);
  const auto [across, tile_column] = s.split(j_in_warp, 8);
  s.reorder({warp_i, warp_j, down, across, tile_row, tile_column});
  const Axis warp = s.rename(s.fuse({warp_i, warp_j}), "warp");
  s.bind(warp, LoopKind::kThreadY);
  s.compute_at(sums, warp);
  s.unroll(down);
  s.unroll(across);
  s.tensorize(tile_row, "mma.store");

  const auto [k] = s.reduce_axes<1>(sums);
  const auto [sum_i, sum_j] = s.inner_axes<2>(sums);
  const auto [k_outer, k_in_block] = s.split(k, o.bk);
  const auto [k_step, k_in_tile] = s.split(k_in_block, 16);
  const auto [sum_down, sum_row] = s.split(sum_i, 16);
  const auto [sum_across, sum_column] = s.split(sum_j, 8);
  s.reorder({k_outer, k_step, sum_down, sum_across, sum_row, sum_column, k_in_tile});
  s.decompose_reduction(sums, k_outer);
  const Tensor a_tiles = s.cache_read(a, MemoryScope::kFragment, sums);
  const Tensor b_tiles = s.cache_read(b, MemoryScope::kFragment, sums);
  s.compute_at(a_tiles, k_step);
  s.compute_at(b_tiles, k_step);
  s.compute_at(a, k_outer);
  s.compute_at(b, k_outer);
  s.unroll(k_step);
  s.unroll(sum_down);
  s.unroll(sum_across);
  const std::string product = o.terms == 0 ? type : o.terms == 1 ? "tf32" : "tf32x3";
  const std::string of_a = o.m_first ? ".mk" : ".km", of_b = o.k_first ? ".kn" : ".nk";
  s.tensorize(sum_row, "mma." + product + of_a + of_b);
  const auto load_of = [&](bool along_k, const std::string& of) {
    return (o.terms > 0 && !along_k ? "mma.load." : "ldmatrix.") + type + of;
  };
  copy_by_tiles(s, a_tiles, 16, 16, load_of(o.m_first, of_a));
  const int64_t columns = o.terms > 0 ? 8 : 16;
  copy_by_tiles(s, b_tiles, o.k_first ? 16 : columns, o.k_first ? columns : 16, load_of(!o.k_first, of_b));
  share_over_warps(s, a, warps, o.vector, o.stages > 1);
  share_over_warps(s, b, warps, o.vector, o.stages > 1);
  if (o.double_buffer) {
    s.double_buffer(a, k_outer);
    s.double_buffer(b, k_outer);
  }
  if (o.stages > 1) s.pipeline({a, b}, k_outer, o.stages);
  if (o.ahead) s.load_ahead({a_tiles, b_tiles}, k_step);
  if (o.unroll_stages) s.unroll(s.split(k_outer, o.stages).inner);
  if (!o.layout_a.empty()) s.set_layout(a, o.layout_a);
  if (!o.layout_b.empty()) s.set_layout(b, o.layout_b);
  if (!o.layout_c.empty()) s.set_layout(acc, o.layout_c);
  return s;
}

}  // namespace tuner::testing
