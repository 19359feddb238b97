// The state of a job as people see it. A job whose process was killed stays "running" in the database. When
// it is read, the free writer lock shows that nobody works on it.
#pragma once

#include <string>

#include "db/records.h"

namespace tuner {

class JobStates {
 public:
  // Checks for a writer. Create this before reading the rows, so that a job that ends meanwhile is not called
  // interrupted.
  explicit JobStates(const std::string& db);

  bool is_interrupted(const JobRow& job) const;
  std::string name(const JobRow& job) const;     // as in the database, or "interrupted"
  std::string message(const JobRow& job) const;  // the job's own, or what to do about an interrupted one

 private:
  bool has_writer_;
};

}  // namespace tuner
