// Job files, such as examples/conv2d.json; docs/jobs_and_targets.md describes them.
//
// A file holds one object, or a list of them. Every key is checked. The first mistake is the error, in one
// line: file, entry if the file is a list, key, found, expected:
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

// A task ends when its chance of gaining 1 % in the next 100 trials is below this, unless file or command
// says otherwise. tests/bench/README.md tells what that loses and saves.
inline constexpr double kStopBelow = 0.05;

// One object of a job file.
struct JobEntry {
  Workload workload;           // valid
  std::string name;            // name of the C function that `tuner build` makes; empty: made from the shapes
  std::string target = "cpu";  // as written; resolve_target() makes it canonical
  int trials = 1000;
  int64_t uses = 1;  // how often the model runs this workload: the weight of a gain here
  std::string search{kDefaultStrategy};
  std::string algorithms;  // algorithms that candidates may use, as in JobRow::Task; empty: any
  uint64_t seed = 0;
  StopOptions stop{.below = kStopBelow};
  MeasureOptions measure;
  bool states_run_timeout = false;  // measure.run_timeout_s is the file's own
};

class JobFolder;

// Returns the entries, at least one. InvalidArgument otherwise. `name` stands for the file in messages.
// `folder`: of the files that entries name; null: they are not here, and such an entry is refused.
Result<std::vector<JobEntry>> parse_job_text(std::string_view text, std::string_view name,
                                             const JobFolder* folder = nullptr);
// Never returns NotFound: a missing file is the user's mistake, InvalidArgument. `-` reads standard input.
Result<std::vector<JobEntry>> read_job_file(const std::string& path);

// Returns the kind of times the entry asks for; always warm if nothing is constant.
Constants constants_of(const JobEntry& entry);

// True if a job may name this search strategy.
bool is_search_name(std::string_view name);

}  // namespace tuner
