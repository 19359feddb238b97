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
// chose different configs for one task; NotFound: no database, and it is needed. `notice` gets a line for
// people where one is missing that is not needed.
Result<std::vector<LockOffer>> lock_offers(const LockRequest& request, std::string& notice);

// The commands that tune the job files, joined by semicolons.
std::string tune_command(const std::vector<std::string>& files);

}  // namespace tuner
