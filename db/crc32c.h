// CRC-32C (Castagnoli), as in iSCSI and ext4: crc32c("123456789") == 0xe3069283.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tuner::db {

namespace internal {
constexpr std::array<uint32_t, 256> crc32c_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
    table[i] = c;
  }
  return table;
}
}  // namespace internal

// `crc` is the result for the bytes before these; 0 at the start.
inline uint32_t crc32c(std::string_view bytes, uint32_t crc = 0) {
  static constexpr std::array<uint32_t, 256> kTable = internal::crc32c_table();
  crc = ~crc;
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

}  // namespace tuner::db
