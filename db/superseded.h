// A record that was measured again since, under another compiler, harness or machine, says nothing any more:
// what stands in its place.
#pragma once

#include <optional>

#include "db/rows.h"
#include "db/sqlite.h"

namespace tuner::db {

// Whether what was measured in the one can be compared with what was measured in the other: compiler, machine
// and harness.
bool same_environment(const Environment& a, const Environment& b);

// `best`, of `trial`, is the fastest record of its task, `race` the newest race there. When that is of a
// later day's environment, and its job measured the same config again, the fastest ok record of that
// environment, else nothing. `names`: ",a,b,", the templates to choose from; empty: any.
Result<std::optional<StoredRecord>> superseding_record(Connection& c, const StoredRecord& best,
                                                       const StoredTrial& trial, const StoredRace& race,
                                                       const std::string& names);

}  // namespace tuner::db
