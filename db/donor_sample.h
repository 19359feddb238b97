// Chooses the records of a task that another search learns from. Every engine makes the same choice.
#pragma once

#include <cstdint>
#include <vector>

namespace tuner {

// One record to choose from. The order puts the fastest first and failed ones last.
struct RankedRecord {
  bool failed = false, cut = false;
  double time_ns = 0;
  int64_t record_id = 0;
  auto operator<=>(const RankedRecord&) const = default;
};

// Returns the ids of at most `most` records: a third are the fastest, the others are spread evenly over the
// rest. The order of the input does not matter.
std::vector<int64_t> donor_sample(std::vector<RankedRecord> records, int most);

}  // namespace tuner
