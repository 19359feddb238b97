// What other tuners' records say of a task that was not tuned here.
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "db/store.h"

namespace tuner {

// One line with the fastest imported config of the task, its time and where that was measured; empty if no
// record of another tuner is of this task. Such a time is never an answer: it is another machine's, or at
// least another tuner's.
Result<std::string> imported_note(const Store& store, const std::string& workload_key,
                                  const std::string& target);

}  // namespace tuner
