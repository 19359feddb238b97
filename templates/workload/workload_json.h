// Converts a workload to and from its form in a job file ("op", its shapes and options;
// docs/jobs_and_targets.md lists them per operator). The other text form, the key (Workload::key()), is
// short, canonical, and for databases.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

#include "templates/workload/json_input.h"
#include "templates/workload/workload.h"

namespace tuner {

// Reads the keys of a workload from an object that may have others. Errors are kept in `in`; call validate()
// on the result.
Workload read_workload(json_input::ObjectReader& in);

// Reads a text that holds one workload and nothing else: {"op": "softmax", "rows": 8, "columns": 64}. The
// result is valid; otherwise InvalidArgument in one line. `more` reads keys that may stand beside the
// workload's.
Result<Workload> workload_from_json(std::string_view text,
                                    const std::function<void(json_input::ObjectReader&)>& more = {});

// Writes a workload so that workload_from_json(workload_json(w).dump()) is w, for every valid w. Keys with
// default values are left out.
nlohmann::ordered_json workload_json(const Workload& workload);

}  // namespace tuner
