// Playing a job's search again from the database alone: the same seed, shown the same results in the same
// order and asked for as many candidates at the same points, has to give the same trials, bit for bit,
// whatever the workers' order was and however often the job was interrupted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/daemon/search/job_runner.h"

namespace tuner {

// Where the search first gave something else.
struct ReplayDifference {
  std::string trial;  // of the database; empty: the search gives more than was stored
  int task_index = 0;
  int64_t proposal = 0;      // of its task, from 1
  int64_t results_seen = 0;  // observed by then
  struct Side {
    std::string what;  // template and config; "nothing"
    uint64_t rng_counter = 0;
    std::string model_digest;
    bool operator==(const Side&) const = default;
  } expected, found;
};

struct ReplayReport {
  int64_t proposals = 0, trials = 0, results = 0;  // played until the difference, or all
  std::optional<ReplayDifference> difference;
};

// What warmed a task's search: of records with ids up to `donor_record_id` only.
using PriorsFactory = std::function<Result<std::vector<PriorTask>>(const JobRow::Task&, const SearchSpace&,
                                                                   int64_t donor_record_id)>;

// NotFound: the job has trials but no stored proposals (it is older than them), or trials of a template or
// version that this program does not have.
Result<ReplayReport> replay_job(const Store& store, const JobRow& job, const TaskSpaceFactory& make_space,
                                const StrategyFactory& make_search, const PriorsFactory& make_priors = {});

}  // namespace tuner
