// The values of a tuning parameter as T1 files write them: an expression of Python that makes a list.
//
//   [1, 2, 4]   [0.5, 'rows', True]   list(range(32, 1025, 32))   [1] + [2 * i for i in range(9) if i != 3]
//
// A list, a tuple, a range, a comprehension with one `for`, or a sum of those. What is computed has the
// syntax of templates/space/formula.h: nothing else of Python is read, and nothing is run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::t1 {

// An integer (True is 1), a number with a fraction, or a word.
using Value = std::variant<int64_t, double, std::string>;

inline constexpr size_t kMostValues = 4096;  // of one parameter, as a job file may have
inline constexpr size_t kMostListBytes = size_t{64} << 10;

// In the order of the text, repetitions included; at least one. Takes time linear in the text and in the
// number of values. InvalidArgument in one line: "column 9: expected ...".
Result<std::vector<Value>> value_list(std::string_view text);

// As a compiler would be told: "16", "0.5", "rows".
std::string text_of(const Value& value);

}  // namespace tuner::t1
