#include "tuner/model/partition.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler_core/base/printable.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/uses.h"
#include "tuner/model/anchors.h"
#include "tuner/model/attention_anchor.h"
#include "tuner/model/epilogues.h"
#include "tuner/model/groups.h"
#include "tuner/model/guards.h"
#include "tuner/model/quantized_anchors.h"

namespace tuner {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Uses;
using graph::ValueId;

class Partitioner {
 public:
  // `alone`: nodes that become a step each, and are part of no other. `conditions`: values that a step must
  // write, so that others can be guarded by them.
  Partitioner(Graph graph, std::vector<size_t> alone, const std::vector<ValueId>& conditions,
              const Target* accelerator, const Target* cpu)
      : accelerator_(accelerator),
        cpu_(cpu),
        alone_(std::move(alone)),
        uses_(graph),
        taken_(graph.nodes.size(), false),
        makes_condition_(graph.nodes.size(), false),
        readers_(graph.values.size()) {
    for (const ValueId v : conditions)
      if (uses_.maker(v) != Uses::kNoNode) makes_condition_[uses_.maker(v)] = true;
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (const ValueId in : graph.nodes[n].inputs)
        if (in != kNoValue) readers_[in].push_back(n);
    out_.graph = std::move(graph);
    out_.aliases.resize(out_.graph.values.size());
    for (ValueId v = 0; v < out_.aliases.size(); ++v) out_.aliases[v] = {v, 0};
  }

  Result<ModelSteps> run() {
    // From the last to the first: where two products could take in the same sum, the later one does, which
    // has the other's result already.
    for (size_t n = out_.graph.nodes.size(); n-- > 0;) take_anchor(n);
    find_views();
    RETURN_IF_ERROR(add_alone());
    RETURN_IF_ERROR(group_rest());
    std::ranges::stable_sort(out_.steps, {}, [](const ModelStep& s) { return s.nodes.back(); });
    return std::move(out_);
  }

 private:
  void take_anchor(size_t n) {
    if (taken_[n]) return;
    std::optional<Anchor> anchor;
    if (accelerator_ != nullptr) anchor = quantized_anchor(out_.graph, n, *accelerator_);
    own_new_values();
    const bool accelerated = anchor.has_value();
    if (!accelerated && cpu_ != nullptr) anchor = quantized_anchor(out_.graph, n, *cpu_);
    own_new_values();
    const bool on_bytes = anchor.has_value();
    if (!anchor && cpu_ != nullptr) anchor = attention_anchor(out_.graph, uses_, n);
    // Few templates know weights of 4 bits, or products of bytes: elsewhere the node is a program.
    const std::string& op = out_.graph.nodes[n].op;
    const bool is_ours = cpu_ != nullptr || (op != "com.microsoft.MatMulNBits" && op != "MatMulInteger");
    if (!anchor && is_ours) anchor = anchor_of(out_.graph, uses_, n);
    if (!anchor) return;
    ModelStep step{.nodes = anchor->before, .workload = std::move(anchor->workload), .reads = anchor->reads};
    step.nodes.push_back(n);
    step.writes = out_.graph.nodes[n].outputs[0];
    step.accelerated = accelerated;
    step.flat = anchor->flat;
    while (!on_bytes && extend(step)) {
    }
    for (const size_t each : step.nodes) taken_[each] = true;
    add(std::move(step));
  }

  // Takes in the one node that reads the step's result, if it fits the epilogue.
  bool extend(ModelStep& step) {
    // The caller of the model counts as a reader, too.
    if (uses_.readers(step.writes) != 1 || readers_[step.writes].size() != 1) return false;
    if (makes_condition_[uses_.maker(step.writes)]) return false;
    const size_t n = readers_[step.writes][0];
    const Node& reader = out_.graph.nodes[n];
    if (taken_[n] || !take_in(out_.graph, reader, step)) return false;
    own_new_values();
    step.nodes.push_back(n);
    step.writes = reader.outputs[0];
    return true;
  }

  // Constants that were added to the graph stand for themselves.
  void own_new_values() {
    for (ValueId added = out_.aliases.size(); added < out_.graph.values.size(); ++added)
      out_.aliases.push_back({added, 0});
  }

  void add(ModelStep step) {
    std::ranges::sort(step.nodes);
    step.name = out_.graph.nodes[step.nodes.back()].name;
    out_.steps.push_back(std::move(step));
  }

  // Views, and parts of a tensor whose elements stand together, are no work.
  void find_views() {
    for (size_t n = 0; n < out_.graph.nodes.size(); ++n) {
      if (taken_[n]) continue;
      const std::vector<PartOf> parts = parts_of(out_.graph, n);
      for (const PartOf& part : parts) out_.aliases[part.value] = {part.source, part.offset};
      if (!parts.empty()) taken_[n] = true;
    }
  }

  Status add_alone() {
    for (const size_t n : alone_) {
      std::vector<bool> others(out_.graph.nodes.size(), true);
      others[n] = false;
      ASSIGN_OR_RETURN(ModelStep step, group_of(out_.graph, uses_, others, out_.graph.nodes[n].outputs[0]));
      own_new_values();
      taken_[n] = true;
      add(std::move(step));
    }
    return Status::ok();
  }

  // What is left, from the results back: each value that a step, or the model's caller, needs, by a step of
  // its own.
  Status group_rest() {
    std::vector<bool> needed(out_.graph.values.size(), false);
    const auto need = [&](ValueId v) {
      if (v == kNoValue) return;
      while (out_.aliases[v].source != v) v = out_.aliases[v].source;
      needed[v] = true;
    };
    for (const ValueId v : out_.graph.outputs) need(v);
    for (const ModelStep& step : out_.steps) std::ranges::for_each(step.reads, need);
    std::vector<bool> others = taken_;
    for (size_t n = 0; n < others.size(); ++n) others[n] = others[n] || makes_condition_[n];
    for (size_t n = out_.graph.nodes.size(); n-- > 0;) {
      if (taken_[n]) continue;
      for (const ValueId v : out_.graph.nodes[n].outputs) {
        if (v == kNoValue || !needed[v]) continue;
        ASSIGN_OR_RETURN(ModelStep step, group_of(out_.graph, uses_, others, v));
        own_new_values();
        needed.resize(out_.graph.values.size(), true);
        std::ranges::for_each(step.reads, need);
        add(std::move(step));
      }
    }
    return Status::ok();
  }

  ModelSteps out_;
  const Target* accelerator_;
  const Target* cpu_;
  std::vector<size_t> alone_;
  Uses uses_;
  std::vector<bool> taken_, makes_condition_;
  std::vector<std::vector<size_t>> readers_;  // nodes, of each value
};

// What value a result is made of, and whether it is all of it.
struct ResultRoot {
  ValueId value = kNoValue;
  bool whole = true;
};
ResultRoot root_of(const Graph& graph, const Uses& uses, ValueId result) {
  ResultRoot root{.value = result};
  while (uses.maker(root.value) != Uses::kNoNode) {
    const std::vector<PartOf> parts = parts_of(graph, uses.maker(root.value));
    const auto part = std::ranges::find(parts, root.value, &PartOf::value);
    if (part == parts.end()) break;
    root.value = part->source;
    root.whole =
        root.whole && part->offset == 0 && graph[part->value].type.bytes() == graph[root.value].type.bytes();
  }
  return root;
}

// The result becomes a copy of what it is.
void copy_result(Graph& graph, size_t o) {
  const ValueId from = graph.outputs[o], copy = graph.values.size();
  graph.values.push_back({graph.output_names[o], graph[from].type, std::nullopt});
  graph.nodes.push_back({.name = str("copy of ", graph.output_names[o]),
                         .op = "Identity",
                         .attributes = {},
                         .inputs = {from},
                         .outputs = {copy}});
  graph.outputs[o] = copy;
}

// Lets every result of the model be a value that a step makes, and that fills its memory: one that is an
// input, a constant, a part of something, or given twice, is copied. So are those that lie on an input in
// the caller's memory, last. Returns the nodes of these. Results without elements are left: there is nothing
// to make.
Result<std::vector<size_t>> own_results(Graph& graph, const std::vector<StatePair>& states) {
  const Uses uses(graph);
  const auto is_state = [&](size_t o) { return std::ranges::count(states, o, &StatePair::output) > 0; };
  std::vector<ValueId> roots;
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    if (is_state(o) || graph[graph.outputs[o]].type.elements() == 0) continue;
    const ResultRoot root = root_of(graph, uses, graph.outputs[o]);
    if (root.whole && uses.maker(root.value) != Uses::kNoNode && std::ranges::count(roots, root.value) == 0)
      roots.push_back(root.value);
    else
      copy_result(graph, o);
  }
  std::vector<size_t> copies;
  for (const StatePair& state : states) {
    if (graph[graph.outputs[state.output]].type.elements() == 0) continue;
    const ValueId root = root_of(graph, uses, graph.outputs[state.output]).value;
    if (std::ranges::count(graph.inputs, root) > 0)
      return invalid_argument("output \"", printable(graph.output_names[state.output]), "\" is input \"",
                              printable(graph[root].name),
                              "\" as it is: expected a computed value for a state");
    copies.push_back(graph.nodes.size());
    copy_result(graph, state.output);
  }
  return copies;
}

std::vector<ValueId> conditions_of(const std::vector<std::vector<StepGuard>>& guards) {
  std::set<ValueId> conditions;
  for (const std::vector<StepGuard>& each : guards)
    for (const StepGuard& guard : each) conditions.insert(guard.condition);
  return {conditions.begin(), conditions.end()};
}

}  // namespace

const Target& any_cpu() {
  static const Target target = *parse_target("llvm -mcpu=x86-64");
  return target;
}

Result<ModelSteps> partition(Graph graph, std::vector<StatePair> states, int64_t least_guarded,
                             const Target* accelerator, const Target* cpu) {
  ASSIGN_OR_RETURN(const std::vector<size_t> alone, own_results(graph, states));
  const std::vector<std::vector<StepGuard>> guards = node_guards(graph, Uses(graph));
  std::vector<ValueId> conditions = conditions_of(guards);
  ASSIGN_OR_RETURN(ModelSteps steps, Partitioner(graph, alone, conditions, accelerator, cpu).run());
  guard_steps(steps, guards, conditions);
  const std::map<ValueId, int64_t> work = guarded_work(steps);
  const size_t dropped = std::erase_if(conditions, [&](ValueId v) {
    const auto saved = work.find(v);
    return saved == work.end() || saved->second < least_guarded;
  });
  if (dropped > 0) {  // these join the steps that choose by them
    ASSIGN_OR_RETURN(steps, Partitioner(std::move(graph), alone, conditions, accelerator, cpu).run());
    guard_steps(steps, guards, conditions);
  }
  steps.states = std::move(states);
  return steps;
}

}  // namespace tuner
