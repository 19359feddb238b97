// The text of a job file for a kernel of a user's, as people write it: one argument and one knob a line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tuner {

// `job` is an object; its keys stay in their order.
std::string kernel_job_text(const nlohmann::ordered_json& job);

}  // namespace tuner
