// What `tuner report` tells of a job, as one JSON document; page.html draws it.
//
// Read from the database alone; only the roofs of this machine are measured, when the task is of this
// machine. The document is versioned by its "format"; README.md lists its keys.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "db/store.h"

namespace tuner {

struct ReportOptions {
  int baseline_seeds = 10;
  // Share of a played baseline's proposals that must be recorded, or nothing is concluded from it.
  double least_coverage = 0.9;
  bool measure_roofs = true;
  std::function<void(const std::string&)> progress = [](const std::string&) {};  // a line for people
};

// NotFound: no such job. A task whose templates this program lacks is reported without its space.
Result<nlohmann::ordered_json> report_facts(const Store& store, const std::string& job_id,
                                            const ReportOptions& options);

}  // namespace tuner
