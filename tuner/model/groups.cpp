#include "tuner/model/groups.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler_core/graph/fragment.h"
#include "compiler_core/graph/operator.h"
#include "tuner/model/memory_plan.h"

namespace tuner {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::OperatorKind;
using graph::Shape;
using graph::Use;
using graph::Uses;
using graph::ValueId;

// Nodes of a group: what a Program costs to schedule and to compile grows faster than it does.
constexpr size_t kMostNodes = 64;

// Extents before `axis` are all 1: what stands along it is one block after the other.
bool is_outermost(const Shape& shape, int64_t axis) {
  return std::all_of(shape.begin(), shape.begin() + axis, [](int64_t extent) { return extent == 1; });
}

// Of Concat and Split: the axis, counted from the front.
int64_t axis_of(const Use& use, int64_t otherwise, const Shape& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = use.integer("axis", otherwise);
  return axis < 0 ? axis + rank : axis;
}

std::vector<PartOf> split_parts(const Graph& graph, const Node& node) {
  const ValueId whole = node.inputs[0];
  if (!is_outermost(graph[whole].type.shape, axis_of(Use(graph, node), 0, graph[whole].type.shape)))
    return {};
  std::vector<PartOf> parts;
  int64_t offset = 0;
  for (const ValueId out : node.outputs) {
    if (out == kNoValue) return {};  // how large would it be?
    if (offset % kArenaAlignment != 0) return {};
    parts.push_back({out, whole, offset});
    offset += graph[out].type.bytes();
  }
  return parts;
}

// Slices of one block: all axes whole but the outermost, that in steps of 1.
std::vector<PartOf> slice_parts(const Graph& graph, const Node& node) {
  const Use use(graph, node);
  const Shape &whole = use.shape(0), &part = graph[node.outputs[0]].type.shape;
  size_t axis = 0;
  while (axis < whole.size() && whole[axis] == 1) ++axis;
  for (size_t d = axis + 1; d < whole.size(); ++d)
    if (part[d] != whole[d]) return {};
  if (axis >= whole.size() || part[axis] == whole[axis]) return {};
  const auto starts = use.integers("starts", 1), axes = use.integers("axes", 3);
  if (!starts || !*starts || !axes) return {};
  if (use.has(4)) {
    const auto steps = use.integers(4);
    if (!steps || std::ranges::any_of(*steps, [](int64_t s) { return s != 1; })) return {};
  }
  const auto rank = static_cast<int64_t>(whole.size());
  for (size_t i = 0; i < (*starts)->size(); ++i) {
    int64_t at = *axes ? (**axes)[i] : static_cast<int64_t>(i);
    if (at < 0) at += rank;
    if (at != static_cast<int64_t>(axis)) continue;
    int64_t start = (**starts)[i];
    if (start < 0) start += whole[axis];
    const int64_t block = graph[node.inputs[0]].type.bytes() / whole[axis];
    const int64_t offset = std::clamp<int64_t>(start, 0, whole[axis]) * block;
    if (offset % kArenaAlignment != 0) return {};
    return {{node.outputs[0], node.inputs[0], offset}};
  }
  return {};
}

// What may be computed where it is read: it costs about as much as reading it again.
bool is_cheap(const Graph& graph, const Node& node) {
  const graph::Operator* op = graph::find_operator(node.op);
  return (op->kind == OperatorKind::kElementwise || op->kind == OperatorKind::kMovement ||
          op->kind == OperatorKind::kShape) &&
         !stacks(graph, node);
}

}  // namespace

std::vector<PartOf> parts_of(const Graph& graph, size_t n) {
  const Node& node = graph.nodes[n];
  if (node.op == "tuner.View") return {{node.outputs[0], node.inputs[0], 0}};
  if (node.op == "Split") return split_parts(graph, node);
  if (node.op == "Slice") return slice_parts(graph, node);
  return {};
}

bool stacks(const Graph& graph, const Node& node) {
  if (node.op != "Concat") return false;
  const Shape& shape = graph[node.outputs[0]].type.shape;
  if (!is_outermost(shape, axis_of(Use(graph, node), 0, shape))) return false;
  int64_t offset = 0;
  for (const ValueId in : node.inputs) {
    if (offset % kArenaAlignment != 0) return false;
    offset += graph[in].type.bytes();
  }
  return true;
}

Result<ModelStep> group_of(Graph& graph, const Uses& uses, const std::vector<bool>& taken, ValueId value) {
  std::set<size_t> nodes;
  std::vector<size_t> found = {uses.maker(value)};  // in the order they were found, from the result back
  std::map<ValueId, int> reads_inside;
  // A Concat whose parts can be written in place stays alone: then it is no work at all.
  const bool grows = !stacks(graph, graph.nodes[found.front()]);
  for (size_t next = 0; next < found.size(); ++next) {
    const size_t n = found[next];
    nodes.insert(n);
    if (!grows) break;
    for (const ValueId in : graph.nodes[n].inputs) {
      const size_t maker = in == kNoValue ? Uses::kNoNode : uses.maker(in);
      if (maker == Uses::kNoNode || taken[maker] || !is_cheap(graph, graph.nodes[maker])) continue;
      if (++reads_inside[in] == uses.readers(in) && found.size() < kMostNodes &&
          std::ranges::find(found, maker) == found.end())
        found.push_back(maker);
    }
  }
  ModelStep step{.nodes = {nodes.begin(), nodes.end()}, .writes = value};
  const Node& last = graph.nodes[step.nodes.back()];
  const auto refused = [&](const Status& why) {
    return why.with_context(str("node ", last.name, " (", last.op, "): "));
  };
  Result<graph::Fragment> fragment = graph::fragment_of(graph, step.nodes, value);
  if (!fragment) return refused(fragment.status());
  step.reads = fragment->inputs;
  Result<Workload> workload = program_workload(std::move(fragment->graph));
  if (!workload) return refused(workload.status());
  step.workload = *std::move(workload);
  return step;
}

}  // namespace tuner
