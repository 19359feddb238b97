// Inline PTX of the kernels that codegen_cuda prints, for a compiler of the host.
#pragma once

#include <string>

namespace tuner {

// `text` with calls of device/units.h in place of each instruction that a template writes. What is not known
// stays, and the host's compiler refuses it.
std::string with_host_calls(std::string text);

// True if a text has such calls: units.h and what it declares must be there.
bool has_host_calls(const std::string& text);

}  // namespace tuner
