// The schedule of a matrix product on the ordinary cores of a GPU, for every template whose sums are one: the
// product itself, convolutions.
//
//   out[i, j] = f(sum over k of a[i, k] * b[k, j])                          [a batch of them in blockIdx.z]
//
//   block: a tile of BM x BN of out, grouped so that neighbouring blocks share rows or columns in L2
//     threads: warps_m x warps_n warps, each lanes_m x 32/lanes_m threads of thread_m x thread_n elements
//       for k.outer, BK at a time            [double buffered: the next tiles are on their way meanwhile]
//         all threads copy a[BM, BK] -> shared [BK][BM] and b[BK, BN] -> shared [BK][BN]
//           zeros beyond M, N and K, so that nothing below needs a guard
//         for k.inner                        unrolled by `unroll_k`
//           vectors of both shared tiles -> registers
//           unrolled thread_m x thread_n     one multiply-add each
//       write the tile: f, say bias and activation
//
// Of bytes four terms of k are a group, which lies in one word and is one instruction (dp4a): [BK] above are
// groups, tiles are [BK][BM][4] and [BK][BN][4], and everything here counts them as float32 elements are
// counted.
//
// split_k > 1: blockIdx.y takes a part of k, sums go to global memory, and a second kernel adds them up.
#pragma once

#include <vector>

#include "templates/cuda/cuda_schedule.h"
#include "templates/workload/workload.h"

namespace tuner::cuda {

// What the schedule needs to know of a product, in elements.
struct Product {
  int64_t batch = 1, m = 0, n = 0;
  int64_t k = 0;      // of one step's kind: the reduce axis that is split. In groups
  int64_t group = 1;  // terms of k in a word: 1 of float32, 4 of bytes
  int64_t steps =
      1;  // kinds of steps: iterations of the other reduce axes (positions of a convolution's kernel)
  // The operand is a constant, packed ahead: its copy has neither guards nor anything to turn round.
  bool packed_a = false, packed_b = false;
  // The operand lies in memory along k, so that its copy transposes.
  bool transposes_a = false, transposes_b = false;
  // Longest vectors that its rows in memory allow: of loads (in groups where the operand lies along k), and
  // of stores to out.
  int64_t vector_a = 1, vector_b = 1, vector_out = 1;
};

struct ProductKnobs {
  ChoiceKnob warps_m, warps_n, lanes_m, thread_m, thread_n, block_k;
  FlagKnob strided_m, strided_n;
  ChoiceKnob vector_a, vector_b, rows_a, rows_b;
  CategoryKnob layout_a, layout_b;
  ChoiceKnob unroll_k, split_k, group_m;
  FlagKnob double_buffer, unroll_stages;
  ChoiceKnob min_blocks;
};

// Declares the knobs with their constraints. The default config is one of a few tiles: the one with the least
// multiply-adds a multiprocessor, by waves of blocks.
ProductKnobs declare_product(ConfigSpace& space, const Product& p, const Target& t);

// One config in numbers. Dimension m: rows of out, n: columns; k in groups.
struct ProductTile {
  int64_t threads, block_m, block_n, block_k;
  int64_t chunk;   // of k, that one block sums up: a multiple of block_k
  int64_t splits;  // chunks that cover k
};
ProductTile product_tile(const Product& p, const ProductKnobs& k, const Config& c);
// Upper limits of block_m, block_n and of what splitting k adds to it.
constexpr int64_t kMaxBlockM = 256, kMaxBlockN = 512, kMaxPaddedK = 512;

// The stages of a product to be scheduled. `a` and `b`: what acc reads, stages of their own, or, packed
// ahead, arguments (see pack_operand); their last two axes are k and the inside of a block, behind which of
// bytes comes the group; zero beyond K and beyond out. acc: [batch,] i, j and the reduce axes, the first of
// which is split. `out`: the loops [batch,] i, j of what is computed from acc alone, element by element.
struct ProductStages {
  Tensor a, b, acc;
  std::vector<Axis> out;
};
// Packs an operand for that: its dimension `k` in chunks of tile.chunk, its dimension `tiled` in blocks, both
// of them inside the others, whose order is kept. A constant is packed ahead, any other operand where it is
// copied. Beyond `k` lie zeros; beyond `tiled`, where nobody needs them, the last `repeat` elements again (0:
// zeros). In `group`s of more than one term each is the innermost dimension.
Tensor pack_operand(Schedule& s, const Tensor& operand, const std::vector<int>& others, int k, int64_t chunk,
                    int tiled, int64_t block, int64_t repeat = 0, int64_t group = 1);
// Packs both operands of a matmul so, those that are constants ahead.
struct PackedOperands {
  Tensor a, b;
};
PackedOperands pack_product(Schedule& s, const MatmulWorkload& w, const ProductTile& tile, int64_t group = 1);
// Elements to be repeated at an edge of `extent`, so that vectors and rows of a copy stay whole.
int64_t repeated(int64_t extent);
void schedule_product(Schedule& s, const Product& p, const ProductKnobs& k, const Config& c,
                      const ProductStages& stages);

}  // namespace tuner::cuda
