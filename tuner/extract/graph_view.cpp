#include "tuner/extract/graph_view.h"

namespace tuner {

GraphView::GraphView(const ModelGraph& graph) : graph_(graph), taken_(graph.nodes.size(), false) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const std::string& out : graph.nodes[n].outputs)
      if (!out.empty()) producer_[out] = static_cast<int>(n);
    for (const std::string& in : graph.nodes[n].inputs)
      if (!in.empty()) readers_[in].push_back(static_cast<int>(n));
  }
}

int GraphView::producer(std::string_view tensor) const {
  const auto at = producer_.find(tensor);
  return at == producer_.end() ? -1 : at->second;
}

const std::vector<int>& GraphView::readers(std::string_view tensor) const {
  static const std::vector<int> none;
  const auto at = readers_.find(tensor);
  return at == readers_.end() ? none : at->second;
}

int GraphView::only_reader(std::string_view tensor) const {
  const std::vector<int>& all = readers(tensor);
  return all.size() == 1 && !this->tensor(tensor).is_output ? all.front() : -1;
}

std::string GraphView::other_input(int n, std::string_view tensor) const {
  const GraphNode& reader = node(n);
  return reader.input(0) == tensor ? reader.input(1) : reader.input(0);
}

bool GraphView::is_float32(std::string_view name) const {
  const GraphTensor& t = tensor(name);
  return t.type == "float32" && t.shape.has_value();
}

bool GraphView::same_shape(std::string_view a, std::string_view b) const {
  const GraphTensor &x = tensor(a), &y = tensor(b);
  return x.shape && y.shape && *x.shape == *y.shape;
}

bool GraphView::is_vector_along(std::string_view name, int64_t extent, int axis) const {
  const GraphTensor& t = tensor(name);
  if (!t.constant || !t.shape) return false;
  if (t.elements() == 1) return true;
  const auto rank = static_cast<int>(t.shape->size());
  return rank + axis >= 0 && (*t.shape)[static_cast<size_t>(rank + axis)] == extent && t.elements() == extent;
}

}  // namespace tuner
