// mmla: small matrices in vectors of AArch64 (FEAT_I8MM, FEAT_BF16). A tile is one vector of 128 bits.
//
//   C[2, 2] += A[2, D] * B[1, 2, D]     D is 8 bytes or 4 bfloat16: smmla, ummla, usmmla; bfmmla
//
// Where bytes of A are signed and those of B are not there is no instruction. bfmmla rounds sums of two
// products to odd, and takes denormals as zeros.
#include "compiler_core/base/status.h"
#include "compiler_core/ir/intrinsics/tiles.h"

namespace tuner {

std::vector<Intrinsic> mmla_intrinsics() {
  const TileFamily mmla{.name = "mmla",
                        .columns = 2,
                        .groups = 1,
                        .group_bytes = 8,
                        .fragments = Intrinsic::Fragments::kVectors,
                        .features = {"neon"},
                        .zero = "",
                        .load = "",
                        .store = ""};
  constexpr int64_t kRows = 2;
  std::vector<Intrinsic> all;
  const auto byte_product = [&](DType a, DType b, const char* instruction) {
    all.push_back(tile_product(mmla, str(dtype_name(a), ".", dtype_name(b)), a, b, DType::kInt32, kRows,
                               str("llvm.aarch64.neon.", instruction), "i8mm"));
  };
  byte_product(DType::kInt8, DType::kInt8, "smmla");
  byte_product(DType::kUInt8, DType::kUInt8, "ummla");
  byte_product(DType::kUInt8, DType::kInt8, "usmmla");
  all.push_back(tile_product(mmla, "bfloat16", DType::kBFloat16, DType::kBFloat16, DType::kFloat32, kRows,
                             "llvm.aarch64.neon.bfmmla", "bf16"));
  for (const DType sum : {DType::kFloat32, DType::kInt32}) {
    all.push_back(tile_zero(mmla, sum, kRows));
    all.push_back(tile_load_sums(mmla, sum, kRows));
    all.push_back(tile_store_sums(mmla, sum, kRows));
  }
  for (const DType t : {DType::kBFloat16, DType::kInt8, DType::kUInt8}) {
    all.push_back(tile_load(mmla, t, kRows));
    all.push_back(tile_groups(mmla, t));
  }
  return all;
}

}  // namespace tuner
