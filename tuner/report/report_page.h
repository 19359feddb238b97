// The report as a page: page.html, compiled in, with the facts inside it. The file needs no other file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tuner {

// `facts` come from report_facts(); no text in them can become markup or script.
std::string report_page(const nlohmann::ordered_json& facts);

}  // namespace tuner
