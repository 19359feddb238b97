// Database contents as JSON, the same keys in every command that prints them.
#pragma once

#include <nlohmann/json.hpp>

#include "db/records.h"
#include "templates/schedule_template.h"
#include "templates/space/config_space.h"

namespace tuner {

// "a=1 b=2" -> {"a": 1, "b": 2}; text that is no config stays text.
nlohmann::ordered_json config_json(std::string_view config_text);
// `flops` and `bytes` of the workload; 0 when they are not known (gflops, gb_per_s are then left out).
nlohmann::ordered_json tuned_json(const TunedConfig& tuned, int64_t flops, int64_t bytes = 0);
// What a race says of its winner; only of a tuned config that has been raced.
nlohmann::ordered_json race_json(const TunedConfig& tuned);
// The algorithm of a template, "" of one that is not known here.
std::string algorithm_of(std::string_view template_name);
// "winograd: rounds differently from direct"; empty where results are the direct sums.
std::string algorithm_mark(std::string_view template_name);
nlohmann::ordered_json options_json(const MeasureOptions& options);

// Rows that were stored, and those that were there before: {"new": 3, "known": 1}.
nlohmann::ordered_json new_and_known_json(int64_t added, int64_t known);

// One line; bytes that are not UTF-8 are replaced.
std::string one_line(const nlohmann::ordered_json& document);
// Indented, for people and jq alike.
std::string pretty(const nlohmann::ordered_json& document);

}  // namespace tuner
