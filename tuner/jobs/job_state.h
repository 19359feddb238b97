// The state of a job as people are told it. A job whose process was killed stays "running" in the database;
// that nobody works on it shows when it is read: nobody holds the lock of the writer.
#pragma once

#include <string>

#include "db/records.h"

namespace tuner {

class JobStates {
 public:
  // Looks for the writer now: before the rows are read, so that a job that ends meanwhile is not called
  // interrupted.
  explicit JobStates(const std::string& db);

  bool is_interrupted(const JobRow& job) const;
  std::string name(const JobRow& job) const;     // as in the database, or "interrupted"
  std::string message(const JobRow& job) const;  // the job's own, or what to do about an interrupted one

 private:
  bool has_writer_;
};

}  // namespace tuner
