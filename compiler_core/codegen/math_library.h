// What kernels need of the C library's mathematics: the emitter expands the common functions and calls libm
// for the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"

namespace tuner::codegen {

// The functions of libm that these relocatable objects call, each once, sorted. Internal: bytes that are no
// object.
Result<std::vector<std::string>> math_calls(const std::vector<std::string>& objects);

// Writes a shared object that defines these functions and stands for `soname` in a link: what is linked with
// it asks for that library when it is loaded. It holds no code. libm.so.6 is glibc's, on every architecture
// that there are targets for.
Status write_stub(const std::string& path, std::string_view soname, const std::vector<std::string>& functions,
                  const Target& target);

}  // namespace tuner::codegen
