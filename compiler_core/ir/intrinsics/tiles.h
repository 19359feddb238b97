// What families of tile intrinsics share: products of one form, and copies of their tiles. Private to this
// folder.
//
//   C[i, j] += sum over g, e of A[i, g * D + e] * B[g, j, e]
//
// A group is the D elements along k that an instruction adds up in one place of C. So a tile of A is R rows
// of groups, one of B is groups of k, each of some columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/ir/intrinsic.h"

namespace tuner {

struct TileFamily {
  std::string name;  // first word of its intrinsics: "amx"
  int64_t columns, groups, group_bytes;
  Intrinsic::Fragments fragments;
  std::vector<std::string> features;  // that every one of them takes
  std::string zero, load, store;      // LLVM's intrinsics; empty for vectors
};

// NAME.OF.ROWS: `of` names the types it multiplies, "bfloat16" or "uint8.int8"; `llvm` is that of the
// Intrinsic, `feature` what it takes besides.
Intrinsic tile_product(const TileFamily& family, std::string_view of, DType a, DType b, DType sum,
                       int64_t rows, std::string llvm, std::string feature);
// NAME.zero.T.ROWS, of a tile of C.
Intrinsic tile_zero(const TileFamily& family, DType dtype, int64_t rows);
// NAME.load.T.ROWS of a tile of A; NAME.groups.T of B; NAME.load.T.ROWS and NAME.store.T.ROWS of C.
Intrinsic tile_load(const TileFamily& family, DType dtype, int64_t rows);
Intrinsic tile_groups(const TileFamily& family, DType dtype);
Intrinsic tile_load_sums(const TileFamily& family, DType dtype, int64_t rows);
Intrinsic tile_store_sums(const TileFamily& family, DType dtype, int64_t rows);

}  // namespace tuner
