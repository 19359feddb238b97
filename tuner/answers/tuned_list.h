// Every tuned task of a database, filtered, as a table, JSON lines or CSV: `tuner query --all`.
#pragma once

#include <string>

#include "db/store.h"

namespace tuner {

struct TunedFilter {
  std::string op, target, since;  // empty: any. `since`: 2026-11-01, or with a time, 2026-11-01T12:00 (UTC)
  bool stale = false;             // only tasks whose answer is stale
  std::string format = "table";   // table | jsonl | csv
};

// Prints to stdout. NotFound: nothing matches; InvalidArgument: a filter that cannot be read.
Status print_tuned(const Store& store, const TunedFilter& filter);

}  // namespace tuner
