// PlacedModel: a model with the place of every byte that its steps read and write: what the library's table,
// plan.json and the weights file are written from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler_core/runtime/tuner_model.h"
#include "tuner/bundle/c_signature.h"
#include "tuner/model/model_package.h"
#include "tuner/model/weights_file.h"

namespace tuner {

// What a step reads or writes.
struct PlacedOperand {
  std::string name;  // of the value
  graph::ValueId value = graph::kNoValue;
  tuner_place place{};
  int64_t bytes = 0;  // there: of a packed constant as many as it has then
};

// What must hold for a step to run.
struct PlacedGuard {
  PlacedOperand condition;
  bool wanted = false;
};

struct PlacedStep {
  std::vector<PlacedOperand> reads;  // in the order of the workload's operands
  PlacedOperand writes;
  std::string entry;              // the symbol of its function
  std::vector<tuner_place> args;  // of it
  std::vector<PlacedGuard> guards;
};

struct PlacedModel {
  std::vector<PlacedStep> steps;
  WeightsFacts weights;
  int64_t workspace_bytes = 0, workspace_bytes_per_thread = 0;
  std::vector<std::string> instruction_sets;
  std::vector<ArgInfo> inputs, outputs;
};

// Packs all constants into the file `weights`. Internal: the plan and the kernels do not fit each other;
// Failed: the disk.
Result<PlacedModel> place_model(const ModelToPack& model, const std::string& weights);
// The same of several that share the file: one model with other kernels each. They have the same
// PlacedModel::weights.
Result<std::vector<PlacedModel>> place_models(std::span<const ModelToPack> models,
                                              const std::string& weights);

}  // namespace tuner
