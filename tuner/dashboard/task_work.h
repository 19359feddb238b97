// TaskWork: what the page asks to be done with the answer for one task of a database, by running a command of
// this program: its library, and whether its time is still true.
//
// A call takes from a second to minutes, and measures or compiles meanwhile, so there is one at a time.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "db/records.h"
#include "tuner/dashboard/fact_source.h"

namespace tuner::dashboard {

class TaskWork {
 public:
  // `db`: path of the database. `program`: path of `tuner`.
  explicit TaskWork(std::string db, std::string program = "/proc/self/exe")
      : db_(std::move(db)), program_(std::move(program)) {}

  // The task's best known kernel as `tuner build` writes it: libraries, header, packages.
  // InvalidArgument: what the command says. Unavailable: another call has not ended, or it took too long.
  Result<Download> library(const JobRow::Task& task) const;
  // {"inside": whether the time is inside its interval, "verified": as `tuner verify --times --json`}.
  // Errors as above.
  Result<std::string> verify(const JobRow::Task& task) const;

 private:
  const std::string db_, program_;
  mutable std::mutex one_;  // held while a command runs
};

}  // namespace tuner::dashboard
