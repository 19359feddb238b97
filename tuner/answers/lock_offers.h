// What `tuner lock` is given, as configs that may be locked: job files, which a database or a daemon answers,
// and folders that were built, which say themselves what they are.
#pragma once

#include <string>
#include <vector>

#include "tuner/answers/lock_update.h"

namespace tuner {

struct LockRequest {
  std::vector<std::string> files;  // job files ("-": standard input) and folders
  std::string db, daemon;          // who answers job files, as AskerOptions
  std::string target, constants;   // instead of those of job files; empty: theirs
  bool defaults = false;           // default configs may be locked
  bool database_may_miss = false;
};

// One offer of each task: a choice before what is none. InvalidArgument: a file that is neither, or two that
// chose different configs for one task; NotFound: no database, and it is needed. A missing database that is
// not needed is told on stderr.
Result<std::vector<LockOffer>> lock_offers(const LockRequest& request);

// The commands that tune the job files, joined by semicolons.
std::string tune_command(const std::vector<std::string>& files);

}  // namespace tuner
