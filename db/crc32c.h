// CRC-32C (Castagnoli), as in iSCSI and ext4: crc32c("123456789") == 0xe3069283.
#pragma once

#include <cstdint>
#include <string_view>

namespace tuner::db {

// `crc` is the checksum of the bytes before these; 0 for the first bytes.
uint32_t crc32c(std::string_view bytes, uint32_t crc = 0);
// Like crc32c(), but without the CPU's own instruction. Other CPUs run this, and a test compares the two.
uint32_t crc32c_portable(std::string_view bytes, uint32_t crc = 0);

}  // namespace tuner::db
