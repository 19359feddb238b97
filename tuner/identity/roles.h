// Roles: what a caller may do, and which of them each call needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner::identity {

enum class Role : uint8_t {
  kQuery = 1,   // ask: what was tuned, how jobs and workers stand
  kSubmit = 2,  // have trials run: code on the workers
  kWork = 4,    // be a worker
  kAdmin = 8,   // the rest: workers set aside, shares
};

// A set of roles. Who submits may query; who administers may do both.
class Roles {
 public:
  constexpr Roles() = default;
  constexpr Roles(Role role) : bits_(static_cast<uint8_t>(role)) {}
  static constexpr Roles all() { return Roles(uint8_t{15}); }
  constexpr Roles operator|(Roles other) const { return Roles(static_cast<uint8_t>(bits_ | other.bits_)); }
  constexpr bool has(Role role) const { return (bits_ & static_cast<uint8_t>(role)) != 0; }
  // Whether a caller with these may make a call that asks for `role`.
  constexpr bool allow(Role role) const {
    return has(role) || (role == Role::kQuery && (has(Role::kSubmit) || has(Role::kAdmin))) ||
           (role == Role::kSubmit && has(Role::kAdmin));
  }
  constexpr bool empty() const { return bits_ == 0; }
  bool operator==(const Roles&) const = default;

 private:
  explicit constexpr Roles(uint8_t bits) : bits_(bits) {}
  uint8_t bits_ = 0;
};

std::string_view role_name(Role role);  // "submit"
std::string roles_text(Roles roles);    // "query,submit"
// InvalidArgument: a word that is no role, or none at all.
Result<Roles> parse_roles(std::string_view text);

// One row of the role table: every call that the daemon answers is in it.
// tests/tuner/identity/role_table_test walks the services of proto/ and calls each without its role.
struct CallRule {
  std::string_view method;  // "/tuner.v1.Jobs/Submit"
  Role role;
};
std::span<const CallRule> role_table();
// The role that a call asks for. The method must be in the table.
Role role_of(std::string_view method);

}  // namespace tuner::identity
