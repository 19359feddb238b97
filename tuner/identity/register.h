// Register: whom a farm has let in: tokens of people, certificates of workers, shares of tenants, as values.
// It holds no secret: of a token only its SHA-256, of a certificate only its serial number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/identity/roles.h"
#include "tuner/identity/share.h"

namespace tuner::identity {

struct Entry {
  enum class Kind : uint8_t { kToken, kWorker };
  Kind kind = Kind::kToken;
  std::string name;
  std::string mark;    // token: SHA-256 of it; worker: the certificate's serial; hexadecimal digits
  Roles roles;         // token: what it may do; worker: work
  std::string tenant;  // token: whose jobs it sees; empty: of nobody in particular
  int64_t made_s = 0, until_s = 0;  // seconds since 1970
  bool revoked = false;
};

struct Register {
  std::vector<Entry> entries;
  ShareByTenant shares;  // of tenants that were given one
};

// As the file of it: JSON. InvalidArgument names what is wrong.
std::string to_json(const Register& entries);
Result<Register> parse_register(std::string_view text);

// Names of tokens and workers are 1 to 64 of a-z, A-Z, 0-9, '-', '_'; workers' ids may go on with '.'
// (worker.h). InvalidArgument says what was found.
Status check_name(std::string_view name);

// A new token: "tuner_" and 256 random bits.
std::string make_token();
// What the register keeps of a token.
std::string mark_of(std::string_view token);

// "2027-02-21 14:03 UTC"
std::string date_text(int64_t seconds);

}  // namespace tuner::identity
