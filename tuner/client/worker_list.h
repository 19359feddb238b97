// A daemon's workers, for people and as JSON (tuner workers).
#pragma once

#include <string>

#include "tuning.pb.h"

namespace tuner {

// Lines that fit `width` columns (0: no limit), each with its newline. Workers that were silent for more than
// ten minutes are counted and left out, unless `all`.
std::string workers_text(const v1::ListWorkersReply& workers, int width, bool all = false);
// One JSON document, with a newline at its end (docs/json.md).
std::string workers_json(const v1::ListWorkersReply& workers);

}  // namespace tuner
