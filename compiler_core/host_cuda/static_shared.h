// Arrays in shared memory, in the assembly that the host's compiler makes.
#pragma once

#include <string>

namespace tuner {

// Bytes behind each array that nobody may touch; device/watch.cpp has the same number.
inline constexpr int kSharedRimBytes = 256;

// `assembly` (of GNU as, for ELF) with a rim behind each variable that a function keeps without an initial
// value, which is what __shared__ becomes, and a table of their addresses, sizes and names in the section
// host_cuda_table.
std::string with_shared_table(const std::string& assembly);

}  // namespace tuner
