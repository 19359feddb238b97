// Reads files: those that a user names, and our own.
//
// Whatever a user names, the answer comes soon: folders, endless devices, and FIFOs that nobody writes to are
// refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "compiler_core/base/status.h"

namespace tuner {

// Opens a file for reading; the caller closes the descriptor. "-" is standard input. `expected` ends the
// message: "a job file". InvalidArgument: it cannot be read.
Result<int> open_input(const std::string& path, const std::string& expected);

// Reads the whole file. InvalidArgument: it cannot be read, or is longer than `most_bytes`.
Result<std::string> read_file(const std::string& path, const std::string& expected, size_t most_bytes);

// Reads a file written by us or by the kernel. NotFound: there is none. Failed: it is not a regular file,
// cannot be read, or is longer than `most_bytes`.
Result<std::string> read_whole(const std::string& path, size_t most_bytes = SIZE_MAX);

}  // namespace tuner
