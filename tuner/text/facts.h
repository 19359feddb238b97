// Database contents as JSON, with the same keys in every command that prints them.
#pragma once

#include <nlohmann/json.hpp>

#include "db/records.h"
#include "templates/schedule_template.h"
#include "templates/space/config_space.h"

namespace tuner {

// Turns "a=1 b=2" into {"a": 1, "b": 2}; text that is not a config stays text.
nlohmann::ordered_json config_json(std::string_view config_text);
// `flops` and `bytes` are the workload's; if 0, gflops and gb_per_s are left out.
nlohmann::ordered_json tuned_json(const TunedConfig& tuned, int64_t flops, int64_t bytes = 0);
// Says what a race found about its winner. The tuned config must have been raced.
nlohmann::ordered_json race_json(const TunedConfig& tuned);
// Returns the algorithm of a template; "" if the template is unknown here.
std::string algorithm_of(std::string_view template_name);
// Returns "winograd: rounds differently from direct"; empty if results are the direct sums.
std::string algorithm_mark(std::string_view template_name);
nlohmann::ordered_json options_json(const MeasureOptions& options);

// Counts rows that were stored and rows that already existed: {"new": 3, "known": 1}.
nlohmann::ordered_json new_and_known_json(int64_t added, int64_t known);

// Prints in one line; bytes that are not UTF-8 are replaced.
std::string one_line(const nlohmann::ordered_json& document);
// Prints indented, for people and jq alike.
std::string pretty(const nlohmann::ordered_json& document);

}  // namespace tuner
