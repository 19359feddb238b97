// The kernels of a model: one for each distinct workload of its steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/target.h"
#include "tuner/jobs/tasks.h"
#include "tuner/model/partition.h"

namespace tuner {

struct ModelKernels {
  std::vector<CliTask>
      tasks;                  // in order of first use; answers rest on cold times where something is constant
  std::vector<int64_t> uses;  // steps that run each: what a gain there weighs
  std::vector<size_t> of_step;  // one a step, into tasks
};

// `algorithms`: what kernels may use, as in a job file; empty: any. `accelerator`: of accelerated steps.
ModelKernels kernels_of(const ModelSteps& model, const Target& target, const std::string& algorithms,
                        const Target* accelerator = nullptr);

}  // namespace tuner
