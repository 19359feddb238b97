// Features of a scheduled Program for a cost model: a vector of fixed length that describes its hottest
// statement.
//
// The *hot statement* is the reducing store that runs most often; without a reduction, the store that does.
// The loops around it are read from the inside out. Counts, extents and bytes are given as log2(1 + x), so
// that a regression tree sees ratios. They are computed from the Program before lowering, in well under 200
// us, and are the same for any template and target.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/ir/stmt.h"

namespace tuner {

// Returns one value for each of program_feature_names(). Pure; any thread may call it.
std::vector<float> program_features(const Program& program);
const std::vector<std::string>& program_feature_names();

}  // namespace tuner
