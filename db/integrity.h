// What a look at every row of a database found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tuner {

struct IntegrityReport {
  int64_t rows = 0;                 // that were read
  int64_t faults = 0;               // rows that are not what was written, and faults of tables and indexes
  std::vector<std::string> damage;  // the first of them, at most ten, a line each
  bool complete = true;             // false: it was ended before it had seen everything
};

}  // namespace tuner
