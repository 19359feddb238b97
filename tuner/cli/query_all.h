// tuner query --all: lists every tuned task of a database, filtered, as a table, JSON lines or CSV.
#pragma once

#include <string>

#include "db/store.h"

namespace tuner::cli {

struct QueryAll {
  std::string op, target, since;  // empty: any. `since`: 2026-11-01, or with a time, 2026-11-01T12:00
  bool stale = false;             // only tasks whose answer is stale
  std::string format = "table";   // table | jsonl | csv
};

// Reads "2026-11-01" or "2026-11-01T12:30[:59]" (UTC) as microseconds of Unix time. InvalidArgument
// otherwise.
Result<int64_t> time_from_text(const std::string& text);

// Prints to stdout. Exit status: 0; 1 if nothing matches; 2 for an invalid filter.
int query_all(const Store& store, const QueryAll& filter);

}  // namespace tuner::cli
