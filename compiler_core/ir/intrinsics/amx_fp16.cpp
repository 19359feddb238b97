// amx_fp16: tiles of float16 (AMX-FP16): C[R, 16] += A[R, 32] * B[16, 16, 2], sums in float32.
#include "compiler_core/ir/intrinsics/amx.h"

namespace tuner {

std::vector<Intrinsic> amx_fp16_intrinsics() {
  const TileFamily& amx = amx_family();
  std::vector<Intrinsic> all = {tile_groups(amx, DType::kFloat16)};
  for (int64_t rows = 1; rows <= kMostTileRows; ++rows) {
    all.push_back(tile_product(amx, "float16", DType::kFloat16, DType::kFloat16, DType::kFloat32, rows,
                               "llvm.x86.tdpfp16ps", "amx-fp16"));
    all.push_back(tile_load(amx, DType::kFloat16, rows));
  }
  return all;
}

}  // namespace tuner
