// Which records of a task another search learns from: the same choice in every engine.
#pragma once

#include <cstdint>
#include <vector>

namespace tuner {

// Of records with ids up to a bound; ordered fastest first, those that failed last.
struct RankedRecord {
  bool failed = false, cut = false;
  double time_ns = 0;
  int64_t record_id = 0;
  auto operator<=>(const RankedRecord&) const = default;
};

// The ids of at most `most`: a third are the fastest, the others an even choice of the rest. The same records
// give the same ids, in whatever order they come.
std::vector<int64_t> donor_sample(std::vector<RankedRecord> records, int most);

}  // namespace tuner
