#include <utility>

#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

// One Gemm, alpha * a * b + beta * c, as nodes without factors of their own.
class PlainGemm {
 public:
  PlainGemm(Graph& graph, Node node) : graph_(graph), node_(std::move(node)) {
    const Use use(graph, node_);
    alpha_ = use.number("alpha", 1);
    beta_ = use.number("beta", 1);
    has_c_ = use.has(2);
  }

  std::vector<Node> nodes() {
    node_.attributes.erase("alpha");
    node_.attributes.erase("beta");
    if (has_c_ && beta_ != 1 && !scale_constant(2, beta_)) node_.inputs[2] = scaled(node_.inputs[2], beta_);
    if (alpha_ == 1 || scale_constant(1, alpha_) || scale_constant(0, alpha_)) {
      nodes_.push_back(std::move(node_));
    } else {
      scale_product();
    }
    return std::move(nodes_);
  }

 private:
  const TensorType& type(ValueId v) const { return graph_[v].type; }

  // False: the input is no constant.
  bool scale_constant(size_t input, double factor) {
    const Value v = graph_[node_.inputs[input]];
    if (!v.constant) return false;
    std::vector<double> numbers = v.constant->numbers(v.type.dtype);
    for (double& x : numbers) x *= factor;
    node_.inputs[input] = add_constant(graph_, v.name, v.type, numbers);
    return true;
  }

  // A further node of the Gemm's name, with its result.
  ValueId add(const std::string& op, ValueId a, ValueId b, ValueId result) {
    nodes_.push_back({node_.name, op, node_.operator_set, {}, {a, b}, {result}});
    return result;
  }
  ValueId new_value(const std::string& name, const TensorType& type) {
    graph_.values.push_back({name, type, std::nullopt});
    return graph_.values.size() - 1;
  }
  ValueId scaled(ValueId v, double factor) {
    const TensorType whole = type(v);
    const ValueId number = add_constant(graph_, node_.name + "/factor", {whole.dtype, {}}, {factor});
    return add("Mul", v, number, new_value(node_.name + "/scaled", whole));
  }

  // The sum of products, times alpha, and c.
  void scale_product() {
    const ValueId result = node_.outputs[0], c = has_c_ ? node_.inputs[2] : kNoValue;
    const TensorType whole = type(result);
    Node product = node_;
    product.inputs.resize(2);
    product.outputs = {new_value(node_.name + "/product", whole)};
    nodes_.push_back(product);
    const ValueId number = add_constant(graph_, node_.name + "/alpha", {whole.dtype, {}}, {alpha_});
    if (!has_c_) {
      add("Mul", product.outputs[0], number, result);
      return;
    }
    add("Add", add("Mul", product.outputs[0], number, new_value(node_.name + "/scaled", whole)), c, result);
  }

  Graph& graph_;
  Node node_;
  double alpha_ = 1, beta_ = 1;
  bool has_c_ = false;
  std::vector<Node> nodes_;
};

}  // namespace

Status plain_gemms(Graph& graph, const Evaluator& /*evaluate*/) {
  std::vector<Node> nodes;
  std::vector<Node> before = std::move(graph.nodes);
  for (Node& node : before) {
    if (node.op != "Gemm") {
      nodes.push_back(std::move(node));
      continue;
    }
    for (Node& made : PlainGemm(graph, std::move(node)).nodes()) nodes.push_back(std::move(made));
  }
  graph.nodes = std::move(nodes);
  return Status::ok();
}

}  // namespace tuner::graph
