// A workload as a job file has it ("op", its shapes and options; docs/jobs_and_targets.md lists them per
// operator), both ways. The key (Workload::key()) is the other text form: short, canonical, for databases.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "templates/workload/json_input.h"
#include "templates/workload/workload.h"

namespace tuner {

// Takes the keys of a workload out of an object that may have others. What is wrong is noted in `in`;
// validate() the result.
Workload read_workload(json_input::ObjectReader& in);

// A text that holds one workload and nothing else: {"op": "softmax", "rows": 8, "columns": 64}. Valid, or
// InvalidArgument in one line.
Result<Workload> workload_from_json(std::string_view text);

// The inverse: workload_from_json(workload_json(w).dump()) is w, for every valid w. What has its usual value
// is left out.
nlohmann::ordered_json workload_json(const Workload& workload);

}  // namespace tuner
