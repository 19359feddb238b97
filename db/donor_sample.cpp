#include "db/donor_sample.h"

#include <algorithm>

namespace tuner {

std::vector<int64_t> donor_sample(std::vector<RankedRecord> records, int most) {
  std::sort(records.begin(), records.end());
  const size_t wanted = std::min(records.size(), static_cast<size_t>(most)), first = wanted / 3;
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < wanted; ++i) {
    const size_t rest = i < first ? 0 : (i - first) * (records.size() - first) / (wanted - first);
    chosen.push_back(records[i < first ? i : first + rest].record_id);
  }
  return chosen;
}

}  // namespace tuner
