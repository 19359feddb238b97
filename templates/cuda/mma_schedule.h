// The schedule of a matrix product on tensor cores, by mma.sync: 16-bit operands with float32 sums, bytes
// with int32 sums, and float32 by products of tf32 numbers.
//
//   out[i, j] = f(sum over k of a[i, k] * b[k, j])                          [a batch of them in blockIdx.z]
//
//   block: a tile of BM x BN of out, grouped so that neighbouring blocks share rows or columns in L2
//     warps_m x warps_n warps, each tiles_m x tiles_n tiles of 16 x 8 sums, in registers that its lanes hold together
//       for k.outer, BK at a time            [pipelined: the copies of `stages` - 1 steps are on their way
//                                            meanwhile]
//         all threads copy a[BM, BK] and b[BK, BN] into shared memory, by 16 bytes where rows allow it, as they lie
//           zeros beyond M, N and K, so that nothing below needs a guard
//         for 16 terms at a time (of bytes 32)           unrolled; [ahead: the fragments of the next are
//                                                        loaded meanwhile]
//           matrices of both shared tiles -> fragments (ldmatrix; where k does not lie along the rows it transposes; of float32,
//           which it cannot, each lane loads its elements then)
//           unrolled tiles_m x tiles_n       one mma.sync each
//     the sums -> shared memory, so that rows of out are written whole
//     all threads write the tile: f, say bias and activation
//
// split_k > 1: blockIdx.y takes a part of k, sums go to global memory, and a second kernel adds them up.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "templates/cuda/cuda_schedule.h"

namespace tuner::cuda {

// What the schedule needs to know of a product, in elements.
struct MmaProduct {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  DType a_type = DType::kBFloat16, b_type = DType::kBFloat16, sum_type = DType::kFloat32;
  // The shared tile of a is [m, k] (of b [n, k]): so k lies along its rows in memory, too. Else [k, m] ([k,
  // n]), not of bytes.
  bool a_along_k = true, b_along_k = true;
  // Longest vectors that rows in memory allow: of a copy, and of stores to out.
  int64_t vector_a = 1, vector_b = 1, vector_out = 1;
  // Of float32: products of tf32 numbers that stand for one, 1 or 3 (tf32_product of ir/intrinsic.h).
  int tf32_terms = 0;
  bool by_warpgroups = false;  // wgmma

  int64_t element_bytes() const { return dtype_bytes(a_type); }
  // Elements of a row that are read together: 16 bytes by ldmatrix; one by one where it does not serve, and
  // then eight lanes read neighbours.
  int64_t unit(bool along_k) const { return tf32_terms > 0 && !along_k ? 8 : 16 / element_bytes(); }
  int64_t depth() const { return std::max<int64_t>(32 / element_bytes(), 16); }  // terms of a statement
  // Time of a statement, in that of one mma.sync of 16 bits.
  int64_t weight() const { return std::max(1, 2 * tf32_terms); }
  // Terms that one block may sum up; 0: any number. Sums that grow in the tensor cores lose there.
  int64_t most_terms() const;
};

// Of fewer terms the tolerance of float32 has no room for three products of tf32 numbers
// (matmul_tf32x3_cuda.cpp).
constexpr int64_t kLeastTermsOfThree = 16;

// Tensor cores cut off what does not fit beside a sum, so that beyond some 9,000 terms of 16 bits the
// tolerance of float32 sums is used up in a model that is worse than any of them
// (tests/templates/tensor_core_model.h), with TF32, whose tolerance is larger, beyond some 250,000. Longer
// sums are split, up to kMostParts of them. By wgmma on an H200 the largest error of random numbers of full
// length was 0.47 of the tolerance at 4096 terms and 0.75 to 0.78 at 8192; mma.sync is for many GPUs, of
// which none was asked beyond 4096.
constexpr int64_t kMostTermsOfHalf = 4096, kMostTermsOfWgmma = 8192, kMostTermsOfTf32 = 65536,
                  kMostParts = 16;
inline int64_t MmaProduct::most_terms() const {
  if (!is_float(sum_type) || tf32_terms == 3) return 0;  // exact; or added outside of them
  if (tf32_terms == 1) return kMostTermsOfTf32;
  return by_warpgroups ? kMostTermsOfWgmma : kMostTermsOfHalf;
}

struct MmaKnobs {
  ChoiceKnob warps_m, warps_n, tiles_m, tiles_n, block_k, stages;
  FlagKnob unroll_stages, ahead;
  CategoryKnob layout_a, layout_b;
  ChoiceKnob split_k, group_m, min_blocks;
};

// Declares the knobs with their constraints. The default config is one of a few tiles: the one with the least
// time, by waves of blocks.
MmaKnobs declare_mma(ConfigSpace& space, const MmaProduct& p, const Target& t);

// One config in numbers.
struct MmaTile {
  int64_t warps, block_m, block_n, block_k;
  int64_t chunk;   // of k, that one block sums up: a multiple of block_k
  int64_t splits;  // chunks that cover k
};
MmaTile mma_tile(const MmaProduct& p, const MmaKnobs& k, const Config& c);
// Its place in the grid, for place_block().
BlockShape block_shape(const MmaProduct& p, const MmaTile& tile, int64_t group_m);

// The stages of a product to be scheduled. `a` and `b`: what acc reads, packed by pack_mma_operand(). acc:
// [batch,] i, j and k. `out`: the loops [batch,] i, j of what is computed from acc alone, element by element.
struct MmaStages {
  Tensor a, b, acc;
  bool packed_a = false, packed_b = false;  // ahead: they are arguments
  std::vector<Axis> out;
};
// Packs an operand for that, in tiles: `line` is its dimension of rows (of b: of columns), in blocks of
// `block`, `k` that of terms, in whole chunks. A constant is packed ahead, any other operand where it is
// copied. Beyond both lie zeros.
Tensor pack_mma_operand(Schedule& s, const Tensor& operand, const std::vector<int>& others, int line,
                        int64_t block, int k, const MmaTile& tile, bool along_k);
void schedule_mma(Schedule& s, const MmaProduct& p, const MmaKnobs& k, const Config& c,
                  const MmaStages& stages);

}  // namespace tuner::cuda
