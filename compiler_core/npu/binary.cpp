// Files of instructions.
#include <cstring>

#include "compiler_core/npu/encoding.h"

namespace tuner::npu {
namespace {

constexpr std::string_view kMagic = "NPUCODE\n";
constexpr size_t kWordBytes = 16;

void put_number(std::string& out, uint64_t value, int bytes) {
  for (int b = 0; b < bytes; ++b) out += static_cast<char>(value >> (8 * b));
}
uint64_t number_at(std::string_view bytes, size_t at, int count) {
  uint64_t value = 0;
  for (int b = 0; b < count; ++b) value |= uint64_t{static_cast<uint8_t>(bytes[at + b])} << (8 * b);
  return value;
}

// FNV-1a, against damage, not against anybody.
uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

std::string write_binary(const Binary& binary) {
  std::string out(kMagic);
  put_number(out, kBinaryVersion, 4);
  put_number(out, binary.machine.size(), 4);
  put_number(out, binary.code.size(), 4);
  out += binary.machine;
  for (const Instruction& i : binary.code)
    for (const uint64_t half : encode(i)) put_number(out, half, 8);
  put_number(out, checksum(out), 8);
  return out;
}

Result<Binary> read_binary(std::string_view bytes) {
  constexpr size_t kHead = kMagic.size() + 12;
  if (!bytes.starts_with(kMagic))
    return invalid_argument("NPU binary: expected a file that begins with NPUCODE");
  if (bytes.size() < kHead + 8) return invalid_argument("NPU binary: cut off in its head");
  const uint64_t version = number_at(bytes, 8, 4), name = number_at(bytes, 12, 4),
                 count = number_at(bytes, 16, 4);
  if (version != kBinaryVersion)
    return invalid_argument("NPU binary: version ", version, ", expected ", kBinaryVersion,
                            ": compile the program again");
  if (bytes.size() != kHead + name + count * kWordBytes + 8)
    return invalid_argument("NPU binary: expected ", kHead + name + count * kWordBytes + 8, " bytes for ",
                            count, " instructions, found ", bytes.size());
  const size_t body = bytes.size() - 8;
  if (checksum(bytes.substr(0, body)) != number_at(bytes, body, 8))
    return invalid_argument("NPU binary: the checksum differs: the file is damaged");
  Binary binary{.machine = std::string(bytes.substr(kHead, name)), .code = {}};
  binary.code.reserve(count);
  for (size_t k = 0; k < count; ++k) {
    const size_t at = kHead + name + k * kWordBytes;
    Result<Instruction> i = decode({number_at(bytes, at, 8), number_at(bytes, at + 8, 8)});
    if (!i.is_ok()) return i.status().with_context(str("NPU binary: #", k, ": "));
    binary.code.push_back(*i);
  }
  return binary;
}

}  // namespace tuner::npu
