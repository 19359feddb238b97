#include "db/crc32c.h"

#include <array>
#include <cstring>

namespace tuner::db {

namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
    table[i] = c;
  }
  return table;
}

#if defined(__x86_64__) && defined(__GNUC__)
// A race's row is tens of kilobytes: byte by byte its checksum would cost more than reading it.
__attribute__((target("sse4.2"))) uint32_t crc32c_sse42(std::string_view bytes, uint32_t crc) {
  uint64_t c = ~crc;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    c = __builtin_ia32_crc32di(c, word);
  }
  auto narrow = static_cast<uint32_t>(c);
  for (; left > 0; --left, ++at) narrow = __builtin_ia32_crc32qi(narrow, static_cast<unsigned char>(*at));
  return ~narrow;
}
bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }
#else
uint32_t crc32c_sse42(std::string_view bytes, uint32_t crc) { return crc32c_portable(bytes, crc); }
bool has_instruction() { return false; }
#endif

}  // namespace

uint32_t crc32c_portable(std::string_view bytes, uint32_t crc) {
  static constexpr std::array<uint32_t, 256> kTable = make_table();
  crc = ~crc;
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

uint32_t crc32c(std::string_view bytes, uint32_t crc) {
  static const bool kHasInstruction = has_instruction();
  return kHasInstruction ? crc32c_sse42(bytes, crc) : crc32c_portable(bytes, crc);
}

}  // namespace tuner::db
