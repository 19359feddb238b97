// What an accelerator took for each step of a compiled model, and what was copied to it and back.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/model/model_run.h"

namespace tuner {

struct StepCosts {
  bool accelerated = false;
  double cycles = 0, nanojoules = 0;
};
// One per step. Runs the model once. `trace`: becomes a trace of the accelerator, step behind step, for
// chrome://tracing and Perfetto; null: not wanted. Failed: a step refused.
Result<std::vector<StepCosts>> step_costs(ModelRun& run, nlohmann::json* trace = nullptr);

// Values that one side makes and the other reads; each counts once, however often it is read.
struct DeviceCopies {
  int64_t to_device = 0, to_device_bytes = 0;
  int64_t to_host = 0, to_host_bytes = 0;
};
DeviceCopies device_copies(const CompiledPlan& plan);

bool is_accelerated(const CompiledPlan& plan);
// Steps of the accelerator with their cycles and energy, in the model's order, sums and copies; `width` 0: no
// limit.
std::string costs_text(const CompiledPlan& plan, const std::vector<StepCosts>& costs, int width);
nlohmann::ordered_json costs_json(const CompiledPlan& plan, const std::vector<StepCosts>& costs);

}  // namespace tuner
