// A fragment: a part of a graph as a graph of its own, that computes one value; its text; its math as one
// Program.
//
//   in=float32[1,64,56,56],float32[64,1,1] Mul(0,1) LeakyRelu(2){alpha=0.1f}
//
// Values are numbered: inputs first, then the result of each node. Operands are numbers, _ for one that is
// not given, or a constant written out: float32[](0.5), int64[2](1;-1). Split:1/3(0) is the second of three
// results. Softmax@12 has the meaning of operator set 12; without @ that of the newest set. The last node's
// value is the fragment's.
//
// Equal fragments have equal text, whatever a model calls their nodes and in whatever order it has them; so
// the text can be the key of what was tuned.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/graph/graph.h"
#include "compiler_core/ir/stmt.h"

namespace tuner::graph {

struct Fragment {
  Graph graph;                  // one output
  std::vector<ValueId> inputs;  // of the source graph: what each input of `graph` is there
};

// The part of `graph` that consists of `nodes` and computes `result`, one of their results. Constants of few
// elements, and those that decide shapes, become part of it; all else that the nodes read are inputs,
// constants too. Tables (numbers known ahead, as the weights of an interpolation) are inputs: they are added
// to `graph`. InvalidArgument: an attribute or a constant that text cannot hold.
Result<Fragment> fragment_of(Graph& graph, std::span<const size_t> nodes, ValueId result);

std::string fragment_text(const Graph& fragment);
// Reads fragment_text() back. InvalidArgument names the place and what was expected; what it returns passes
// check().
Result<Graph> fragment_from_text(std::string_view text);

// The math of the whole: a stage or more a node, in order. Arguments are the inputs ("in0", "in1", ...), then
// "out".
Program program_of(const Graph& fragment);

}  // namespace tuner::graph
