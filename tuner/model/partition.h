// Partition: which nodes of a graph run as one kernel, and as which workload.
//
// An anchor (a convolution, a product, a pooling, a softmax, a layer normalization) takes what follows it and
// fits its epilogue. What no workload of its own serves becomes a fused group, workload `program`. Views cost
// nothing and are no step; neither is what is computed from constants alone.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/graph/graph.h"
#include "compiler_core/target.h"
#include "templates/workload/workload.h"
#include "tuner/model/state_pairs.h"

namespace tuner {

// A step runs only if this holds: the one bool of `condition` is `wanted`.
struct StepGuard {
  graph::ValueId condition = graph::kNoValue;
  bool wanted = false;
  friend bool operator==(const StepGuard&, const StepGuard&) = default;
};

// One call of a kernel.
struct ModelStep {
  std::string name;           // of the node whose result it gives: for people, and for --use
  std::vector<size_t> nodes;  // of the graph, in its order
  Workload workload;          // valid
  // Values that are the workload's operands, in the order of Workload::compute()'s arguments; constants among
  // them. Their bytes are what the workload expects; shapes may be written differently (a view).
  std::vector<graph::ValueId> reads;
  graph::ValueId writes = graph::kNoValue;
  // All must hold; else nobody chooses what it writes, and a run leaves it out (guards.h).
  std::vector<StepGuard> guards;
  bool foreign = false;  // a function of somebody else's runs it: its operands stay as they are
  // The accelerator runs it, on images in NHWC (layouts.h).
  bool accelerated = false;
  // Element by element: right in any order of elements that all its images have.
  bool flat = false;
  int64_t flat_block = 1;  // of a flat step: as layouts.h says it of a value
};

// Where a value stands that no step makes: in `source`, from byte `offset` on. A value of its own is its own
// source.
struct ValueAlias {
  graph::ValueId source = graph::kNoValue;
  int64_t offset = 0;
};

struct ModelSteps {
  graph::Graph graph;               // optimized; steps speak of its values
  std::vector<ModelStep> steps;     // each behind those whose results it reads
  std::vector<ValueAlias> aliases;  // one a value; a source may have a source
  std::vector<StatePair> states;    // what a caller may give one memory
};

// Conditions guard steps that have at least so many operations together: below that, a test a step and a
// condition in memory cost what they save.
inline constexpr int64_t kLeastGuarded = 100'000;

// A CPU without anything that not all have.
const Target& any_cpu();

// `graph`: after all passes. InvalidArgument with node and reason: a node that neither a workload nor a
// program serves. `states`: their outputs are written by steps of their own, behind all others, which read no
// input. `accelerator`: what its templates serve are steps of its own; null: there is none. `cpu`: runs the
// other steps, and may have templates for attention and for products of bytes; null: a GPU does.
Result<ModelSteps> partition(graph::Graph graph, std::vector<StatePair> states = {},
                             int64_t least_guarded = kLeastGuarded, const Target* accelerator = nullptr,
                             const Target* cpu = &any_cpu());

}  // namespace tuner
