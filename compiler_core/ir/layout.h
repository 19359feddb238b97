// Layouts of shared memory: where the elements of a buffer lie, so that the threads of a warp access
// different banks. A layout is the text in BufferNode::layout; indices in Programs stay logical.
//
//   ""          row-major
//   "pad:P"     row-major with P unused elements after each row (the last dimension). A column walk over a
//               [32, 32] tile of float32 uses 32 banks with pad:1, and one bank without. P must keep vector
//               accesses aligned: a multiple of 4 for 16-byte ones.
//   "xor:V,R,S" row-major, with the last dimension in units of V elements. Unit u of row r is stored at unit
//               u xor (r / S mod R). Row r counts all leading dimensions. V, R and S are powers of two ("xor:V,R": S is
//               1), and the last dimension is a multiple of V * R. Costs no memory and keeps vectors of V whole. S rows
//               that together are as long as all banks need no other order: of rows of 64 bytes two, "xor:8,4,2" for 32
//               elements of 16 bits, of which eight rows of a unit then lie in all banks.
//   "groups:L"  the last dimension is a group that stays together: layout L, one of those above, with whole
//               groups in the place of elements. Of bytes in groups of four "groups:pad:1" lies as "pad:1"
//               does of words.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/expr.h"

namespace tuner {

// InvalidConfig: what is wrong with `layout` for a buffer of this shape.
Status check_layout(std::string_view layout, const std::vector<int64_t>& shape);
// Returns the elements of storage, unused ones included.
int64_t storage_elements(const BufferNode& buffer);
// Returns the position of an element, in elements from the start. Requires check_layout() and one index per
// dimension.
Expr storage_offset(const BufferNode& buffer, const std::vector<Expr>& indices);
// The same of numbers, for one element after the other of a buffer, which must live as long.
std::function<int64_t(const std::vector<int64_t>&)> storage_offsets(const BufferNode& buffer);
// Returns how many elements follow each other without a gap, which limits the width of a vector access: the
// last dimension for "" and "pad", V for "xor"; of groups so many groups.
int64_t contiguous_elements(const BufferNode& buffer);
// True if elements of a row lie in another order than their indices: an exclusive or.
bool reorders_rows(const BufferNode& buffer);

}  // namespace tuner
