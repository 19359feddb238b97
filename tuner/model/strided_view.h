// StridedView: a tensor as another one's memory shows it, behind reshapes, transpositions, parts and repeats.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler_core/graph/graph.h"

namespace tuner {

// `extent` elements, each `stride` elements behind the one before.
struct StridedPart {
  int64_t extent = 1, stride = 0;
  friend bool operator==(const StridedPart&, const StridedPart&) = default;
};
using StridedParts = std::vector<StridedPart>;  // outermost first

// A dimension consists of parts: one, or several where dimensions that do not stand together became one.
struct StridedView {
  int64_t offset = 0;
  std::vector<StridedParts> dimensions;

  // The tensor as it is.
  static StridedView of(const std::vector<int64_t>& shape);
};

// True if the node only chooses or moves elements, in a way that strides can say: tuner.View, Transpose,
// Gather and Slice of known places, Split, Expand.
bool is_strided(const graph::Node& node);
// What `result` of such a node shows of the memory that `input` shows. Nothing where strides cannot say it.
std::optional<StridedView> moved(const graph::Graph& graph, const graph::Node& node, graph::ValueId result,
                                 const StridedView& input);

// The same parts without extents of 1, and those that follow each other as one.
StridedParts merged(const StridedParts& parts);
// Parts as two lists, the inner one with `inner` places. Nothing if no cut gives that.
struct CutParts {
  StridedParts outer, inner;
};
std::optional<CutParts> cut_parts(StridedParts parts, int64_t inner);

}  // namespace tuner
