// Buffers whose accesses read best as one storage offset, not as an index of each dimension.
#pragma once

#include <set>
#include <vector>

#include "compiler_core/arith/simplify.h"

namespace tuner::cuda {

// Divisions and remainders in a sum: what an index costs.
int divisions(const LinearForm& form);

// Returns the buffers that are to be indexed so. A layout that mixes dimensions has no index of a dimension
// to speak of; and the indices of a copy loop that runs through several dimensions at once are quotients and
// remainders, which meet again in the offset.
//
// `body`: the printed one; `ranges`: of blocks and threads; `shared`: the kernel's shared buffers.
std::set<const BufferNode*> flat_buffers(const Stmt& body, const RangeMap& ranges,
                                         const std::vector<Buffer>& shared);

}  // namespace tuner::cuda
