// Names that become C: functions, libraries, macros.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

// OK when `name` can be a function in C and C++ and a library's name: an identifier of letters, digits and
// underscores that is no keyword, at most 200 long, and that starts neither with a digit, nor with `tuner_`
// (ours), nor as the language reserves it (`_`). InvalidArgument says what was expected.
Status check_c_name(std::string_view name);

// The nearest name that passes: "weight.packed" -> "weight_packed", "3x3" -> "k_3x3", "double" -> "double_".
std::string as_c_name(std::string_view text);

// "conv_lib" -> "CONV_LIB".
std::string as_macro(std::string_view name);

}  // namespace tuner
