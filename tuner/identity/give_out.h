// Gives credentials out: lets a worker or a person in and writes the file that is brought to them.
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "tuner/identity/identity_folder.h"

namespace tuner::identity {

struct Wish {
  Entry::Kind kind = Entry::Kind::kToken;
  std::string name;
  std::string roles, tenant;  // tokens only
  bool fleet = false;         // workers only: many hosts share the file
  std::string address;        // HOST:PORT as the other host dials the daemon
  std::string output;         // the file, which must not exist; "-": stdout
  int days = 0;
};

// Returns the new entry. The file is one that only this user may read. If it cannot be written, what was let
// in is revoked again. InvalidArgument: an address, a role or a name is none, or there is such a file.
Result<Entry> give_out(const std::string& folder, const Wish& wish);

}  // namespace tuner::identity
