// A product by tile intrinsics, for tests: every operand in a fragment.
#pragma once

#include "compiler_core/schedule/schedule.h"
#include "tests/compiler_core/programs.h"

namespace tuner::testing {

struct TileShape {
  int64_t rows = 16;             // of a tile of A and C
  int64_t down = 1, across = 1;  // tiles of C held at once
};

// C = A B of typed_matmul(), A and B packed with zeros where tiles reach past them. Names: C.fragment,
// A.packed.fragment, B.packed.fragment.
// C has more than one column, and more terms of a sum than a group.
inline Schedule tiled_matmul(const Program& math, TileShape tile, bool parallel = false) {
  Schedule s(math);
  // No tile lies wholly behind C.
  const std::vector<int64_t>& shape = s.tensor("C").buffer->shape;
  tile.rows = std::min(tile.rows, shape[0]);
  tile.down = std::min(tile.down, (shape[0] + tile.rows - 1) / tile.rows);
  tile.across = std::min(tile.across, (shape[1] + 15) / 16);
  const DType a = s.tensor("A").buffer->dtype, b = s.tensor("B").buffer->dtype,
              sum = s.tensor("C").buffer->dtype;
  const int64_t group = 4 / dtype_bytes(a), step = 16 * group;
  const Tensor A = s.pack(
      s.tensor("A"), {{0, tile.rows, false, tile.down}, {1, step}, {0, tile.rows, true}, {1, step, true}});
  const Tensor B = s.pack(
      s.tensor("B"), {{1, 16, false, tile.across}, {0, group, false, 16}, {1, 16, true}, {0, group, true}});
  const Tensor C = s.tensor("C"), block = s.cache_write(C, MemoryScope::kGlobal);
  const auto [m, n] = s.axes<2>(C);
  const auto [m_outer, m_inner] = s.split(m, tile.rows * tile.down);
  const auto [n_outer, n_inner] = s.split(n, 16 * tile.across);
  s.reorder({m_outer, n_outer, m_inner, n_inner});
  s.pad_reduction(s.reduce_axes<1>(block)[0], step);
  s.compute_at(block, n_outer);
  const Tensor sums = s.cache_write(block, MemoryScope::kFragment);

  const auto [k_outer, k_inner] = s.split(s.reduce_axes<1>(sums)[0], step);
  const auto [k_group, k_element] = s.split(k_inner, group);
  const auto [i, j] = s.inner_axes<2>(sums);
  const auto [down, row] = s.split(i, tile.rows);
  const auto [across, column] = s.split(j, 16);
  s.reorder({k_outer, down, across, row, k_group, column, k_element});
  s.decompose_reduction(sums, k_outer);
  const Tensor a_tile = s.cache_read(A, MemoryScope::kFragment, sums),
               b_tile = s.cache_read(B, MemoryScope::kFragment, sums);
  s.compute_at(a_tile, k_outer);
  s.compute_at(b_tile, k_outer);
  s.unroll(down);
  s.unroll(across);
  const std::string of = is_float(a) ? std::string(dtype_name(a)) : str(dtype_name(a), ".", dtype_name(b));
  s.tensorize(row, str("amx.", of, ".", tile.rows));
  const auto copied = [&](const Tensor& t, size_t unrolled, const std::string& intrinsic) {
    const std::vector<Axis> axes = s.spatial_axes(t);
    if (s.refused()) return;
    for (size_t d = 0; d < unrolled; ++d) s.unroll(axes[d]);
    s.tensorize(axes[unrolled], intrinsic);
  };
  copied(a_tile, 2, str("amx.load.", dtype_name(a), ".", tile.rows));
  copied(b_tile, 1, str("amx.groups.", dtype_name(b)));
  const auto [block_i, block_j] = s.inner_axes<2>(block);
  const auto [block_down, block_row] = s.split(block_i, tile.rows);
  const auto [block_across, block_column] = s.split(block_j, 16);
  s.reorder({block_down, block_across, block_row, block_column});
  s.unroll(block_down);
  s.unroll(block_across);
  s.tensorize(block_row, str("amx.store.", dtype_name(sum), ".", tile.rows));
  s.vectorize(n_inner);
  if (parallel) s.parallel(s.fuse({m_outer, n_outer}));
  return s;
}

}  // namespace tuner::testing
