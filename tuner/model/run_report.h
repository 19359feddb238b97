// What `tuner run` does and tells: a compiled model run on tensors, its outputs, and the times of its steps.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct ModelRunRequest {
  std::string folder, before;  // `before`: another one to run in turn and compare with; empty: none
  std::vector<std::string> inputs, outputs;  // "NAME=FILE"
  int threads = 0;                           // 0: as many as the model is made for
  int runs = 0;                              // timed; 0: 20, where times are asked for
  uint64_t seed = 1;
  bool profile = false;
  std::string trace;  // file for the timeline of the model's accelerator; empty: none
};

struct RunReport {
  std::string text;  // lines of at most `width` columns
  nlohmann::ordered_json facts;
};

// Writes the outputs that are asked for. InvalidArgument: of ModelRun::open(), and words or names that are
// wrong.
Result<RunReport> run_report(const ModelRunRequest& request, int width);

}  // namespace tuner
