// One block of a convolution on a GPU in numbers: what its tiles cover, what they take, and which block to
// try first for a workload. Used by conv2d_nchw_cuda.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler_core/target.h"
#include "templates/cuda/cuda_schedule.h"
#include "templates/space/knob.h"
#include "templates/workload/workload.h"

namespace tuner::conv2d_cuda {

using cuda::reach;

// Largest tile of a block in a dimension of the image, and largest number of input channels, by which tiles
// and parts may exceed the input. The padded input is that much larger, so no tile needs a guard.
constexpr int64_t kMaxBlock = 64;
constexpr int64_t kMaxTileIc = 32, kMaxSplits = 32;
// Limit on the input pixels that a part of the kernel covers in a dimension.
constexpr int64_t kMaxReach = 64;
// Steps of (ic, kh, kw) that consecutive threads read of one channel's weights: global memory delivers 32
// bytes at once, and with padded rows the 32 transposed stores of a warp use 32 banks.
constexpr int64_t kStrip = 8;
// Registers of a thread for one step of operands, for the rows of input among them, and for loads under way.
constexpr int64_t kOperandRegisters = 32, kRowRegisters = 24, kStagedInput = 8, kStagedWeights = 16;

constexpr size_t kF = 0, kY = 1, kX = 2;  // channels, rows, columns of out

struct Tile {
  std::array<int64_t, 3> vthreads{1, 1, 1}, threads{1, 1, 1}, inner{1, 1, 1};
  int64_t ic = 1, kh = 1, kw = 1;  // per step
  int64_t chunk = 1, splits = 1;   // input channels of a part, a multiple of ic

  int64_t block(size_t d) const { return vthreads[d] * threads[d] * inner[d]; }
  int64_t all_threads() const { return threads[0] * threads[1] * threads[2]; }
  int64_t accumulators() const {
    return vthreads[0] * vthreads[1] * vthreads[2] * inner[0] * inner[1] * inner[2];
  }
};

// Returns divisors of `extent` and powers of two below 2 * extent, up to `most`.
std::vector<int64_t> sizes(int64_t extent, int64_t most);
// Returns how many kernel rows (columns) one step may do: divisors, ascending.
std::vector<int64_t> kernel_parts(int64_t kernel, int64_t dilation);

// Bounds the shared tile of input by a product of knobs, which keeps the space cheap to build: a tile of
// `pixels` of out takes at most factor * max(pixels, least) elements per input channel. One channel of the
// smallest tile fits `room` elements.
struct InputBound {
  int64_t factor = 1, least = 1;
};
InputBound input_bound(const Conv2dWorkload& w, int64_t room);

// Returns what the threads of a block are a multiple of: 128 (a warp for each scheduler), 32, or 1 where out
// is too small for more.
int64_t thread_granule(const Conv2dWorkload& w);

// Returns the block with the least estimated time among some that satisfy the template's constraints.
Tile first_tile(const Conv2dWorkload& w, const Target& t);
// Tell whether the tile has its loop over kh unrolled, and rows of input in registers.
bool unrolls_kh(const Tile& tile);
bool keeps_rows(const Conv2dWorkload& w, const Tile& tile);

}  // namespace tuner::conv2d_cuda
