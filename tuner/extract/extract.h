// Finds the tunable operators of a network: its workloads, how often each runs, and what is left out and why.
//
// What follows a product and fits its epilogue is fused into it, as a compiler would do: a batch
// normalization after a convolution (as a bias; its scale goes into the weights), a bias, a residual, ReLU.
// What is computed from constants alone is computed only once and is no task.
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
  std::vector<std::string> nodes;  // the nodes of the model that run it, in order
};

struct LeftOut {
  int64_t count = 0;
  std::string first;  // name of the first such operator
};

struct Extraction {
  std::vector<ExtractedTask> tasks;  // in order of first use
  // Operators by kind: `fused` into another's epilogue; `free`, because they only name, reshape or are
  // computed ahead.
  std::map<std::string, int64_t> fused, free;
  // Work without a task, by kind and reason.
  std::map<std::pair<std::string, std::string>, LeftOut> left_out;
  int64_t operators = 0;  // of the model: uses of all tasks + fused + free + left out
  // Of all tasks, with their uses.
  double flops = 0;
};

// Accounts for every operator of the graph: as a task, fused, free or left out.
Extraction extract_tasks(const ModelGraph& graph);

}  // namespace tuner
