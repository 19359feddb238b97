// Collects what `tuner report` tells about a job, as one JSON document; page.html draws it.
//
// It reads only the database, but for one thing: of a task for this machine it measures what the machine can
// do at most (FLOP/s, bytes/s: the roofs of a roofline), some seconds on a core that should be idle. The
// document has a version, its "format"; README.md lists its keys.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "db/store.h"

namespace tuner {

struct ReportOptions {
  // Baselines: other searches, played on what this job measured, each with so many seeds, to tell what the
  // job's own search was worth. At least this share of their proposals must have been measured, or nothing is
  // concluded.
  int baseline_seeds = 10;
  double least_coverage = 0.9;
  bool measure_roofs = true;  // false: only the peak that the records have
  // Trials of the whole job that the page draws, each with its config. A page of a job with very many trials
  // stays small; every task gets at least kLeastMarks and at most kMostMarks.
  size_t marks = 6000;
  static constexpr size_t kLeastMarks = 40, kMostMarks = 1500;
  std::function<void(const std::string&)> progress = [](const std::string&) {};  // receives a line for people
};

// NotFound: no such job. A job that still runs is told as far as it is. A task whose templates this program
// does not have is told without its config space.
Result<nlohmann::ordered_json> report_facts(const Store& store, const std::string& job_id,
                                            const ReportOptions& options);

}  // namespace tuner
