// Quantisers write a network in floats, with each tensor rounded to bytes and back where it lies in memory
// ("QDQ"). What stands between two such places becomes the operator on bytes that it means.
#include <algorithm>
#include <cmath>

#include "compiler_core/graph/families.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

// Bytes, with what they are multiplied by, and what stands for 0.
struct Quantized {
  ValueId bytes = kNoValue, scale = kNoValue, zero = kNoValue;
  const Node* node = nullptr;  // that makes floats of them, or them of floats
};

class QuantizedFinder {
 public:
  explicit QuantizedFinder(Graph& graph) : graph_(graph), uses_(graph) {}

  // Replaces node n, a QuantizeLinear, by what it and the nodes before it are on bytes.
  void replace(size_t n) {
    const std::optional<Quantized> y = whole(graph_.nodes[n]);
    if (!y || graph_[y->scale].type.dtype != DType::kFloat32) return;
    const Node* node = maker_for_us(graph_.nodes[n].inputs[0]);
    // Results below 0 are rounded to the least byte anyhow.
    if (node != nullptr && node->op == "Relu" && zero_of(*y) == least_of(*y))
      node = maker_for_us(node->inputs[0]);
    if (node == nullptr) return;
    std::optional<Node> found = on_bytes(*node, *y);
    if (!found) return;
    found->name = graph_.nodes[n].name;
    found->operator_set = node->operator_set;
    found->outputs = graph_.nodes[n].outputs;
    const auto types = infer(graph_, *found);
    if (!types || types->at(0) != graph_[found->outputs[0]].type) return;
    const std::vector<ValueId> before = graph_.nodes[n].inputs;
    graph_.nodes[n] = *std::move(found);
    uses_.change(graph_, before, graph_.nodes[n].inputs);
  }

 private:
  // --- what values are ---

  const Node* maker_of(ValueId v, std::string_view op) const {
    const size_t n = uses_.maker(v);
    return n != Uses::kNoNode && graph_.nodes[n].op == op ? &graph_.nodes[n] : nullptr;
  }
  // The node that makes a value which nobody else reads.
  const Node* maker_for_us(ValueId v) const {
    const size_t n = uses_.maker(v);
    return n != Uses::kNoNode && uses_.readers(v) == 1 ? &graph_.nodes[n] : nullptr;
  }
  static bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }
  std::vector<double> numbers(ValueId v) const { return graph_[v].constant->numbers(graph_[v].type.dtype); }
  int64_t zero_of(const Quantized& q) const {
    return q.zero == kNoValue ? 0 : static_cast<int64_t>(numbers(q.zero)[0]);
  }
  int64_t least_of(const Quantized& q) const { return graph_[q.bytes].type.dtype == DType::kInt8 ? -128 : 0; }

  // One constant scale and zero point for the whole tensor, of a QuantizeLinear or a DequantizeLinear.
  std::optional<Quantized> whole(const Node& node) const {
    const Use use(graph_, node);
    const bool makes_bytes = node.op == "QuantizeLinear";
    const Quantized q{makes_bytes ? node.outputs[0] : node.inputs[0], node.inputs[1],
                      use.has(2) ? node.inputs[2] : kNoValue, &node};
    if (!is_byte(graph_[q.bytes].type.dtype) || use.integer("block_size", 0) != 0) return std::nullopt;
    for (const ValueId v : {q.scale, q.zero})
      if (v != kNoValue && (!graph_[v].constant || graph_[v].type.elements() != 1)) return std::nullopt;
    return q;
  }
  std::optional<Quantized> bytes_of(ValueId real) const {
    const Node* node = maker_of(real, "DequantizeLinear");
    if (node == nullptr || graph_[real].type.dtype != DType::kFloat32) return std::nullopt;
    return whole(*node);
  }
  // Constant weights: one scale, or one an index of the axis.
  std::optional<Quantized> weights_of(ValueId real, int64_t axis) const {
    const Node* node = maker_of(real, "DequantizeLinear");
    if (node == nullptr) return std::nullopt;
    const Use use(graph_, *node);
    const Quantized w{node->inputs[0], node->inputs[1], use.has(2) ? node->inputs[2] : kNoValue, node};
    if (!graph_[w.bytes].constant || !is_byte(graph_[w.bytes].type.dtype) ||
        use.integer("block_size", 0) != 0)
      return std::nullopt;
    for (const ValueId v : {w.scale, w.zero})
      if (v != kNoValue && !graph_[v].constant) return std::nullopt;
    const int64_t given = use.integer("axis", 1), rank = use.rank(0);
    const bool one = graph_[w.scale].type.elements() == 1;
    if (!one && (given < 0 ? given + rank : given) != axis) return std::nullopt;
    return w;
  }
  // A bias of int32 in units of the products.
  std::optional<ValueId> bias_of(ValueId real, const Quantized& x, const Quantized& w) const {
    const Node* node = maker_of(real, "DequantizeLinear");
    if (node == nullptr) return std::nullopt;
    const ValueId bias = node->inputs[0], scale = node->inputs[1];
    if (!graph_[bias].constant || graph_[bias].type.dtype != DType::kInt32 || !graph_[scale].constant)
      return std::nullopt;
    if (Use(graph_, *node).has(2)) {
      const ValueId zero = node->inputs[2];
      if (!graph_[zero].constant || std::ranges::any_of(numbers(zero), [](double z) { return z != 0; }))
        return std::nullopt;
    }
    const std::vector<double> found = numbers(scale), of_w = numbers(w.scale);
    const double of_x = numbers(x.scale)[0];
    if (found.size() != of_w.size() && found.size() != 1 && of_w.size() != 1) return std::nullopt;
    for (size_t c = 0; c < std::max(found.size(), of_w.size()); ++c) {
      const double wanted = of_x * of_w[of_w.size() == 1 ? 0 : c];
      constexpr double kRoundings = 1e-6;
      if (!(std::fabs(found[found.size() == 1 ? 0 : c] - wanted) <= kRoundings * wanted)) return std::nullopt;
    }
    return bias;
  }
  bool equal_numbers(ValueId a, ValueId b) const {
    return graph_[a].type.dtype == graph_[b].type.dtype && numbers(a)[0] == numbers(b)[0];
  }
  bool same(const Quantized& a, const Quantized& b) const {
    return graph_[a.bytes].type.dtype == graph_[b.bytes].type.dtype && equal_numbers(a.scale, b.scale) &&
           zero_of(a) == zero_of(b);
  }
  // The zero point, or a constant for the one that is not given.
  ValueId zero_point(const Quantized& q) {
    if (q.zero != kNoValue) return q.zero;
    const TensorType type{graph_[q.bytes].type.dtype, graph_[q.scale].type.shape};
    return add_constant(graph_, "zero", type, std::vector<double>(static_cast<size_t>(type.elements()), 0));
  }

  // --- operators ---

  std::optional<Node> on_bytes(const Node& node, const Quantized& y) {
    if (node.op == "Conv") return product(node, y, "QLinearConv", 0);
    if (node.op == "MatMul" && Use(graph_, node).rank(1) == 2) return product(node, y, "QLinearMatMul", 1);
    if (node.op == "Add") return sum(node, y);
    if (node.op == "GlobalAveragePool") return average(node, y);
    const bool moves = node.op == "tuner.View" || node.op == "Transpose" || node.op == "MaxPool";
    if (moves && node.outputs.size() == 1) return move(node, y);
    return std::nullopt;
  }
  // Whether there are products of such bytes: unsigned times signed ones around 0, of an image around 0 where
  // it is padded. Others are faster as floats.
  bool has_products(const Node& node, const Quantized& x, const Quantized& w) const {
    if (graph_[x.bytes].type.dtype != DType::kUInt8 || graph_[w.bytes].type.dtype != DType::kInt8)
      return false;
    if (w.zero != kNoValue && std::ranges::any_of(numbers(w.zero), [](double z) { return z != 0; }))
      return false;
    const Use use(graph_, node);
    if (node.op == "Conv" && !has_groups_of_words(use)) return false;
    const std::vector<int64_t> pads = use.integers("pads");
    const bool is_padded = use.word("auto_pad", "NOTSET") != "NOTSET" ||
                           std::ranges::any_of(pads, [](int64_t pad) { return pad != 0; });
    return !is_padded || zero_of(x) == 0;
  }
  // Dot products take four bytes at a time: of images in one group, a channel a group, or groups of words.
  static bool has_groups_of_words(const Use& use) {
    constexpr int64_t kWord = 4;
    if (use.rank(0) != 4) return false;
    const int64_t groups = use.integer("group", 1), in = use.shape(0)[1], out = use.shape(1)[0];
    return groups == 1 || (groups == in && groups == out) || in / groups % kWord == 0;
  }
  std::optional<Node> product(const Node& node, const Quantized& y, const char* op, int64_t axis) {
    const auto x = bytes_of(node.inputs[0]);
    const auto w = weights_of(node.inputs[1], axis);
    if (!x || !w || !has_products(node, *x, *w)) return std::nullopt;
    std::optional<ValueId> bias;
    if (Use(graph_, node).has(2)) {
      bias = bias_of(node.inputs[2], *x, *w);
      if (!bias) return std::nullopt;
    }
    const Attributes attributes = node.attributes;
    Node made{.op = op,
              .attributes = attributes,
              .inputs = {x->bytes, x->scale, zero_point(*x), w->bytes, w->scale, zero_point(*w), y.scale,
                         zero_point(y)}};
    if (bias) made.inputs.push_back(*bias);
    return made;
  }
  std::optional<Node> sum(const Node& node, const Quantized& y) {
    const auto a = bytes_of(node.inputs[0]), b = bytes_of(node.inputs[1]);
    if (!a || !b) return std::nullopt;
    return Node{.op = "com.microsoft.QLinearAdd",
                .inputs = {a->bytes, a->scale, zero_point(*a), b->bytes, b->scale, zero_point(*b), y.scale,
                           zero_point(y)}};
  }
  std::optional<Node> average(const Node& node, const Quantized& y) {
    const auto x = bytes_of(node.inputs[0]);
    if (!x) return std::nullopt;
    return Node{.op = "com.microsoft.QLinearGlobalAveragePool",
                .inputs = {x->bytes, x->scale, zero_point(*x), y.scale, zero_point(y)}};
  }
  // Bytes as they are, or the largest of them: where they stand for the same numbers before and after.
  std::optional<Node> move(const Node& node, const Quantized& y) const {
    const auto x = bytes_of(node.inputs[0]);
    if (!x || !same(*x, y)) return std::nullopt;
    return Node{.op = node.op, .attributes = node.attributes, .inputs = {x->bytes}};
  }

  Graph& graph_;
  Uses uses_;
};

}  // namespace

Status find_quantized(Graph& graph, const Evaluator& /*evaluate*/) {
  QuantizedFinder finder(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].op == "QuantizeLinear") finder.replace(n);
  return Status::ok();
}

}  // namespace tuner::graph
