// The check that `tuner compile` ends with: the library runs once, and after each step the reference computes
// what the step should have made of what the library had before it.
//
// A value is compared when it is made, and what was compared is what later steps are judged by: a value that
// another one overwrites too early shows in the step that reads it, or at the end, where outputs are.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/compile/check_inputs.h"
#include "tuner/model/memory_plan.h"

namespace tuner {

struct LibraryToCheck {
  std::string folder;         // with plan.json
  const graph::Graph& model;  // as it was read
  const ModelSteps& steps;    // of the library; values know their origin in `model` (number_values())
  const MemoryPlan& memory;
  const std::vector<AlignedBuffer>& inputs;  // one per model.inputs
  std::optional<size_t> cpu = {};            // of a library for several CPUs: whose steps those are
};
struct LibraryCheckOptions {
  double accept_error = 0;  // accepted of each step, relative to its largest element; 0: what the types allow
  std::function<bool()> interrupted = {};
  std::function<void(const std::string&)> progress = {};  // what is done now
  // Computes the outputs from the inputs, too, as the model in double precision has them: how far the library
  // is off as a whole. Not judged. Steps of narrow_products() may then be off by what they round.
  bool whole = false;
};
struct LibraryChecked {
  size_t steps = 0;                    // whose results were compared
  double error = 0;                    // the largest of all, relative to the largest element of its value
  std::optional<double> output_error;  // with `whole`: the same of outputs, as a whole
};

// Failed, one line: where the library and the model part first, with output, element, both values, and what
// to do next. Aborted: `interrupted` said so.
Result<LibraryChecked> check_library(const LibraryToCheck& library, const LibraryCheckOptions& options);

}  // namespace tuner
