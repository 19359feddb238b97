// Knobs that a source declares in comments, as CUB's benchmarks do:
//   // %RANGE% TUNE_ITEMS_PER_THREAD ipt 7:24:1
// a macro, a short name, and start:end:step, both ends included.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct RangeComment {
  std::string macro, label;
  int64_t from = 0, to = 0, step = 1;  // step > 0; `to` is a value of the range
  int line = 1;
};

// In the order of the text. InvalidArgument: "line 12: ..." with what a comment breaks.
Result<std::vector<RangeComment>> range_comments(std::string_view text);

}  // namespace tuner
