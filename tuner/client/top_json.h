// What one look at a daemon found, as JSON (docs/json.md).
#pragma once

#include <string>

#include "tuner/client/top_view.h"

namespace tuner {

std::string top_json(const TopLook& look);  // one document, without a newline at its end

}  // namespace tuner
