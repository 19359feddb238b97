// Which trials of a task race, once its search is over. Pure: the caller reads the store.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "db/records.h"
#include "db/resolve/default_time.h"

namespace tuner {

// Whether kernels of the target are raced at all. Those of a family of somebody's own may not be.
bool is_raced(std::string_view target_name);

struct Finalists {
  std::vector<TrialRow> trials;  // fastest first, each config once, as a trial of this job where it is one
  std::string default_trial_id;  // the one of these that is the default config; empty: none is
  std::string stored_trial_id;   // the one of these that is the answer so far; empty: none is
};

// The answer that a job found when it began, if it may stay: what a race under today's conditions decided,
// else what the database answered (`answers`), whose trial of this job tells what it takes today. Empty:
// nothing, or it is stale.
//
// `known`: the task's best at the end of the job. A race decided it if `best` says so; it counts if the job
// measured on the machine, and with the compiler and the harness, of that race.
std::optional<TrialRow> stored_answer(const std::vector<TrialWithRecord>& job, int task_index,
                                      const TrialWithRecord& known, const TunedConfig& best,
                                      const std::set<std::string>& answers);

// `job`: all trials of the job that is over. `known`: the best trial of the task, of whatever job. `plain`:
// the task's default config, if it has one.
//
// The right and uncut trials of the task whose interval overlaps that of the fastest: at least 3, at most 12.
// `known` joins them however its trial went, as the race decides anew what it was; so do the `answers`, ids
// of trials of what the database answered before the job, if they were right; so does the default config,
// where this job or `known` measured it, as the gain over it is what people tune for.
Finalists choose_finalists(std::vector<TrialWithRecord> job, int task_index, const TrialWithRecord& known,
                           const std::optional<DefaultConfig>& plain,
                           const std::set<std::string>& answers = {},
                           const std::optional<TrialRow>& stored = std::nullopt);

// The trials of the task that the job took from the database (JobRunner, ProposalRow::asked), by id.
std::set<std::string> answers_tried(const std::vector<TrialWithRecord>& job,
                                    const std::vector<ProposalRow>& proposals, int task_index);

// Whether a race of the task would decide nothing: `best` was raced and certified, and the job has found
// nothing faster since. It was interrupted after its race, or adds nothing to what was known.
bool is_settled(const std::vector<TrialWithRecord>& job, int task_index, const TunedConfig& best);

}  // namespace tuner
