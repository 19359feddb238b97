// Features of a scheduled Program for a cost model: a fixed-length vector of what its hottest statement looks
// like.
//
// The *hot statement* is the reducing store that runs most often (or, without a reduction, the store that
// does). Loops around it are read from the inside out. Counts, extents and bytes stand as log2(1 + x), so
// that a regression tree sees ratios. Computed from the Program before lowering, in well under 200 us; the
// same for any template and target.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/ir/stmt.h"

namespace tuner {

// Pure; may be called from any thread. Always as long as program_feature_names().
std::vector<float> program_features(const Program& program);
const std::vector<std::string>& program_feature_names();

}  // namespace tuner
