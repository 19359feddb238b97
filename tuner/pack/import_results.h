// `tuner records import`: results of `runner run-pack` become measure records, as if a worker here had made
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"

namespace tuner {

struct ImportReport {
  std::string job_id;
  int64_t lines = 0;                 // read
  int64_t trials = 0, records = 0;   // new in the database
  int64_t known = 0;                 // records that were there already
  std::vector<std::string> skipped;  // "line 7: outcome: found \"fine\"": lines that are no results
};

// Stores the results of the file: one finished job (search "import") for each pack in it, a trial for each
// config, a record for each result. The record of the last round a config came to closes its trial and is
// what it is ranked by; those of earlier rounds are kept as extra samples. The same file again changes
// nothing, and a longer one adds what is new. Damaged lines are skipped and told. InvalidArgument when the
// file cannot be read or holds no result.
Result<std::vector<ImportReport>> import_results(const std::string& path, Store& store);

}  // namespace tuner
