// What an import found in a file, for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "db/exchange/import_file.h"

namespace tuner {

// Counts on stdout; on stderr what was skipped, and rows that the job's space does not have.
void print_import_report(const exchange::ImportReport& r);
// An element of `records import --json` (docs/json.md).
nlohmann::ordered_json import_report_json(const exchange::ImportReport& r);

}  // namespace tuner
