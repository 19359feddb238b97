// A network as `tuner compile --no-tune` packs it where nothing is known: with default configs.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "compiler_core/graph/passes.h"
#include "tests/tuner/plan_check.h"
#include "tuner/bundle/bundle_folder.h"
#include "tuner/model/model_file.h"
#include "tuner/model/model_package.h"

namespace tuner::testing {

inline ModelToPack packed_model(graph::Graph graph, const std::string& name, const Target& target) {
  CHECK(optimize(graph, model_evaluator()).is_ok());
  auto steps = partition(std::move(graph));
  CHECK(steps.is_ok()) << steps.message();
  ModelToPack model{.name = name,
                    .target = target,
                    .model = *std::move(steps),
                    .memory = {},
                    .kernels = {},
                    .kernel_of_step = {},
                    .source = "small.onnx",
                    .source_digest = std::string(64, 'a'),
                    .used = {}};
  model.memory = plan_memory(model.model, target, "");
  const std::string fault = plan_fault(model.model, model.memory);
  CHECK(fault.empty()) << fault;
  const Resolver resolver(nullptr);
  for (const ModelStep& step : model.model.steps) {
    const auto task = task_from_keys(step.workload.key(), target.name());
    CHECK(task.is_ok()) << task.message();
    const auto known =
        std::ranges::find(model.kernels, task->key, [](const BundleKernel& k) { return k.task.key; });
    model.kernel_of_step.push_back(static_cast<size_t>(known - model.kernels.begin()));
    if (known != model.kernels.end()) continue;
    auto kernel = build_kernel({*task, kernel_name(*task)}, name, resolver, Emit{});
    CHECK(kernel.is_ok()) << kernel.message();
    model.kernels.push_back(*std::move(kernel));
  }
  return model;
}

// Writes the folder, as `tuner compile` does.
inline Status write_packed(const ModelToPack& model, const std::string& folder) {
  ASSIGN_OR_RETURN(const auto out, BundleFolder::open(folder, model.name, kModelIndex));
  ASSIGN_OR_RETURN(const auto files, model_files(model, out->staging()));
  return out->write(files);
}

}  // namespace tuner::testing
