// An answer of the resolver as text for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "db/resolve/resolve.h"

namespace tuner {

// Returns several lines, ending with a newline: what is used, how it is known, what it rests on, where that
// was measured. `width`: of the terminal; the key is shortened to it, and what is longer goes on below. 0: no
// limit.
std::string answer_text(const Answer& answer, const Workload& workload, int width = 0);
// Returns one document. An exact answer has the keys of tuned_json() as well, and so has a locked one that
// was measured. A same-family answer has what was measured under "tuned".
nlohmann::ordered_json answer_json(const Answer& answer, const Workload& workload);

}  // namespace tuner
