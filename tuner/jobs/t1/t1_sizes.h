// Expressions of a T1 file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/jobs/t1/t1_file.h"

namespace tuner::t1 {

// The same expression in the syntax of templates/space/formula.h: True and False are 1 and 0.
// InvalidArgument: it does not parse, or names what is no parameter; "column 5: ...".
Result<std::string> expression_over(const std::vector<Parameter>& parameters, std::string_view text);

// The value of a "Size". It may use ProblemSize[0], max(NAME) and min(NAME) over a parameter's values, and
// parameters that have one value. InvalidArgument as above; NotFound: it depends on a parameter that has
// several values, which it names.
Result<int64_t> size_of(const std::vector<Parameter>& parameters, const std::vector<int64_t>& problem,
                        std::string_view text);

}  // namespace tuner::t1
