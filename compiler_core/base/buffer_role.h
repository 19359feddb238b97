// What an argument of a kernel is to its caller. Manifests, headers and the C API have the names; code has
// the enumerators. The names stand in buffer_role.cpp alone.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>

namespace tuner {

// The role of a buffer for the caller.
enum class BufferRole : uint8_t {
  kInput,         // read; new data every call
  kConstant,      // read; the same in every call, so the packing entry may pack it ahead
  kOutput,        // written in full
  kPacked,        // a constant after packing: written by the packing entry, read by the main one
  kIntermediate,  // inside the Program
  kInOut,  // holds an operand before the call and the output after it: out += a * b. Each element is read
           // before it is written (analysis/in_place.h)
};
std::string_view buffer_role_name(BufferRole role);  // "input"
std::optional<BufferRole> buffer_role_from_name(std::string_view name);
std::ostream& operator<<(std::ostream& out, BufferRole role);
// True if the caller gives the elements of such an argument.
constexpr bool is_given(BufferRole role) {
  return role == BufferRole::kInput || role == BufferRole::kConstant || role == BufferRole::kInOut;
}
// True if a call leaves its answer there.
constexpr bool is_result(BufferRole role) {
  return role == BufferRole::kOutput || role == BufferRole::kInOut;
}

}  // namespace tuner
