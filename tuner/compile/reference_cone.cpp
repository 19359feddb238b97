#include "tuner/compile/reference_cone.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "compiler_core/codegen/reference.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/uses.h"
#include "compiler_core/oracle/oracle.h"

namespace tuner {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

// Compiling takes about as long as this many steps of the interpreter.
constexpr double kMostInterpreted = 50'000;

bool makes_integers(const Graph& model, const Node& node) {
  const auto is_float_value = [&](ValueId v) { return v != kNoValue && is_float(model[v].type.dtype); };
  return std::ranges::any_of(node.inputs, is_float_value) &&
         std::ranges::any_of(node.outputs, [&](ValueId v) { return v != kNoValue && !is_float_value(v); });
}

void describe(const Graph& model, ReferenceCone& cone) {
  const auto add = [&](ValueId v) {
    const DType dtype = model[v].type.dtype;
    if (is_float(dtype) && dtype_bytes(dtype) == 2) cone.unit = std::max(cone.unit, unit_of(dtype));
  };
  for (const size_t n : cone.nodes) {
    cone.rounds = cone.rounds || makes_integers(model, model.nodes[n]) ||
                  model.nodes[n].op.find("QLinear") != std::string::npos || model.nodes[n].op == "Round";
    for (const ValueId v : model.nodes[n].outputs)
      if (v != kNoValue) add(v);
  }
  add(cone.value);
}

// A convolution on an image with its padding around it: what lies in the padding is not asked for at every
// term, which took most of the time.
struct PaddedConv {
  Graph graph;  // this one node
  std::vector<int64_t> pads;
};
std::optional<PaddedConv> padded_conv(const Graph& model, const Node& node) {
  if (node.op != "Conv" || model[node.inputs[0]].type.shape.size() != 4) return std::nullopt;
  const graph::Use use(model, node);
  const std::vector<int64_t> pads = use.integers("pads");
  if (use.word("auto_pad", "NOTSET") != "NOTSET" || pads.size() != 4) return std::nullopt;
  if (std::ranges::all_of(pads, [](int64_t p) { return p == 0; })) return std::nullopt;
  if (std::ranges::any_of(pads, [](int64_t p) { return p < 0; })) return std::nullopt;
  PaddedConv out{.graph = {}, .pads = pads};
  Node own = node;
  own.attributes.erase("pads");
  own.inputs.clear();
  for (const ValueId v : node.inputs) {
    own.inputs.push_back(v == kNoValue ? kNoValue : out.graph.values.size());
    if (v != kNoValue) out.graph.values.push_back(model[v]);
  }
  std::vector<int64_t>& image = out.graph.values[0].type.shape;
  out.graph.values[0].constant.reset();
  for (size_t d = 0; d < 2; ++d) image[d + 2] += pads[d] + pads[d + 2];
  own.outputs = {out.graph.values.size()};
  out.graph.values.push_back(model[node.outputs[0]]);
  out.graph.nodes.push_back(std::move(own));
  return out;
}
ReferenceTensor padded(const ReferenceTensor& image, const PaddedConv& conv) {
  const std::vector<int64_t>&from = image.type().shape, &to = conv.graph.values[0].type.shape;
  ReferenceTensor made(conv.graph.values[0].type);
  std::fill_n(made.doubles(), made.elements(), 0.0);
  for (int64_t plane = 0; plane < from[0] * from[1]; ++plane)
    for (int64_t y = 0; y < from[2]; ++y)
      std::copy_n(image.doubles() + (plane * from[2] + y) * from[3], from[3],
                  made.doubles() + (plane * to[2] + y + conv.pads[0]) * to[3] + conv.pads[1]);
  return made;
}

// The Program that computes the node, on what padded_conv() makes of it.
graph::NodeProgram program_for(const Graph& model, const Node& node, const std::optional<PaddedConv>& conv) {
  if (!conv) return program_of(model, node);
  graph::NodeProgram made = program_of(conv->graph, conv->graph.nodes[0]);
  for (ValueId& v : made.reads) {
    const auto& own = conv->graph.nodes[0].inputs;
    v = node.inputs[static_cast<size_t>(std::ranges::find(own, v) - own.begin())];
  }
  made.writes = {node.outputs[0]};
  return made;
}

// Runs one node on tensors.
class NodeRun {
 public:
  NodeRun(const Graph& model, const Node& node, ReferencePrograms& programs)
      : model_(model),
        node_(node),
        programs_(programs),
        conv_(padded_conv(model, node)),
        program_(program_for(model, node, conv_)) {}

  const std::vector<ValueId>& reads() const { return program_.reads; }
  const std::vector<ValueId>& writes() const { return program_.writes; }

  Result<std::vector<ReferenceTensor>> run(std::vector<const ReferenceTensor*> args) {
    std::vector<ReferenceTensor> tables, results;
    ReferenceTensor image;
    if (conv_) {
      image = padded(*args[0], *conv_);
      args[0] = &image;
    }
    for (const auto& table : program_.tables)
      tables.push_back(
          ReferenceTensor::of({table.buffer->dtype, table.buffer->shape}, table.constant.bytes().data()));
    for (const ReferenceTensor& table : tables) args.push_back(&table);
    for (const ValueId v : program_.writes) results.emplace_back(model_[v].type);
    const Status done = stores_in(program_.program.body) <= kMostInterpreted ? interpreted(args, results)
                                                                             : compiled(args, results);
    RETURN_IF_ERROR(done.with_context(str("node ", node_.name, " (", node_.op, "): ")));
    for (const ReferenceTensor& result : results)
      if (is_float(result.type().dtype)) result.limit_to_type();
    return results;
  }

 private:
  Status compiled(const std::vector<const ReferenceTensor*>& args,
                  const std::vector<ReferenceTensor>& results) {
    std::vector<void*> pointers;
    for (const ReferenceTensor* each : args) pointers.push_back(each->data());
    for (const ReferenceTensor& each : results) pointers.push_back(each.data());
    return programs_.run(program_.program, pointers);
  }
  Status interpreted(const std::vector<const ReferenceTensor*>& args,
                     const std::vector<ReferenceTensor>& results) {
    std::vector<std::vector<double>> numbers;
    for (const ReferenceTensor* each : args) {
      auto& list = numbers.emplace_back();
      for (int64_t k = 0; k < each->elements(); ++k) list.push_back(each->at(k));
    }
    numbers.resize(args.size() + results.size());
    RETURN_IF_ERROR(interpret(program_.program, numbers));
    for (size_t r = 0; r < results.size(); ++r)
      for (int64_t k = 0; k < results[r].elements(); ++k)
        results[r].set(k, numbers[args.size() + r][static_cast<size_t>(k)]);
    return Status::ok();
  }

  const Graph& model_;
  const Node& node_;
  ReferencePrograms& programs_;
  std::optional<PaddedConv> conv_;
  graph::NodeProgram program_;
};

class ConeRun {
 public:
  ConeRun(const Graph& model, const ReferenceCone& cone, const KnownValues& known,
          ReferencePrograms& programs, const Disturbance& disturbance)
      : model_(model), cone_(cone), known_(known), programs_(programs), disturbance_(disturbance) {
    for (const size_t n : cone.nodes)
      for (const ValueId in : model.nodes[n].inputs)
        if (in != kNoValue) ++readers_[in];
  }

  Result<ReferenceTensor> run() {
    for (const size_t n : cone_.nodes) RETURN_IF_ERROR(run_node(model_.nodes[n]));
    if (cone_.nodes.empty()) operand(cone_.value);
    return std::move(values_.at(cone_.value));
  }

 private:
  const ReferenceTensor& operand(ValueId v) {
    const auto made = values_.find(v);
    if (made != values_.end()) return made->second;
    const graph::Value& value = model_[v];
    ReferenceTensor tensor = ReferenceTensor::of(
        value.type,
        value.constant ? static_cast<const void*>(value.constant->bytes().data()) : known_.at(v)->data());
    if (!value.constant) tensor = disturbed(std::move(tensor), v);
    return values_.emplace(v, std::move(tensor)).first->second;
  }
  ReferenceTensor disturbed(ReferenceTensor tensor, ValueId v) const {
    if (disturbance_.relative == 0) return tensor;
    return tensor.disturbed(disturbance_.relative, disturbance_.seed * 0x10001 + v);
  }

  Status run_node(const Node& node) {
    NodeRun work(model_, node, programs_);
    std::vector<const ReferenceTensor*> args;
    for (const ValueId v : work.reads()) args.push_back(&operand(v));
    ASSIGN_OR_RETURN(std::vector<ReferenceTensor> results, work.run(std::move(args)));
    for (const ValueId in : node.inputs)
      if (in != kNoValue && --readers_[in] == 0) values_.erase(in);
    for (size_t r = 0; r < results.size(); ++r) {
      const ValueId v = work.writes()[r];
      const bool is_passed_on = v != cone_.value;
      values_.insert_or_assign(v, is_passed_on ? disturbed(std::move(results[r]), v) : std::move(results[r]));
    }
    return Status::ok();
  }

  const Graph& model_;
  const ReferenceCone& cone_;
  const KnownValues& known_;
  ReferencePrograms& programs_;
  Disturbance disturbance_;
  std::map<ValueId, int> readers_;
  std::map<ValueId, ReferenceTensor> values_;
};

}  // namespace

std::vector<ReferenceCone> cones_of(const Graph& model, const std::vector<ValueId>& values) {
  const graph::Uses uses(model);
  std::set<ValueId> known(model.inputs.begin(), model.inputs.end());
  std::vector<ReferenceCone> cones;
  for (const ValueId value : values) {
    ReferenceCone cone{.value = value};
    std::set<size_t> nodes;
    std::set<ValueId> sources;
    std::vector<ValueId> open;
    if (value != kNoValue) open.push_back(value);
    while (!open.empty()) {
      const ValueId v = open.back();
      open.pop_back();
      if (v == kNoValue || model[v].constant) continue;
      // A value that two steps make is computed anew for the second.
      if (known.contains(v) && (v != value || uses.maker(v) == graph::Uses::kNoNode)) {
        sources.insert(v);
        continue;
      }
      if (!nodes.insert(uses.maker(v)).second) continue;
      for (const ValueId in : model.nodes[uses.maker(v)].inputs) open.push_back(in);
    }
    cone.nodes.assign(nodes.begin(), nodes.end());
    cone.sources.assign(sources.begin(), sources.end());
    if (value != kNoValue) {
      describe(model, cone);
      known.insert(value);
    }
    cones.push_back(std::move(cone));
  }
  return cones;
}

Result<ReferenceTensor> compute_cone(const Graph& model, const ReferenceCone& cone, const KnownValues& known,
                                     ReferencePrograms& programs, const Disturbance& disturbance) {
  return ConeRun(model, cone, known, programs, disturbance).run();
}

void compile_cones_ahead(const Graph& model, const std::vector<ReferenceCone>& cones,
                         ReferencePrograms& programs, const std::function<bool()>& stop) {
  for (const ReferenceCone& cone : cones)
    for (const size_t n : cone.nodes) {
      if (stop()) return;
      const Node& node = model.nodes[n];
      const graph::NodeProgram made = program_for(model, node, padded_conv(model, node));
      if (stores_in(made.program.body) > kMostInterpreted) programs.compile_ahead(made.program);
    }
}

}  // namespace tuner
