#include "tests/models/wire_message.h"

#include <bit>

namespace tuner::testing {
namespace {

enum WireType : uint64_t { kVarint = 0, kLength = 2, kFixed32 = 5 };

std::string tag(uint32_t field, WireType type) { return varint(uint64_t{field} << 3 | type); }

}  // namespace

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

WireMessage& WireMessage::number(uint32_t field, int64_t value) {
  return raw(tag(field, kVarint) + varint(static_cast<uint64_t>(value)));
}

WireMessage& WireMessage::real(uint32_t field, double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  std::string bytes = tag(field, kFixed32);
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift);
  return raw(bytes);
}

WireMessage& WireMessage::text(uint32_t field, const std::string& value) {
  return raw(tag(field, kLength) + varint(value.size())).raw(value);
}

}  // namespace tuner::testing
