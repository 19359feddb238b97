// Shared by products on the tiles of a CPU's matrix unit (AMX, Arm's i8mm and bf16): a block of tiles of
// sums, in registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/schedule/schedule.h"
#include "compiler_core/target.h"

namespace tuner::cpu {

// `down` x `across` tiles of sums, each of `rows` rows.
struct TileBlock {
  int64_t rows, down, across;
};

// One kind of matrix unit, as its intrinsics have it (ir/intrinsics/tiles.h).
struct TileUnit {
  std::string_view name;         // first word of the intrinsics
  int64_t least_rows, rows;      // of a tile
  int64_t columns;               // of the sums
  int64_t groups, group_bytes;   // along k
  int64_t registers;             // that hold a tile each
  std::vector<int64_t> lengths;  // of blocks, in tiles, that are worth trying, ascending
  int64_t first_length;          // of a block
  // Where tiles are packed: those of a block side by side, one stream; else each in lines of its own.
  bool packs_blocks;

  // Elements of a group, and those of a step: what one product of tiles adds up.
  int64_t group(DType dtype) const { return std::max<int64_t>(1, group_bytes / dtype_bytes(dtype)); }
  int64_t step(DType dtype) const { return groups * group(dtype); }
  // So many terms leave most of a tile empty.
  int64_t few_terms(DType dtype) const { return groups > 1 ? group(dtype) : group(dtype) / 2; }
  // Elements of the rows, or columns, that packed operands have side by side.
  int64_t packed_rows(const TileBlock& block) const;
  int64_t packed_columns(const TileBlock& block) const;
  // Returns the rows of a tile worth trying for m rows: as few tiles as can be, and as equal (less work on
  // zeros), and full ones.
  std::vector<int64_t> rows_for(int64_t m) const;
  // Tiles of a first block, below and beside each other, of so many that there are.
  struct FirstBlock {
    int64_t down, across;
  };
  FirstBlock first_block(int64_t down, int64_t across) const;
};
// AMX; and small matrices in vectors of AArch64 (i8mm, bf16).
const TileUnit& amx_tiles();
const TileUnit& vector_tiles();
// That of a CPU which has tiles (Target::has_tiles).
const TileUnit& tile_unit(const Target& t);

// The loop over panels of b (or of a) and the one over blocks of tiles inside it: each block asks the caches
// for a part of the next panel.
struct NextPanel {
  Axis panel, blocks;
  bool of_a = false;
};

// Schedules `sums`, a block of tiles in fragments:
//
//   C = 0
//   for the reduce axes but the last, for step of the last
//     `down` tiles of a, `across` tiles of b: loads
//     down * across products
//
// a holds [.., rows, elements of k]; b, in groups, [.., groups, columns, inside of the group]: packed in
// panels of a tile's columns or with the columns of many tiles side by side.
// With `carried`, sums in memory that these are a part of: C = carried, in place of 0 (Schedule::carry_sums).
void sum_in_tiles(Schedule& s, const TileUnit& unit, const Tensor& sums, const Tensor& a, const Tensor& b,
                  const TileBlock& block, const std::optional<NextPanel>& next = {},
                  const Tensor& carried = {});
// The sums of `acc`, one block of tiles in memory: in fragments first.
void sum_through_memory(Schedule& s, const TileUnit& unit, const Tensor& acc, const Tensor& a,
                        const Tensor& b, const TileBlock& block, const std::optional<NextPanel>& next = {});

// Returns the intrinsic that stores a tile of the sums.
std::string tile_store(const TileUnit& unit, const Tensor& sums, const TileBlock& block);
// Loops of a copy, by an intrinsic for each tile: `axes` are cut into tiles by `cut`, those without a number
// there are whole; `around` are loops directly around them.
void by_tiles(Schedule& s, std::vector<Axis> around, const std::vector<Axis>& axes,
              const std::vector<int64_t>& cut, const std::string& intrinsic);

}  // namespace tuner::cpu
