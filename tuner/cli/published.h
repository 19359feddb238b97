// Published times held against the same kernels measured anew: what `tuner verify --times` and the benchmarks
// share.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "compiler_core/base/status.h"
#include "db/store.h"

namespace tuner {
struct Connection;
}

namespace tuner::cli {

// What the daemon answers for this task; nothing when the task was never tuned.
Result<std::optional<TunedConfig>> published_answer(const Connection& connection, const JobRow::Task& task);
// Measures the config of this trial again, in so many fresh processes. Takes seconds, 330 at most.
Result<RaceRow> remeasure(const Connection& connection, const std::string& trial_id, int processes);

// Whether an interval stands behind the published time.
bool is_certified(const TunedConfig& published);
// Whether what was measured is in the published 95 % interval, both as ratios to the sentinel kernel of their
// own run.
bool is_inside(const TunedConfig& published, const RaceRow& now);
// Of the interval, as a share of the published ratio; 0 where none is published.
double half_width(const TunedConfig& published);
// What was measured again over what was published: of the ratios to the sentinel, else of the times.
double to_published(const TunedConfig& published, const RaceRow& now);

// ratio, time_ns, the samples, inside.
nlohmann::ordered_json remeasured_json(const TunedConfig& published, const RaceRow& now);

}  // namespace tuner::cli
