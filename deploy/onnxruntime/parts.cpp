#include "deploy/onnxruntime/parts.h"

#include <algorithm>
#include <array>
#include <queue>
#include <set>
#include <string_view>

namespace tuner::ort {
namespace {

// Of each value the node that makes it, or kNoValue.
std::vector<size_t> makers_of(const NodeGraph& graph) {
  std::vector<size_t> makers(graph.values.size(), kNoValue);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (const size_t v : graph.nodes[n].outputs)
      if (v != kNoValue) makers[v] = n;
  return makers;
}

// Calls `found` with each node whose results the node reads.
template <class Found>
void each_source(const NodeGraph& graph, const std::vector<size_t>& makers, size_t node, const Found& found) {
  for (const auto* values : {&graph.nodes[node].inputs, &graph.nodes[node].read_inside})
    for (const size_t v : *values)
      if (v != kNoValue && makers[v] != kNoValue) found(makers[v]);
}

// Even for served nodes, odd for others.
std::vector<size_t> phases_of(const NodeGraph& graph, const std::vector<size_t>& makers,
                              const std::vector<bool>& served) {
  std::vector<size_t> phases(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    phases[n] = served[n] ? 0 : 1;
    each_source(graph, makers, n, [&](size_t source) {
      phases[n] = std::max(phases[n], phases[source] + (served[source] == served[n] ? 0 : 1));
    });
  }
  return phases;
}

size_t root_of(std::vector<size_t>& roots, size_t n) {
  while (roots[n] != n) n = roots[n] = roots[roots[n]];
  return n;
}

std::string name_of(const NodeGraph& graph, size_t node) {
  for (const size_t v : graph.nodes[node].outputs)
    if (v != kNoValue) return graph.values[v].name;
  return "";
}

// Of those that can come next always the one whose result has the smallest name.
std::vector<size_t> in_order(const NodeGraph& graph, const std::vector<size_t>& nodes) {
  const std::vector<size_t> makers = makers_of(graph);
  const std::set<size_t> inside(nodes.begin(), nodes.end());
  std::vector<size_t> waits(graph.nodes.size());
  std::vector<std::vector<size_t>> readers(graph.nodes.size());
  for (const size_t n : inside)
    each_source(graph, makers, n, [&](size_t source) {
      if (!inside.contains(source)) return;
      ++waits[n];
      readers[source].push_back(n);
    });
  using Named = std::pair<std::string, size_t>;
  std::priority_queue<Named, std::vector<Named>, std::greater<>> ready;
  for (const size_t n : inside)
    if (waits[n] == 0) ready.emplace(name_of(graph, n), n);
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t n = ready.top().second;
    ready.pop();
    order.push_back(n);
    for (const size_t reader : readers[n])
      if (--waits[reader] == 0) ready.emplace(name_of(graph, reader), reader);
  }
  return order;
}

}  // namespace

Part part_of(const NodeGraph& graph, const std::vector<size_t>& nodes) {
  Part part{.nodes = in_order(graph, nodes)};
  std::vector<bool> made(graph.values.size()), seen(graph.values.size()), read(graph.values.size());
  for (const size_t n : part.nodes) {
    for (const size_t v : graph.nodes[n].inputs) {
      if (v == kNoValue || made[v] || seen[v]) continue;
      seen[v] = true;
      (graph.values[v].constant ? part.constants : part.inputs).push_back(v);
    }
    for (const size_t v : graph.nodes[n].outputs)
      if (v != kNoValue) made[v] = true;
  }
  const std::set<size_t> inside(nodes.begin(), nodes.end());
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (const auto* values : {&graph.nodes[n].inputs, &graph.nodes[n].read_inside})
      for (const size_t v : *values)
        if (v != kNoValue && !inside.contains(n)) read[v] = true;
  for (const size_t v : graph.outputs)
    if (v != kNoValue) read[v] = true;
  for (const size_t n : part.nodes)
    for (const size_t v : graph.nodes[n].outputs)
      if (v != kNoValue && read[v]) part.outputs.push_back(v);
  return part;
}

std::vector<Part> parts_of(const NodeGraph& graph, const std::vector<bool>& served) {
  const std::vector<size_t> makers = makers_of(graph), phases = phases_of(graph, makers, served);
  std::vector<size_t> roots(graph.nodes.size());
  for (size_t n = 0; n < roots.size(); ++n) roots[n] = n;
  for (size_t n = 0; n < roots.size(); ++n)
    each_source(graph, makers, n, [&](size_t source) {
      if (served[n] && served[source] && phases[n] == phases[source])
        roots[root_of(roots, n)] = root_of(roots, source);
    });
  std::vector<std::vector<size_t>> sets(graph.nodes.size());
  for (size_t n = 0; n < roots.size(); ++n)
    if (served[n]) sets[root_of(roots, n)].push_back(n);
  std::vector<Part> parts;
  for (const std::vector<size_t>& set : sets)
    if (!set.empty()) parts.push_back(part_of(graph, set));
  return parts;
}

bool is_worth_it(const NodeGraph& graph, const Part& part) {
  static constexpr std::array<std::string_view, 11> kHeavy = {
      "Attention", "Conv",   "ConvInteger",   "ConvTranspose", "GRU",          "Gemm",
      "LSTM",      "MatMul", "MatMulInteger", "QLinearConv",   "QLinearMatMul"};
  return !part.outputs.empty() && std::ranges::any_of(part.nodes, [&](size_t n) {
    return std::ranges::find(kHeavy, graph.nodes[n].op) != kHeavy.end();
  });
}

}  // namespace tuner::ort
