// tuner query --all: every tuned task of a database, filtered, as a table, JSON lines or CSV.
#pragma once

#include <string>

#include "db/store.h"

namespace tuner::cli {

struct QueryAll {
  std::string op, target, since;  // empty: any. `since`: 2026-11-01, or with a time: 2026-11-01T12:00
  bool stale = false;             // only what was measured under other conditions than the present ones
  std::string format = "table";   // table | jsonl | csv
};

// "2026-11-01" or "2026-11-01T12:30[:59]" (UTC) in microseconds of Unix time; InvalidArgument otherwise.
Result<int64_t> time_from_text(const std::string& text);

// Prints to stdout. Exit code: 0, 1 when nothing matches, 2 for a filter that means nothing.
int query_all(const Store& store, const QueryAll& filter);

}  // namespace tuner::cli
