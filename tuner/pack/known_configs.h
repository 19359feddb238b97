// What a database knows of a task, for a pack: today's answer and the configs that were fastest after it.
#pragma once

#include <string>
#include <vector>

#include "db/store.h"
#include "templates/space/config_space.h"

namespace tuner {

struct KnownPick {
  std::string template_name;
  Config config;
};

// The configs that were right and timed, of these templates in their version of today (none named: of all):
// today's answer, then by time; under all names of the target's devices (db/device_records.h). `hardware`: of
// records of that machine alone. InvalidArgument: empty, and the records are of several machines, whose times
// cannot be compared; the message names them.
Result<std::vector<KnownPick>> known_configs(const Store& store, const JobRow::Task& task,
                                             const std::vector<std::string>& templates,
                                             const std::string& hardware = {});

}  // namespace tuner
