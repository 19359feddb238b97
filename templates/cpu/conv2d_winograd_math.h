// What a 3x3 convolution by Winograd computes, as a Program whose loops conv2d_winograd_cpu.cpp schedules:
// the transformed weights u, the image's tiles v, their products, and the way back.
#pragma once

#include <cstdint>

#include "compiler_core/ir/stmt.h"
#include "templates/workload/winograd_math.h"
#include "templates/workload/workload.h"

namespace tuner {

// Sizes in tiles and channel blocks. Channels that are not in blocks are put in blocks of whole vectors.
struct WinogradSizes {
  WinogradTile m;         // outputs of a tile
  int64_t height, width;  // inputs of a tile
  int64_t tile_rows, tile_columns;
  int64_t ic_block, ic_blocks, oc_block, oc_blocks;
};
WinogradSizes winograd_sizes(const Conv2dWorkload& workload, WinogradTile tile);

// Stages, in this order: "half_u", "u", "padded", "rows", "v", "product", "half", "y", "out".
Program winograd_program(const Conv2dWorkload& workload, WinogradTile tile);

}  // namespace tuner
