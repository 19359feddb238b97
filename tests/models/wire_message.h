// A protobuf message written field by field, by numbers and without a description of it.
#pragma once

#include <cstdint>
#include <string>

namespace tuner::testing {

class WireMessage {
 public:
  WireMessage& number(uint32_t field, int64_t value);
  // A float of 32 bits.
  WireMessage& real(uint32_t field, double value);
  // A string, bytes, or packed numbers.
  WireMessage& text(uint32_t field, const std::string& value);
  WireMessage& message(uint32_t field, const WireMessage& value) { return text(field, value.bytes_); }
  // What no method above writes: this tag, varints and all.
  WireMessage& raw(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// A varint, as tags, lengths and integers are.
std::string varint(uint64_t value);

}  // namespace tuner::testing
