// Exporters write activations and normalizations as the steps they consist of. Products are looked at as one
// number times operands, so that x * 0.5 * (1 + erf(x / sqrt(2))) is found in whatever order it was written.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <utility>

#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

class Finder {
 public:
  explicit Finder(Graph& graph) : graph_(graph), uses_(graph) {}

  // Replaces node n by the composite that ends in it, if there is one.
  void replace(size_t n) {
    if (!is_float(graph_[graph_.nodes[n].outputs[0]].type.dtype)) return;
    inside_.clear();
    inside_.insert(n);
    std::optional<Node> found = activation(n);
    if (!found) {
      inside_ = {n};
      found = layer_norm(n);
    }
    if (!found || !is_closed(n)) return;
    found->name = graph_.nodes[n].name;
    found->operator_set = graph_.nodes[n].operator_set;
    found->outputs = graph_.nodes[n].outputs;
    const std::vector<ValueId> before = std::exchange(graph_.nodes[n], *std::move(found)).inputs;
    uses_.change(graph_, before, graph_.nodes[n].inputs);
  }

 private:
  // The node of this operator that makes the value, noted as part of the pattern; or null.
  const Node* made_by(ValueId id, std::string_view op) {
    const size_t n = uses_.maker(id);
    if (n == Uses::kNoNode || graph_.nodes[n].op != op) return nullptr;
    inside_.insert(n);
    return &graph_.nodes[n];
  }
  std::optional<double> scalar(ValueId id) const {
    if (id == kNoValue || !graph_[id].constant || graph_[id].type.elements() != 1) return std::nullopt;
    return graph_[id].constant->numbers(graph_[id].type.dtype)[0];
  }
  static bool is_near(double a, double b) { return std::fabs(a - b) <= 1e-3 * std::fabs(b); }

  // Nothing outside reads what the pattern computes on the way.
  bool is_closed(size_t last) const {
    for (const size_t n : inside_) {
      if (n == last) continue;
      for (const ValueId out : graph_.nodes[n].outputs) {
        if (out == kNoValue) continue;
        int reads = 0;
        for (const size_t reader : inside_)
          reads += static_cast<int>(std::ranges::count(graph_.nodes[reader].inputs, out));
        if (reads != uses_.readers(out)) return false;
      }
    }
    return true;
  }

  // --- value = factor * the product of terms ---
  struct Product {
    double factor = 1;
    std::vector<ValueId> terms;
    int steps = 0;  // how many operands were looked at
  };
  // `whole`: a value that is not looked into, since the pattern is about it.
  // No pattern is a product of many: more are not looked at, since products of products double with each.
  void multiply(Product& product, ValueId id, ValueId whole) {
    constexpr int kMostSteps = 32;
    if (++product.steps > kMostSteps) return product.terms.push_back(id);
    if (const auto number = scalar(id)) {
      product.factor *= *number;
      return;
    }
    if (id != whole) {
      if (const Node* mul = made_by(id, "Mul")) {
        multiply(product, mul->inputs[0], whole);
        multiply(product, mul->inputs[1], whole);
        return;
      }
      const size_t maker = uses_.maker(id);
      if (maker != Uses::kNoNode && graph_.nodes[maker].op == "Div")
        if (const auto number = scalar(graph_.nodes[maker].inputs[1])) {
          product.factor /= *number;
          inside_.insert(maker);
          return multiply(product, graph_.nodes[maker].inputs[0], whole);
        }
      if (maker != Uses::kNoNode && graph_.nodes[maker].op == "Pow") {
        const auto power = scalar(graph_.nodes[maker].inputs[1]);
        if (power && (*power == 2 || *power == 3)) {
          inside_.insert(maker);
          for (int k = 0; k < static_cast<int>(*power); ++k)
            multiply(product, graph_.nodes[maker].inputs[0], whole);
          return;
        }
      }
    }
    product.terms.push_back(id);
  }
  Product product_of(ValueId id, ValueId whole) {
    Product product;
    multiply(product, id, whole);
    return product;
  }
  bool is_product(ValueId id, double factor, const std::vector<ValueId>& terms) {
    const Product found = product_of(id, terms[0]);
    return is_near(found.factor, factor) && found.terms == terms;
  }
  // The other operand of an Add with this number; kNoValue if it is none.
  ValueId beside(ValueId id, double number) {
    const Node* add = made_by(id, "Add");
    if (add == nullptr) return kNoValue;
    for (const size_t c : {size_t{0}, size_t{1}})
      if (const auto found = scalar(add->inputs[c]); found && is_near(*found, number))
        return add->inputs[1 - c];
    return kNoValue;
  }

  // --- x times something of x ---
  std::optional<Node> activation(size_t n) {
    if (graph_.nodes[n].op != "Mul" && graph_.nodes[n].op != "Div") return std::nullopt;
    const std::set<size_t> before = inside_;
    // Which operand is x: any value the product may be about.
    for (const ValueId x : candidates(graph_.nodes[n])) {
      inside_ = before;
      const Product product = product_of(graph_.nodes[n].outputs[0], x);
      if (product.terms.size() != 2) continue;
      for (const size_t k : {size_t{0}, size_t{1}})
        if (product.terms[k] == x)
          if (auto found = of_x(x, product.terms[1 - k], product.factor)) return found;
    }
    return std::nullopt;
  }
  // x may be a product itself, so it is not known where to stop: operands of all products on the way are
  // tried.
  std::set<ValueId> candidates(const Node& node) const {
    std::set<ValueId> found;
    std::vector<ValueId> open{node.inputs[0], node.inputs[1]};
    for (int steps = 0; steps < 16 && !open.empty(); ++steps) {
      const ValueId id = open.back();
      open.pop_back();
      if (graph_[id].constant || graph_[id].type != graph_[node.outputs[0]].type) continue;
      found.insert(id);
      const size_t maker = uses_.maker(id);
      if (maker == Uses::kNoNode) continue;
      const Node& before = graph_.nodes[maker];
      if (before.op == "Mul" || before.op == "Div")
        open.insert(open.end(), before.inputs.begin(), before.inputs.end());
    }
    return found;
  }

  std::optional<Node> of_x(ValueId x, ValueId other, double factor) {
    const auto made = [&](std::string op, Attributes attributes = {}) {
      return Node{.op = std::move(op), .attributes = std::move(attributes), .inputs = {x}};
    };
    if (const Node* sigmoid = made_by(other, "Sigmoid");
        sigmoid != nullptr && sigmoid->inputs[0] == x && factor == 1)
      return made("Swish");
    if (const Node* hard = made_by(other, "HardSigmoid");
        hard != nullptr && hard->inputs[0] == x && factor == 1) {
      const Use use(graph_, *hard);
      if (is_near(use.number("alpha", 0.2), 1.0 / 6) && is_near(use.number("beta", 0.5), 0.5))
        return made("HardSwish");
      return std::nullopt;
    }
    if (const Node* clip = made_by(other, "Clip"); clip != nullptr && is_near(factor, 1.0 / 6))
      return is_between(*clip, 0, 6) && beside(clip->inputs[0], 3) == x ? std::optional(made("HardSwish"))
                                                                        : std::nullopt;
    if (const Node* tanh = made_by(other, "Tanh"); tanh != nullptr && factor == 1) {
      const Node* softplus = made_by(tanh->inputs[0], "Softplus");
      return softplus != nullptr && softplus->inputs[0] == x ? std::optional(made("Mish")) : std::nullopt;
    }
    if (!is_near(factor, 0.5)) return std::nullopt;
    const ValueId function = beside(other, 1);
    if (const Node* erf = made_by(function, "Erf"))
      return is_product(erf->inputs[0], 1 / std::numbers::sqrt2, {x}) ? std::optional(made("Gelu"))
                                                                      : std::nullopt;
    if (const Node* tanh = made_by(function, "Tanh"); tanh != nullptr && is_cubic(tanh->inputs[0], x))
      return made("Gelu", {{"approximate", std::string("tanh")}});
    return std::nullopt;
  }
  bool is_between(const Node& clip, double least, double most) const {
    const Use use(graph_, clip);
    const auto bound = [&](size_t i, std::string_view attribute) {
      return use.has(i) ? scalar(clip.inputs[i]) : std::optional(use.number(attribute, NAN));
    };
    return bound(1, "min") == least && bound(2, "max") == most;
  }
  // sqrt(2 / pi) * (x + 0.044715 * x^3)
  bool is_cubic(ValueId id, ValueId x) {
    const Product outer = product_of(id, x);
    if (outer.terms.size() != 1 || !is_near(outer.factor, std::sqrt(2 / std::numbers::pi))) return false;
    const Node* add = made_by(outer.terms[0], "Add");
    if (add == nullptr) return false;
    for (const size_t k : {size_t{0}, size_t{1}})
      if (add->inputs[k] == x && is_product(add->inputs[1 - k], 0.044715, {x, x, x})) return true;
    return false;
  }

  // --- (x - mean) / sqrt(variance + epsilon) * scale + shift ---
  std::optional<Node> layer_norm(size_t n) {
    ValueId value = graph_.nodes[n].outputs[0], shift = kNoValue, scale = kNoValue;
    if (const auto [rest, constant] = with_constant(value, "Add"); rest != kNoValue) {
      value = rest;
      shift = constant;
    }
    if (const auto [rest, constant] = with_constant(value, "Mul"); rest != kNoValue) {
      value = rest;
      scale = constant;
    }
    const Node* quotient = made_by(value, "Div");
    if (quotient == nullptr) return std::nullopt;
    const Node *difference = made_by(quotient->inputs[0], "Sub"),
               *root = made_by(quotient->inputs[1], "Sqrt");
    if (difference == nullptr || root == nullptr) return std::nullopt;
    const Node* sum = made_by(root->inputs[0], "Add");
    if (sum == nullptr) return std::nullopt;
    const bool first = scalar(sum->inputs[0]).has_value();
    const auto epsilon = scalar(sum->inputs[first ? 0 : 1]);
    const Node* variance = made_by(sum->inputs[first ? 1 : 0], "ReduceMean");
    const Node* mean = made_by(difference->inputs[1], "ReduceMean");
    const ValueId x = difference->inputs[0], d = difference->outputs[0];
    if (!epsilon || variance == nullptr || mean == nullptr || mean->inputs[0] != x) return std::nullopt;
    if (!is_product(variance->inputs[0], 1, {d, d})) return std::nullopt;
    const auto axis = last_axes(*mean), same = last_axes(*variance);
    if (!axis || axis != same) return std::nullopt;
    return normalization(x, *axis, *epsilon, scale, shift);
  }
  // The operands of an Add or Mul, the second one a constant.
  std::pair<ValueId, ValueId> with_constant(ValueId id, std::string_view op) {
    const size_t n = uses_.maker(id);
    if (n == Uses::kNoNode || graph_.nodes[n].op != op) return {kNoValue, kNoValue};
    for (const size_t c : {size_t{1}, size_t{0}}) {
      const ValueId constant = graph_.nodes[n].inputs[c];
      if (!graph_[constant].constant) continue;
      inside_.insert(n);
      return {graph_.nodes[n].inputs[1 - c], constant};
    }
    return {kNoValue, kNoValue};
  }
  // The first of the axes, if they are all from there on, and stay as extents of 1.
  std::optional<int64_t> last_axes(const Node& node) const {
    const Use use(graph_, node);
    const int64_t rank = use.rank(0);
    const auto axes = use.axes("axes", 1, rank);
    if (!axes || !*axes || (*axes)->empty() || use.integer("keepdims", 1) == 0) return std::nullopt;
    const std::vector<int64_t>& found = **axes;
    if (found.back() != rank - 1 || found.front() != rank - std::ssize(found)) return std::nullopt;
    return found.front();
  }
  std::optional<Node> normalization(ValueId x, int64_t axis, double epsilon, ValueId scale, ValueId shift) {
    const TensorType type = graph_[x].type;
    const std::vector<int64_t> own(type.shape.begin() + axis, type.shape.end());
    for (const ValueId id : {scale, shift})
      if (id != kNoValue && graph_[id].type.shape != own) return std::nullopt;
    if (scale == kNoValue) {
      const TensorType ones{type.dtype, own};
      scale =
          add_constant(graph_, "ones", ones, std::vector<double>(static_cast<size_t>(ones.elements()), 1));
      uses_.change(graph_, {}, {});
    }
    Node made{.op = "LayerNormalization",
              .attributes = {{"axis", axis}, {"epsilon", epsilon}},
              .inputs = {x, scale}};
    if (shift != kNoValue) made.inputs.push_back(shift);
    return made;
  }

  Graph& graph_;
  Uses uses_;
  std::set<size_t> inside_;  // nodes of the pattern that is looked at
};

}  // namespace

Status find_composites(Graph& graph, const Evaluator& /*evaluate*/) {
  // From the end on: the whole of a pattern is found before a part of it.
  Finder finder(graph);
  for (size_t n = graph.nodes.size(); n-- > 0;)
    if (graph.nodes[n].outputs[0] != kNoValue) finder.replace(n);
  return Status::ok();
}

}  // namespace tuner::graph
