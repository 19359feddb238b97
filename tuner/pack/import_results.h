// `tuner records import`: turns results of `runner run-pack` into measure records, as if a worker here had
// made them.
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
  int64_t known = 0;                 // records that were already there
  std::vector<std::string> skipped;  // lines that are not results: "line 7: outcome: found \"fine\""
};

// Stores the results of the file: one finished job (search "import") per pack, one trial per config, one
// record per result. The record of a config's last round closes its trial and ranks it; those of earlier
// rounds are kept as extra samples. Importing the file again changes nothing; a longer file adds what is new.
// Damaged lines are skipped and reported. InvalidArgument: the file cannot be read or holds no result.
Result<std::vector<ImportReport>> import_results(const std::string& path, Store& store);

}  // namespace tuner
