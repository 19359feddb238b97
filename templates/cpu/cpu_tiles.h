// Shared by products on the tiles of a CPU's matrix unit (AMX): a block of tiles of sums, in tile registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/schedule/schedule.h"

namespace tuner::cpu {

// Of tiles: rows at most, columns of the sums, groups of 32 bits along k; and tile registers.
constexpr int64_t kTileRows = 16, kTileColumns = 16, kTileGroups = 16, kTileRegisters = 8;

// Elements that fill 32 bits, and those of a step: what one product of tiles adds up.
inline int64_t tile_group(DType dtype) { return std::max<int64_t>(1, 4 / dtype_bytes(dtype)); }
inline int64_t tile_step(DType dtype) { return kTileGroups * tile_group(dtype); }

// `down` x `across` tiles of sums, each of `rows` rows.
struct TileBlock {
  int64_t rows, down, across;
};

// Returns the rows of a tile worth trying for m rows: as few tiles as can be, and as equal (less work on zeros), and
// full ones.
std::vector<int64_t> tile_rows(int64_t m);

// The loop over panels of b (or of a) and the one over blocks of tiles inside it: each block asks the caches for a part
// of the next panel.
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
// a holds [.., rows, elements of k]; b, in groups, [.., groups, columns, inside of the group]: packed in panels of 16
// columns or with the columns of many tiles side by side.
// With `carried`, sums in memory that these are a part of: C = carried, in place of 0 (Schedule::carry_sums).
void sum_in_tiles(Schedule& s, const Tensor& sums, const Tensor& a, const Tensor& b, const TileBlock& block,
                  const std::optional<NextPanel>& next = {}, const Tensor& carried = {});
// The sums of `acc`, one block of tiles in memory: in fragments first.
void sum_through_memory(Schedule& s, const Tensor& acc, const Tensor& a, const Tensor& b,
                        const TileBlock& block, const std::optional<NextPanel>& next = {});

// Returns the intrinsic that stores a tile of the sums.
std::string tile_store(const Tensor& sums, const TileBlock& block);
// Loops of a copy, by an intrinsic for each tile: `axes` are cut into tiles by `cut`, those without a number there are
// whole; `around` are loops directly around them.
void by_tiles(Schedule& s, std::vector<Axis> around, const std::vector<Axis>& axes,
              const std::vector<int64_t>& cut, const std::string& intrinsic);

}  // namespace tuner::cpu
