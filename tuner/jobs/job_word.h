// The JOB of a command line: "j3" as `tuner jobs` lists it, or, as people write, the job file that was
// submitted.
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "db/store.h"

namespace tuner {

// Returns the job's id. Of a file it is the newest job of this database all of whose tasks are in the file;
// which one is said on stderr. `store`: null where the jobs are a daemon's: a file is then wrong use.
Result<std::string> job_of_word(const std::string& word, const Store* store);

}  // namespace tuner
