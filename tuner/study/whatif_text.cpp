#include "tuner/study/whatif_text.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tuner/text/format.h"
#include "tuner/text/hint.h"

namespace tuner {

std::string whatif_text(const std::vector<WhatIfLine>& lines, const std::vector<size_t>& marks,
                        double least_coverage) {
  std::string out;
  append_format(out, "%-20s", "% of the best, after");
  for (const size_t mark : marks) append_format(out, "  %16s", std::to_string(mark).c_str());
  append_format(out, "   recorded proposals\n");
  for (const WhatIfLine& line : lines) {
    if (!line.concludes) continue;
    append_format(out, "%-20s", line.name.c_str());
    const bool several = line.result.runs.size() > 1;
    for (const size_t mark : marks) {
      const WhatIfMark m = mark_after(line.result, mark);
      char text[48];
      if (several)
        std::snprintf(text, sizeof text, "%.1f [%.1f %.1f]", 100 * m.mean, 100 * m.low, 100 * m.high);
      else
        std::snprintf(text, sizeof text, "%.1f", 100 * m.mean);
      append_format(out, "  %16s", text);
    }
    append_format(out, "   %.1f %%\n", 100 * line.result.coverage());
    if (!several) continue;
    append_format(out, "%-20s", "  worst seed");
    for (const size_t mark : marks) append_format(out, "  %16.1f", 100 * mark_after(line.result, mark).worst);
    append_format(out, "\n");
  }
  for (const WhatIfLine& line : lines)
    if (!line.concludes)
      append_format(
          out,
          "%s: nothing can be concluded: %s of its %s proposals are recorded (%.1f %%), expected at least "
          "%g %%. More rows: %s; or --coverage PERCENT\n",
          line.name.c_str(), std::to_string(line.result.recorded()).c_str(),
          std::to_string(line.result.proposed()).c_str(), 100 * line.result.coverage(), least_coverage,
          command_line("submit FILE --trials all").c_str());
  return out;
}

nlohmann::ordered_json whatif_json(const WhatIfLine& line, const std::vector<size_t>& marks) {
  nlohmann::ordered_json j{{"strategy", line.name},
                           {"proposals", line.result.proposed()},
                           {"recorded", line.result.recorded()},
                           {"coverage", line.result.coverage()},
                           {"concludes", line.concludes}};
  if (!line.concludes) return j;
  j["after"] = nlohmann::ordered_json::array();
  for (const size_t mark : marks) {
    const WhatIfMark m = mark_after(line.result, mark);
    j["after"].push_back({{"trials", mark},
                          {"share_mean", m.mean},
                          {"share_interval", {m.low, m.high}},
                          {"share_worst", m.worst}});
  }
  return j;
}

}  // namespace tuner
