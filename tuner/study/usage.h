// What tenants have used: all records of a database, by the tenants of their jobs.
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "db/store.h"

namespace tuner {

// A table that fits `width` columns (0: no limit), or one JSON document; both end with a newline.
Result<std::string> usage_text(const Store& store, int width);
Result<std::string> usage_json(const Store& store);

}  // namespace tuner
