// Anchors: operators that have a workload of their own.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "compiler_core/graph/graph.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/uses.h"
#include "templates/workload/workload.h"

namespace tuner {

struct Anchor {
  Workload workload;                  // valid, with no epilogue but what the operator itself has
  std::vector<graph::ValueId> reads;  // its operands, in order
  std::vector<size_t> before;         // nodes that became part of it: a Pad, a Transpose that only it reads
  bool flat = false;                  // element by element (ModelStep::flat)
};

// A window over one or two dimensions as workloads have it; one dimension gets a height of 1.
struct Window2d {
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, dilation{1, 1};
  std::array<int64_t, 4> padding{0, 0, 0, 0};
};
// Nothing for other windows. `image`, `kernel`: as graph::window_of() takes them.
std::optional<Window2d> window2d_of(const graph::Use& use, const std::vector<int64_t>& image,
                                    const std::vector<int64_t>& kernel);

// Nothing if no workload computes this node: another operator, type, or form. `n` is its place in
// graph.nodes.
std::optional<Anchor> anchor_of(const graph::Graph& graph, const graph::Uses& uses, size_t n);

}  // namespace tuner
