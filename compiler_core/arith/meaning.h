// Intrinsics read as what they mean: the loops of ir/intrinsic.h at the place of the statement.
//
// Of intrinsics whose operands are tiles of buffers: those of CPUs, and those of a GPU's warps before
// lowering spreads fragments over lanes. What runs or analyses a Program calls this and then knows loops and
// stores only. Pure; any thread may call it.
#pragma once

#include <functional>
#include <vector>

#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// True if no operand of it lies in lanes, so that its statements mean loops over buffers.
bool takes_tiles(const Intrinsic& intrinsic);
// True for a statement that names such an intrinsic.
bool is_tile_intrinsic(const StmtNode& s);
// Indices of an element of a tile in its buffer: those within the tile (`in_tile`) are of the last
// dimensions, counted from the tile's first element, at `origin`.
std::vector<Expr> in_buffer(std::vector<Expr> origin, const std::vector<Expr>& in_tile);
// Returns the buffer that a store or a tile intrinsic writes; null for any other statement.
Buffer written_buffer(const StmtNode& s);

// Returns the loops that a tile intrinsic stands for, with variables of their own: its meaning, each operand
// moved to the element that the statement names.
Stmt meaning_of(const StmtNode& s);

// Replaces every tile intrinsic below `s` by its loops. `s` itself if there is none.
Stmt with_meanings(const Stmt& s);

// Replaces those that `keep` declines, and all that share a fragment with one of them: it cannot be tile
// registers for some and memory for others. Fragments that no kept one uses become ordinary buffers.
Program with_meanings(const Program& program, const std::function<bool(const Intrinsic&)>& keep);

}  // namespace tuner
