#include "tuner/extract/model_graph.h"

namespace tuner {

int64_t GraphTensor::elements() const {
  int64_t n = 1;
  if (shape)
    for (const int64_t extent : *shape)
      if (__builtin_mul_overflow(n, extent, &n)) return INT64_MAX;
  return n;
}

int64_t GraphNode::integer(std::string_view attribute, int64_t otherwise) const {
  const auto at = attributes.find(attribute);
  const auto* value = at == attributes.end() ? nullptr : std::get_if<int64_t>(&at->second);
  return value == nullptr ? otherwise : *value;
}
double GraphNode::number(std::string_view attribute, double otherwise) const {
  const auto at = attributes.find(attribute);
  const auto* value = at == attributes.end() ? nullptr : std::get_if<double>(&at->second);
  return value == nullptr ? otherwise : *value;
}
std::string GraphNode::word(std::string_view attribute, std::string_view otherwise) const {
  const auto at = attributes.find(attribute);
  const auto* value = at == attributes.end() ? nullptr : std::get_if<std::string>(&at->second);
  return value == nullptr ? std::string(otherwise) : *value;
}
std::optional<std::vector<int64_t>> GraphNode::integers(std::string_view attribute) const {
  const auto at = attributes.find(attribute);
  const auto* value = at == attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&at->second);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

const GraphTensor& ModelGraph::tensor(std::string_view name) const {
  static const GraphTensor none;
  const auto at = tensors.find(name);
  return at == tensors.end() ? none : at->second;
}

}  // namespace tuner
