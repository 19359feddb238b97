// ReferenceCone: one value of a model, computed from values that are known already.
//
// The check of a library goes step by step. Where a step has run, the reference takes what the library
// computed before it as given, and computes the step's value from there: the nodes in between are the value's
// cone. So errors do not add up over the network, and whatever differs is this step's fault.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "compiler_core/codegen/reference_programs.h"
#include "compiler_core/graph/graph.h"
#include "tuner/compile/reference_tensor.h"

namespace tuner {

struct ReferenceCone {
  graph::ValueId value = graph::kNoValue;
  std::vector<size_t> nodes;            // of the model, in its order
  std::vector<graph::ValueId> sources;  // known values that they read, each once; no constants
  bool rounds = false;                  // a float becomes an integer in it
  double unit = 0;                      // of the least exact 16-bit float in it; 0: there is none
};

// The cones of `values` in their order: each may read the model's inputs and the values before it. A place
// that is kNoValue gives a cone without nodes.
std::vector<ReferenceCone> cones_of(const graph::Graph& model, const std::vector<graph::ValueId>& values);

// Known values, of the model's own types.
using KnownValues = std::map<graph::ValueId, std::shared_ptr<const AlignedBuffer>>;

struct Disturbance {
  double relative = 0;  // of every float that is read or passed on; 0: none
  uint64_t seed = 0;
};

// Computes the cone's value. Errors of a node name it.
Result<ReferenceTensor> compute_cone(const graph::Graph& model, const ReferenceCone& cone,
                                     const KnownValues& known, ReferencePrograms& programs,
                                     const Disturbance& disturbance = {});

// Compiles the programs of the cones ahead, one after the other, until `stop` says so.
void compile_cones_ahead(const graph::Graph& model, const std::vector<ReferenceCone>& cones,
                         ReferencePrograms& programs, const std::function<bool()>& stop);

}  // namespace tuner
