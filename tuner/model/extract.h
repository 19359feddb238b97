// A model's work as tasks: what `tuner extract` writes as a job file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "templates/workload/workload.h"
#include "tuner/model/partition.h"

namespace tuner {

struct ExtractedTask {
  Workload workload;  // valid
  int64_t uses = 0;
  std::vector<std::string> nodes;  // of the model, one a use: whose result it gives
};

// The distinct workloads of the steps, in order of first use.
std::vector<ExtractedTask> extract_tasks(const ModelSteps& model);

}  // namespace tuner
