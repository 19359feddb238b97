// The tunable operators of a network: which workloads it runs, how often, and what of it is left out and why.
//
// What follows a product and fits its last pass is taken into it, as a compiler would: a batch normalization
// after a convolution (a bias, its scale goes into the weights), a bias, a residual, ReLU. What is computed
// from constants alone is computed once and is no task.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "templates/workload/workload.h"
#include "tuner/extract/model_graph.h"

namespace tuner {

struct ExtractedTask {
  Workload workload;  // valid
  int64_t uses = 0;
  std::vector<std::string> nodes;  // of the model that run it, in order
};

struct LeftOut {
  int64_t count = 0;
  std::string first;  // name of the first such operator
};

struct Extraction {
  std::vector<ExtractedTask> tasks;  // in order of first use
  // Operators by kind: taken into another's last pass; only naming, reshaping or computed ahead.
  std::map<std::string, int64_t> fused, free;
  // By kind and reason: work that no task here stands for.
  std::map<std::pair<std::string, std::string>, LeftOut> left_out;
  int64_t operators = 0;  // of the model: tasks' uses + fused + free + left out
  // Of the tasks, all uses.
  double flops = 0;
};

Extraction extract_tasks(const ModelGraph& graph);

}  // namespace tuner
