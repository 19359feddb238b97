// AMX, for the files of this folder that hold its intrinsics. Private to this folder.
#pragma once

#include <cstdint>

#include "compiler_core/ir/intrinsics/tiles.h"

namespace tuner {

constexpr int64_t kMostTileRows = 16;

const TileFamily& amx_family();

}  // namespace tuner
