// DecisionDiagram: all valid assignments of a few knobs that share constraints.
//
// Layer i decides one knob. A node stands for what the constraints still say about the knobs below it. Two
// prefixes with the same residual constraints (residuals.h) share one node, and so do two with the same
// completions. So the size follows the number of different residuals (shared register budgets,
// divisibility...), not the number of valid configs. A residual over one knob is a set of its candidates; a
// prefix that leaves a knob no candidate is dropped at once. Every node in the diagram can be completed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "templates/space/knob.h"

namespace tuner {

class DecisionDiagram {
 public:
  // `members`: positions (in `knobs`) of the knobs of this group; `constraints` read no others.
  // InvalidConfig: nothing is valid, the diagram has more than `max_edges` edges in every order tried, or the
  // count exceeds 2^62.
  static Result<DecisionDiagram> build(const std::vector<KnobInfo>& knobs, std::vector<int> members,
                                       const std::vector<IntExpr>& constraints,
                                       int64_t max_edges = 5'000'000);

  uint64_t size() const { return nodes_[root_].count; }
  // Returns the positions of the knobs, in the order in which the layers decide them.
  const std::vector<int>& order() const { return order_; }
  int64_t edges() const { return static_cast<int64_t>(edges_.size()); }

  // A choice is the position of a value in the knob's candidates. `choices` has one per knob of the whole
  // space; only those of members are read or written.
  void at(uint64_t index, std::vector<int>& choices) const;
  // Returns false if the choices are not valid here.
  bool index_of(const std::vector<int>& choices, uint64_t& index) const;
  // Moves `choices` to a valid assignment. In each layer it takes the wish itself, else the wish in `second`,
  // else the closest candidate that can be completed.
  void repair(std::vector<int>& choices, const std::vector<int>& second) const;

 private:
  struct Node {
    int64_t first_edge;  // one edge per candidate that can be completed, ascending
    int32_t edges;
    uint64_t count;  // completions below this node
  };
  struct Edge {
    uint64_t before;  // completions of the edges before this one
    int32_t child, choice;
  };
  class Builder;

  const Edge* edges_of(int32_t node) const { return edges_.data() + nodes_[node].first_edge; }
  // nullptr: this choice cannot be completed.
  const Edge* find_edge(int32_t node, int choice) const;

  std::vector<int> order_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  int32_t root_ = 0;
};

}  // namespace tuner
