// CRC-32C (Castagnoli), as in iSCSI and ext4: crc32c("123456789") == 0xe3069283.
#pragma once

#include <cstdint>
#include <string_view>

namespace tuner::db {

// `crc` is the result for the bytes before these; 0 at the start.
uint32_t crc32c(std::string_view bytes, uint32_t crc = 0);
// The same without the CPU's own instruction: what other CPUs run, and what a test compares with.
uint32_t crc32c_portable(std::string_view bytes, uint32_t crc = 0);

}  // namespace tuner::db
