// Searches played on recorded rows, for people and as JSON: what `tuner study whatif` prints.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tuner/study/whatif_play.h"

namespace tuner {

struct WhatIfLine {
  std::string name;  // of the strategy, or of the job
  WhatIfResult result;
  bool concludes = true;  // enough of its proposals are recorded
};

// A table with a line per strategy that concludes, then why the others do not; ends with a newline.
// `least_coverage`: percent of the proposals that must be recorded.
std::string whatif_text(const std::vector<WhatIfLine>& lines, const std::vector<size_t>& marks,
                        double least_coverage);
nlohmann::ordered_json whatif_json(const WhatIfLine& line, const std::vector<size_t>& marks);

}  // namespace tuner
