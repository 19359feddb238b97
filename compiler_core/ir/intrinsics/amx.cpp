// amx: tiles of x86 CPUs (Intel's AMX). A tile register is up to 16 rows of 64 bytes.
//
// A group (tiles.h) fills 32 bits: 2 elements of 16 bits, 4 of 8. So a tile of A is R rows of 16 groups; one
// of B is 16 groups of k, each of 16 columns. Fewer rows of A and C (R < 16) take less time; the rest of a
// tile is full always.
#include "compiler_core/ir/intrinsics/amx.h"

#include "compiler_core/base/status.h"

namespace tuner {

const TileFamily& amx_family() {
  static const TileFamily family{.name = "amx",
                                 .columns = 16,
                                 .groups = 16,
                                 .group_bytes = 4,
                                 .fragments = Intrinsic::Fragments::kTileRegisters,
                                 .features = {"amx-tile"},
                                 .zero = "llvm.x86.tilezero",
                                 .load = "llvm.x86.tileloadd64",
                                 .store = "llvm.x86.tilestored64"};
  return family;
}

std::vector<Intrinsic> amx_intrinsics() {
  const TileFamily& amx = amx_family();
  std::vector<Intrinsic> all;
  const auto byte_product = [&](DType a, DType b, int64_t rows, const char* instruction) {
    all.push_back(tile_product(amx, str(dtype_name(a), ".", dtype_name(b)), a, b, DType::kInt32, rows,
                               str("llvm.x86.", instruction), "amx-int8"));
  };
  for (int64_t rows = 1; rows <= kMostTileRows; ++rows) {
    all.push_back(tile_product(amx, "bfloat16", DType::kBFloat16, DType::kBFloat16, DType::kFloat32, rows,
                               "llvm.x86.tdpbf16ps", "amx-bf16"));
    byte_product(DType::kInt8, DType::kInt8, rows, "tdpbssd");
    byte_product(DType::kInt8, DType::kUInt8, rows, "tdpbsud");
    byte_product(DType::kUInt8, DType::kInt8, rows, "tdpbusd");
    byte_product(DType::kUInt8, DType::kUInt8, rows, "tdpbuud");
    for (const DType sum : {DType::kFloat32, DType::kInt32}) {
      all.push_back(tile_zero(amx, sum, rows));
      all.push_back(tile_load_sums(amx, sum, rows));
      all.push_back(tile_store_sums(amx, sum, rows));
    }
    for (const DType t : {DType::kBFloat16, DType::kInt8, DType::kUInt8})
      all.push_back(tile_load(amx, t, rows));
  }
  for (const DType t : {DType::kBFloat16, DType::kInt8, DType::kUInt8}) all.push_back(tile_groups(amx, t));
  return all;
}

}  // namespace tuner
