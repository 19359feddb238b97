// What families of tile intrinsics on x86 CPUs share. Private to this folder.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/ir/intrinsic.h"

namespace tuner {

constexpr int64_t kMostTileRows = 16;

// amx.OF.ROWS: `of` names the types it multiplies, "bfloat16" or "uint8.int8"; `llvm` and `feature` are those
// of the Intrinsic.
Intrinsic amx_product(std::string_view of, DType a, DType b, DType sum, int64_t rows, std::string llvm,
                      std::string feature);
// amx.load.T.ROWS, amx.groups.T
Intrinsic amx_load(DType dtype, int64_t rows);
Intrinsic amx_groups(DType dtype);

}  // namespace tuner
