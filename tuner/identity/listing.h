// Whom a daemon lets in, for people and as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "compiler_core/base/status.h"
#include "tuner/identity/identity_folder.h"

namespace tuner::identity {

// "good", "ended" or "revoked".
std::string state_of(const Entry& entry, int64_t now_s);

// "tenant vision: weight 3, at most 40 leases at once".
std::string share_text(const std::string& tenant, const Share& share);
// Lines that fit `width` columns (0: no limit), or one JSON document; both end with a newline.
Result<std::string> listing(const IdentityFolder& folder, int64_t now_s, int width);
Result<std::string> listing_json(const IdentityFolder& folder, int64_t now_s);

}  // namespace tuner::identity
