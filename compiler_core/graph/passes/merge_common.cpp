#include <map>
#include <tuple>

#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

// Constants of the same type and bytes count as one. Only small ones are compared.
std::string content_of(const Value& v) {
  constexpr size_t kMostBytes = 4096;
  if (!v.constant || v.constant->bytes().size() > kMostBytes) return "";
  const auto bytes = v.constant->bytes();
  return to_text(v.type) + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

Status merge_common(Graph& graph, const Evaluator& /*evaluate*/) {
  Replacements same;
  std::map<std::string, ValueId> constants;
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const std::string content = content_of(graph[id]);
    if (content.empty()) continue;
    const auto [first, is_new] = constants.emplace(content, id);
    if (!is_new) same.add(id, first->second);
  }
  // The number of results is part of what a node does: Split makes equal parts by it.
  using Work = std::tuple<std::string, Attributes, std::vector<ValueId>, int64_t, size_t>;
  std::map<Work, std::vector<ValueId>> done;
  std::vector<bool> gone(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    same.rename(node.inputs);
    const auto [first, is_new] = done.emplace(
        Work{node.op, node.attributes, node.inputs, node.operator_set, node.outputs.size()}, node.outputs);
    if (is_new) continue;
    bool all = true;
    for (size_t k = 0; k < node.outputs.size(); ++k)
      all = all && (node.outputs[k] == kNoValue || first->second[k] != kNoValue);
    if (!all) continue;  // the first does not give this result
    for (size_t k = 0; k < node.outputs.size(); ++k)
      if (node.outputs[k] != kNoValue) same.add(node.outputs[k], first->second[k]);
    gone[n] = true;
  }
  same.rename(graph.outputs);
  erase_nodes(graph, gone);
  return Status::ok();
}

}  // namespace tuner::graph
