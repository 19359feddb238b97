#include "tuner/study/usage.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tuner/text/terminal.h"

namespace tuner {

Result<std::string> usage_text(const Store& store, int width) {
  ASSIGN_OR_RETURN(const std::vector<UsageRow> rows, store.usage());
  TextTable table({{"TENANT", 5, 8}, {"JOBS", 3, 0, true}, {"TRIALS", 4, 0, true}, {"DEVICE S", 5, 0, true}});
  for (const UsageRow& row : rows) {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.1f", row.device_s);
    table.add({row.tenant.empty() ? "(none)" : row.tenant, str(row.jobs), str(row.trials), seconds});
  }
  return table.text(width);
}

Result<std::string> usage_json(const Store& store) {
  ASSIGN_OR_RETURN(const std::vector<UsageRow> rows, store.usage());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const UsageRow& row : rows)
    list.push_back(
        {{"tenant", row.tenant}, {"jobs", row.jobs}, {"trials", row.trials}, {"device_s", row.device_s}});
  return list.dump(2) + "\n";
}

}  // namespace tuner
