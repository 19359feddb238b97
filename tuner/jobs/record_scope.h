// Which records `tuner records export` is asked for, in a user's words.
#pragma once

#include <cstdint>
#include <string>

#include "compiler_core/base/status.h"
#include "db/exchange/exchange_store.h"

namespace tuner {

// Empty: any. InvalidArgument of the calls below names the option that holds what is wrong.
struct RecordScope {
  std::string file, op, target;  // a job file; an operator; a target as in a job file
  int task = -1;                 // an entry of the job file, from 0; -1: all
};
// Sets `filter` to the tasks of the scope, our own and those of other tuners.
Status select_tasks(const RecordScope& scope, ExchangeFilter& filter);

// Unix microseconds of "2026-11-20", "2026-11-20T21:10:08Z", or "90m", "12h", "7d" before now.
Result<int64_t> since_from_text(const std::string& text);

}  // namespace tuner
