// A daemon's workers, for people and as JSON (tuner workers).
#pragma once

#include <string>

#include "tuning.pb.h"

namespace tuner {

// Lines that fit `width` columns (0: no limit), each with its newline.
std::string workers_text(const v1::ListWorkersReply& workers, int width);
// One JSON document, with a newline at its end (docs/json.md).
std::string workers_json(const v1::ListWorkersReply& workers);

}  // namespace tuner
