// The report as a page: page.html, compiled in, with the facts inside it. One file that needs no other.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tuner {

// `facts`: of report_facts(). Whatever text they hold, none of it becomes markup or script.
std::string report_page(const nlohmann::ordered_json& facts);

}  // namespace tuner
