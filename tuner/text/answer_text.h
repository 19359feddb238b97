// An answer of the resolver, for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "db/resolve/resolve.h"

namespace tuner {

// Several lines: what is used, how it is known, what it rests on, where that was measured. Ends with a
// newline.
std::string answer_text(const Answer& answer, const Workload& workload);
// One document. An exact answer has the keys of tuned_json() as well; what a same-family answer was measured
// on stands below "tuned".
nlohmann::ordered_json answer_json(const Answer& answer, const Workload& workload);

}  // namespace tuner
