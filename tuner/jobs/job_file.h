// Job files: examples/conv2d.json and its like, as docs/jobs_and_targets.md describes them.
//
// One object, or a list of them. Every key is checked; the first thing wrong is the error, one line: file,
// entry when the file is a list, key, found, expected:
//   conv2d.json: stride: expected two integers >= 1, found [0, 1]. Order is [vertical, horizontal].
//   layers.json: [2].trials: expected an integer from 1 to 10000000, found "many".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/records.h"
#include "templates/workload/workload.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

// Unless the file or the command says otherwise, a task ends when its chance of gaining 1 % in the next 100
// trials is below this: tests/bench/README.md tells what that loses and saves.
inline constexpr double kStopBelow = 0.05;

// One object of a job file.
struct JobEntry {
  Workload workload;           // valid
  std::string name;            // of the function that `tuner build` makes of it; empty: made from the shapes
  std::string target = "cpu";  // as written; resolve_target() makes it canonical
  int trials = 1000;
  int64_t uses = 1;  // how often the whole that is tuned runs this workload: what a gain here counts
  std::string search{kDefaultStrategy};
  std::string algorithms;  // that candidates may use, as JobRow::Task has them; empty: any
  uint64_t seed = 0;
  StopOptions stop{.below = kStopBelow};
  MeasureOptions measure;
};

// The entries, at least one. InvalidArgument otherwise. `name` stands for the file in messages.
Result<std::vector<JobEntry>> parse_job_text(std::string_view text, std::string_view name);
// NotFound is never returned: a missing file is the user's mistake, InvalidArgument. `-` reads standard
// input.
Result<std::vector<JobEntry>> read_job_file(const std::string& path);

// What an entry's times mean: as it asks, but always warm where nothing is constant.
Constants constants_of(const JobEntry& entry);

// Whether `name` is one of the search strategies a job may name.
bool is_search_name(std::string_view name);

}  // namespace tuner
