// Chooses the trials that a page draws when a task has more than fit.
#pragma once

#include <cstddef>
#include <vector>

#include "tuner/report/task_facts.h"

namespace tuner {

// Returns positions in `t.trials`, ascending: all of them if there are at most `most`. Otherwise exactly
// `most` (at least 16), chosen by rank: the result, the finalists of the race, improvements of the best time,
// examples of every outcome, and an even sample of the rest. Deterministic.
std::vector<size_t> drawn_trials(const JobTask& t, size_t most);

}  // namespace tuner
