// The report as a page, with the facts inside it. The file needs no other file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tuner {

// The dashboard's charts (tuner/dashboard/page, src/report.ts), as they were built: each task then has a part
// in which a person explores its trials. Empty: there is none.
struct ReportCharts {
  std::string style, script;
};

// `facts` come from report_facts(); no text in them can become markup or script.
std::string report_page(const nlohmann::ordered_json& facts, const ReportCharts& charts = {});

}  // namespace tuner
