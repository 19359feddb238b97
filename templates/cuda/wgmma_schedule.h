// The schedule of a matrix product of 16 bits, with float32 sums, on the tensor cores of Hopper GPUs by wgmma
// (sm_90a).
//
//   out[i, j] = f(sum over k of a[i, k] * b[k, j])                          [a batch of them in blockIdx.z]
//
//   block: a tile of BM x BN of out, grouped so that neighbouring blocks share rows or columns in L2
//     groups_m x groups_n warpgroups, each 64 x N sums, in registers that its 128 lanes hold together
//       for k.outer, 64 or 128 terms at a time      pipelined: the copies of `stages` - 1 steps are on their
//                                                   way meanwhile; [overlap: of `stages` - 2, and products go
//                                                   on while threads meet, copy and wait]
//         [tma: one thread asks for; else all threads copy] a[BM, BK] and b[BK, BN], into shared memory, in pieces of 64 x 64 as they
//           lie, swizzled; zeros beyond M, N, K
//         for 64 terms at a time                    unrolled
//           four instructions of 64 x N x 16, which fetch both operands from shared memory by themselves
//     the sums -> shared memory, so that rows of out are written whole
//     all threads write the tile: f, say bias and activation
//
// split_k > 1: blockIdx.y takes a part of k, sums go to global memory, and a second kernel adds them up.
//
// Against mma_schedule.h: no fragments of operands, so no registers and no instructions that load them; and
// the tensor cores run at their full rate, of which mma.sync reaches 62 %.
#pragma once

#include "templates/cuda/mma_schedule.h"

namespace tuner::cuda {

struct WgmmaKnobs {
  ChoiceKnob groups_m, groups_n, columns, steps, stages;
  FlagKnob overlap, tma;
  ChoiceKnob split_k, group_m, min_blocks;
};

// Whether rows in memory allow the asynchronous copies that it is made of; and copies by TMA.
bool serves_wgmma(const MmaProduct& p);
bool serves_tma(const MmaProduct& p);
// Declares the knobs with their constraints. The default config is one of a few tiles: the one with the least
// time, by waves of blocks.
WgmmaKnobs declare_wgmma(ConfigSpace& space, const MmaProduct& p, const Target& t);

// One config in numbers.
MmaTile wgmma_tile(const MmaProduct& p, const WgmmaKnobs& k, const Config& c);
// Packs an operand for the stages below, in pieces of 64 x 64; its arguments are those of pack_mma_operand().
Tensor pack_wgmma_operand(Schedule& s, const Tensor& operand, const std::vector<int>& others, int line,
                          int64_t block, int k, const MmaTile& tile, bool along_k);
void schedule_wgmma(Schedule& s, const MmaProduct& p, const WgmmaKnobs& k, const Config& c,
                    const MmaStages& stages);

}  // namespace tuner::cuda
