// GraphView: knows who computes and who reads each tensor of a ModelGraph, and which operators are taken.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/extract/model_graph.h"

namespace tuner {

class GraphView {
 public:
  explicit GraphView(const ModelGraph& graph);

  const ModelGraph& graph() const { return graph_; }
  const GraphNode& node(int n) const { return graph_.nodes[static_cast<size_t>(n)]; }
  const GraphTensor& tensor(std::string_view name) const { return graph_.tensor(name); }
  bool is_taken(int n) const { return taken_[static_cast<size_t>(n)]; }
  void take(int n) { taken_[static_cast<size_t>(n)] = true; }

  int producer(std::string_view tensor) const;  // -1: an input or a constant
  // Returns the only operator that reads this tensor, once; -1 if several do, or the model's caller does.
  int only_reader(std::string_view tensor) const;
  const std::vector<int>& readers(std::string_view tensor) const;  // an operator that reads it twice is
                                                                   // listed twice
  // Returns the other operand of a two-operand operator.
  std::string other_input(int n, std::string_view tensor) const;

  // True if the shape is known and the type is float32, which the tasks here need.
  bool is_float32(std::string_view tensor) const;
  bool same_shape(std::string_view a, std::string_view b) const;
  // True for a constant with one value for each index of `axis` (counted from the back: -1 is the last),
  // whose extent is `extent`, or with one value for all.
  bool is_vector_along(std::string_view constant, int64_t extent, int axis) const;

 private:
  const ModelGraph& graph_;
  std::map<std::string, int, std::less<>> producer_;
  std::map<std::string, std::vector<int>, std::less<>> readers_;
  std::vector<bool> taken_;
};

}  // namespace tuner
