// A shared object that a user names, as far as one can see without loading it: for which CPU it is, and what
// it offers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct SharedObject {
  uint16_t machine = 0;                // of the ELF header
  std::vector<std::string> functions;  // it exports, in its order; each once
};

// Reads the bytes of `path`. InvalidArgument, with the path: no ELF shared object of 64 bits, or a damaged
// one.
Result<SharedObject> read_shared_object(std::string_view bytes, const std::string& path);

// "x86-64", "aarch64", "ELF machine 8".
std::string machine_name(uint16_t machine);

}  // namespace tuner
