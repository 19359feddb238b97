// Estimates of a job file's tasks, summed up and told, for people and as JSON: what `tuner estimate` prints.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tuner/study/task_estimate.h"

namespace tuner {

// Over the tasks whose time and gain are known, each weighted by its time and uses; their errors are taken
// for independent.
struct EstimateTotal {
  double now_ns = 0;
  std::optional<Gain> gain;  // of none: nothing is known
  Cost cost;                 // of the tasks that are worth tuning
  int tune = 0, skip = 0, unknown = 0;
};
EstimateTotal total_of(const std::vector<TaskEstimate>& lines);

// A table with a line per task, then the total; ends with a newline.
std::string estimate_text(const std::vector<TaskEstimate>& lines, const EstimateTotal& total);
nlohmann::ordered_json estimate_json(const std::vector<TaskEstimate>& lines, const EstimateTotal& total);

// How right the estimates are for tasks whose outcome is known, each hidden in turn.
struct CalibrationLine {
  std::string of;  // which gains: "over the default", "after 32 trials"
  Calibration found;
};
std::vector<CalibrationLine> calibration_of(const GainEstimate& estimate);
std::string calibration_text(const std::vector<CalibrationLine>& lines);
nlohmann::ordered_json calibration_json(const std::vector<CalibrationLine>& lines);

}  // namespace tuner
