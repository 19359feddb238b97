// Makes and checks names for C: functions, libraries, macros.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

// OK if `name` can name a function in C and C++, and a library: an identifier of at most 200 letters, digits
// and underscores that is not a keyword and starts neither with a digit, nor with `tuner_` (ours), nor with
// `_` (reserved). InvalidArgument says what was expected.
Status check_c_name(std::string_view name);

// Returns the nearest valid name: "weight.packed" -> "weight_packed", "3x3" -> "k_3x3", "double" ->
// "double_".
std::string as_c_name(std::string_view text);

// "conv_lib" -> "CONV_LIB".
std::string as_macro(std::string_view name);

}  // namespace tuner
