// Collects what `tuner report` tells about a job, as one JSON document; page.html draws it.
//
// It reads only the database, except that it measures this machine's roofs if the task is for this machine.
// The document has a version, its "format"; README.md lists its keys.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "db/store.h"

namespace tuner {

struct ReportOptions {
  int baseline_seeds = 10;
  // Share of a replayed baseline's proposals that must be recorded; below it nothing is concluded.
  double least_coverage = 0.9;
  bool measure_roofs = true;
  std::function<void(const std::string&)> progress = [](const std::string&) {};  // receives a line for people
};

// NotFound: no such job. A task whose templates are missing in this program is reported without its space.
Result<nlohmann::ordered_json> report_facts(const Store& store, const std::string& job_id,
                                            const ReportOptions& options);

}  // namespace tuner
