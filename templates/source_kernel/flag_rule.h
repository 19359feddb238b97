// Which words of a compiler's command line a job may have, whoever runs it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

// OK for flags that optimise, choose a language version or an instruction set, define a macro or warn.
// Everything else is refused: what names files (-o, -I, -include, @file), loads code into the compiler
// (-fplugin), starts programs (-B, -wrapper), or speaks to other tools (-Wl,). InvalidArgument: the flag,
// escaped, and what is allowed.
Status check_flag(std::string_view flag);

// The same of NVRTC's command line.
Status check_cuda_flag(std::string_view flag);

// The names in braces of "-O{LEVEL}", in order. InvalidArgument: a brace without its other.
Result<std::vector<std::string>> names_in_flag(std::string_view flag);
// The flag with each {NAME} replaced by what `text_of` says of it. Requires names_in_flag(flag).
std::string expanded_flag(std::string_view flag,
                          const std::function<std::string(const std::string& name)>& text_of);

}  // namespace tuner
