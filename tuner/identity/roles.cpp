#include "tuner/identity/roles.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "compiler_core/base/json_reader.h"

namespace tuner::identity {
namespace {

constexpr std::array kRoles{Role::kQuery, Role::kSubmit, Role::kWork, Role::kAdmin};

// clang-format off
constexpr std::array kTable{
    CallRule{"/tuner.v1.Jobs/Submit", Role::kSubmit},
    CallRule{"/tuner.v1.Jobs/Cancel", Role::kSubmit},
    CallRule{"/tuner.v1.Jobs/Rerun", Role::kSubmit},
    CallRule{"/tuner.v1.Jobs/Remeasure", Role::kSubmit},
    CallRule{"/tuner.v1.Jobs/Watch", Role::kQuery},
    CallRule{"/tuner.v1.Jobs/List", Role::kQuery},
    CallRule{"/tuner.v1.Jobs/ListWorkers", Role::kQuery},
    CallRule{"/tuner.v1.Jobs/Query", Role::kQuery},
    CallRule{"/tuner.v1.Jobs/ReadJobFile", Role::kQuery},
    CallRule{"/tuner.v1.Jobs/Records", Role::kQuery},
    CallRule{"/tuner.v1.Jobs/Races", Role::kQuery},
    CallRule{"/tuner.v1.Admin/Drain", Role::kAdmin},
    CallRule{"/tuner.v1.Admin/Prune", Role::kAdmin},
    CallRule{"/tuner.v1.Workers/Register", Role::kWork},
    CallRule{"/tuner.v1.Workers/Sync", Role::kWork},
    CallRule{"/tuner.v1.Blobs/Read", Role::kWork},
    CallRule{"/tuner.v1.Blobs/Write", Role::kWork},
};
// clang-format on

}  // namespace

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kQuery:
      return "query";
    case Role::kSubmit:
      return "submit";
    case Role::kWork:
      return "work";
    case Role::kAdmin:
      return "admin";
  }
  return "no role";
}

std::string roles_text(Roles roles) {
  std::string text;
  for (const Role role : kRoles)
    if (roles.has(role)) text += str(text.empty() ? "" : ",", role_name(role));
  return text;
}

Result<Roles> parse_roles(std::string_view text) {
  Roles roles;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const auto* const found =
        std::find_if(kRoles.begin(), kRoles.end(), [&](Role role) { return role_name(role) == word; });
    if (found == kRoles.end())
      return invalid_argument(
          "roles: expected words of query, submit, work and admin with commas between, found ",
          json_input::found(nlohmann::json(std::string(word))));
    roles = roles | *found;
  }
  if (roles.empty()) return invalid_argument("roles: expected at least one of query, submit, work and admin");
  return roles;
}

std::span<const CallRule> role_table() { return kTable; }

Role role_of(std::string_view method) {
  const auto* const found =
      std::find_if(kTable.begin(), kTable.end(), [&](const CallRule& rule) { return rule.method == method; });
  CHECK(found != kTable.end()) << method << " has no row in the role table";
  return found->role;
}

}  // namespace tuner::identity
