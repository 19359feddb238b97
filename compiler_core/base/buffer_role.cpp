#include "compiler_core/base/buffer_role.h"

#include <array>
#include <ostream>

namespace tuner {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 6> kNames = {"input",  "constant",     "output",
                                                    "packed", "intermediate", "inout"};

}  // namespace

std::string_view buffer_role_name(BufferRole role) { return kNames[static_cast<size_t>(role)]; }

std::optional<BufferRole> buffer_role_from_name(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<BufferRole>(i);
  return std::nullopt;
}

std::ostream& operator<<(std::ostream& out, BufferRole role) { return out << buffer_role_name(role); }

}  // namespace tuner
