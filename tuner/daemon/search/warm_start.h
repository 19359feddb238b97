// Warm start: what the database knows of tasks similar to one that is about to be searched.
//
// Similar: the same operator on the same kind of target (other shapes, other processors, other types), and
// other jobs of the very same task. The nearest few tasks by shape are taken, and of each the fastest records
// and an even choice of the others, so the cost does not grow with the database.
#pragma once

#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

// Whether a strategy of this name makes use of prior tasks.
bool uses_priors(std::string_view strategy);

// Also records of other tuners that are rows of this space (foreign_rows.h), as donors of one machine.
// Of records with ids up to `donor_record_id` only (0: none), so that the same call gives the same rows again
// whatever is measured later. One prior task for each (task, hardware), nearest first. Rows of templates that
// are not in `space` are left out. Fails only when the store does.
Result<std::vector<PriorTask>> warm_start(const Store& store, const JobRow::Task& task,
                                          const SearchSpace& space, int64_t donor_record_id);

// The largest id of a record there is, ours or another tuner's: what a search that begins now may be warmed
// by.
Result<int64_t> last_donor_id(const Store& store);

// How far apart two tasks are: 0 for the same, about 1 for an extent doubled or another processor; infinite
// when the one says nothing about the other.
double task_distance(const JobRow::Task& a, const JobRow::Task& b);

}  // namespace tuner
