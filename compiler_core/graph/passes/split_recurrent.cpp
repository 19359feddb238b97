// LSTM, GRU and RNN multiply the inputs of all steps by the same weights, and then the state of each step.
// The first is one product of all steps together, an ordinary Gemm. What is left is tuner.Recurrence.
//
//   projected = Gemm(X as rows, W, biases)
//   results   = tuner.Recurrence(projected, R transposed, ...)
//   Y, Y_h, Y_c = the rows of the results, where more than one is asked for
#include "compiler_core/graph/operators/recurrent.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

class SplitNode {
 public:
  SplitNode(Graph& graph, Node node, std::vector<int64_t> results)
      : graph_(graph),
        node_(std::move(node)),
        results_(std::move(results)),
        form_(*recurrent_of(Use(graph_, node_))),
        columns_(form_.gates() * form_.hidden) {}

  std::vector<Node> nodes() {
    const bool resets_later = form_.cell == CellKind::kGru && form_.linear_before_reset;
    const ValueId b = input(kB);
    const ValueId projected = project(b, resets_later);
    const ValueId weights = add("Transpose", {{"perm", Shape{0, 2, 1}}}, {node_.inputs[kR]},
                                {form_.directions, form_.hidden, columns_});
    const ValueId reset_bias =
        b != kNoValue && resets_later ? slice(b, 1, columns_ + 2 * form_.hidden, 2 * columns_) : kNoValue;
    Attributes attributes = node_.attributes;
    attributes.erase("hidden_size");
    attributes["cell"] = node_.op;
    attributes["results"] = results_;
    if (graph_[node_.inputs[kR]].constant) attributes["packed"] = int64_t{1};
    const std::vector<ValueId> operands{projected,        weights,          reset_bias,       input(kLengths),
                                        input(kInitialH), input(kInitialC), input(kPeepholes)};
    give_results(std::move(attributes), operands);
    return std::move(nodes_);
  }

 private:
  ValueId input(size_t i) const { return i < node_.inputs.size() ? node_.inputs[i] : kNoValue; }
  DType dtype() const { return graph_[node_.inputs[kX]].type.dtype; }

  ValueId add(std::string_view op, Attributes attributes, std::vector<ValueId> inputs, Shape shape) {
    graph_.values.push_back({str(node_.name, "/", op), {dtype(), std::move(shape)}, std::nullopt});
    add(op, std::move(attributes), std::move(inputs), graph_.values.size() - 1);
    return graph_.values.size() - 1;
  }
  void add(std::string_view op, Attributes attributes, std::vector<ValueId> inputs, ValueId result) {
    nodes_.push_back({.name = node_.name,
                      .op = std::string(op),
                      .attributes = std::move(attributes),
                      .inputs = std::move(inputs),
                      .outputs = {result}});
  }
  ValueId view(ValueId v, const Shape& shape) { return add("tuner.View", {{"shape", shape}}, {v}, shape); }
  ValueId integer(int64_t value) {
    Value made{.name = node_.name, .type = {DType::kInt64, {1}}, .constant = {}};
    made.constant = Constant::of(std::vector<int64_t>{value}, DType::kInt64);
    graph_.values.push_back(std::move(made));
    return graph_.values.size() - 1;
  }
  // Elements begin .. end - 1 of a dimension.
  ValueId slice(ValueId v, int64_t axis, int64_t begin, int64_t end) {
    Shape shape = graph_[v].type.shape;
    shape[static_cast<size_t>(axis)] = end - begin;
    return add("Slice", {}, {v, integer(begin), integer(end), integer(axis)}, shape);
  }

  // The inputs of all steps times their weights, and every bias that is added to that.
  ValueId project(ValueId b, bool resets_later) {
    const ValueId x = node_.inputs[kX], w = node_.inputs[kW];
    const Shape in = graph_[x].type.shape;
    const int64_t all = form_.directions * columns_;
    std::vector<ValueId> operands{view(x, {in[0] * in[1], in[2]}), view(w, {all, in[2]})};
    if (b != kNoValue) {
      const ValueId of_input = slice(b, 1, 0, columns_);
      ValueId of_state = slice(b, 1, columns_, 2 * columns_);
      if (resets_later) {  // the last gate's is inside of what is reset
        std::vector<double> kept(static_cast<size_t>(columns_), 1);
        std::fill(kept.begin() + 2 * form_.hidden, kept.end(), 0);
        const ValueId mask = add_constant(graph_, node_.name, {dtype(), {columns_}}, kept);
        of_state = add("Mul", {}, {of_state, mask}, {form_.directions, columns_});
      }
      const ValueId sum = add("Add", {}, {of_input, of_state}, {form_.directions, columns_});
      operands.push_back(view(sum, {all}));
    }
    const ValueId product = add("Gemm", {{"transB", int64_t{1}}}, operands, {in[0] * in[1], all});
    return view(product, {in[0], in[1], all});
  }

  void give_results(Attributes attributes, const std::vector<ValueId>& operands) {
    const auto shape_of = [&](int64_t k) { return k == 0 ? form_.output_shape() : form_.state_shape(); };
    const auto result = [&](int64_t k) { return node_.outputs[static_cast<size_t>(k)]; };
    if (results_.size() == 1)
      return add("tuner.Recurrence", std::move(attributes), operands, result(results_[0]));
    int64_t rows = 0;
    for (const int64_t k : results_) rows += elements_of(shape_of(k)) / form_.hidden;
    const ValueId all = add("tuner.Recurrence", std::move(attributes), operands, {rows, form_.hidden});
    int64_t begin = 0;
    for (const int64_t k : results_) {
      const int64_t end = begin + elements_of(shape_of(k)) / form_.hidden;
      add("tuner.View", {{"shape", shape_of(k)}}, {slice(all, 0, begin, end)}, result(k));
      begin = end;
    }
  }

  Graph& graph_;
  Node node_;
  std::vector<int64_t> results_;
  Recurrent form_;
  int64_t columns_;
  std::vector<Node> nodes_;
};

}  // namespace

Status split_recurrent(Graph& graph, const Evaluator& /*evaluate*/) {
  const Uses uses(graph);
  std::vector<Node> nodes;
  const std::vector<Node> before = std::move(graph.nodes);
  for (const Node& node : before) {
    std::vector<int64_t> results;  // that somebody reads
    const bool is_one = node.op == "LSTM" || node.op == "GRU" || node.op == "RNN";
    if (is_one && graph[node.inputs[kX]].type.dtype == DType::kFloat32)
      for (size_t k = 0; k < node.outputs.size(); ++k)
        if (node.outputs[k] != kNoValue && uses.readers(node.outputs[k]) > 0)
          results.push_back(static_cast<int64_t>(k));
    if (results.empty()) {
      nodes.push_back(node);
      continue;
    }
    for (Node& made : SplitNode(graph, node, std::move(results)).nodes()) nodes.push_back(std::move(made));
  }
  graph.nodes = std::move(nodes);
  return Status::ok();
}

}  // namespace tuner::graph
