// Quantisers write a network in floats, with each tensor rounded to bytes and back where it lies in memory
// ("QDQ"). What stands between two such places becomes the operator on bytes that it means.
#include <algorithm>
#include <cmath>
#include <set>

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

  // Signed bytes that only DequantizeLinear reads become unsigned ones, which kernels multiply: 128 more, and
  // so are their zero points.
  void make_unsigned() {
    std::vector<int> known(graph_.values.size(), 0);  // readers that can follow
    for (const Node& node : graph_.nodes)
      if (node.op == "DequantizeLinear" && whole(node)) ++known[node.inputs[0]];
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ValueId v = graph_.nodes[n].op == "QuantizeLinear" ? graph_.nodes[n].outputs[0] : kNoValue;
      if (v == kNoValue || graph_[v].type.dtype != DType::kInt8 || !whole(graph_.nodes[n])) continue;
      if (uses_.readers(v) == known[v]) turned_.insert(v);
    }
    if (turned_.empty()) return;
    for (Node& node : graph_.nodes) {
      const bool makes = node.op == "QuantizeLinear";
      if (!makes && node.op != "DequantizeLinear") continue;
      if (!turned_.contains(makes ? node.outputs[0] : node.inputs[0])) continue;
      const std::vector<ValueId> before = node.inputs;
      const Use use(graph_, node);
      const double zero = (use.has(2) ? numbers(node.inputs[2])[0] : 0) + 128;
      node.inputs.resize(3, kNoValue);
      node.inputs[2] = add_constant(graph_, "zero", {DType::kUInt8, {}}, {zero});
      node.attributes.erase("output_dtype");
      uses_.change(graph_, before, node.inputs);
    }
    for (const ValueId v : turned_) graph_.values[v].type.dtype = DType::kUInt8;
  }

  // Replaces node n, a product of bytes whose result stays floats.
  void replace_product(size_t n) {
    const Node& node = graph_.nodes[n];
    if (uses_.readers(node.outputs[0]) == 0) return;
    std::optional<Node> found = to_floats(node);
    if (!found) return;
    found->name = node.name;
    found->operator_set = node.operator_set;
    found->outputs = node.outputs;
    put(n, *std::move(found));
  }

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
    put(n, *std::move(found));
  }

 private:
  // Nothing happens where the node is none that the operator table knows with this result.
  void put(size_t n, Node node) {
    const auto types = infer(graph_, node);
    if (!types || types->at(0) != graph_[node.outputs[0]].type) return;
    const std::vector<ValueId> before = graph_.nodes[n].inputs;
    graph_.nodes[n] = std::move(node);
    uses_.change(graph_, before, graph_.nodes[n].inputs);
  }

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
    if (node.op == "Conv") return convolution(node, y);
    if (node.op == "MatMul") return matmul(node, &y);
    if (node.op == "Gemm") return gemm(node, &y);
    if (node.op == "Add") return sum(node, y);
    if (node.op == "GlobalAveragePool") return average(node, y);
    if (node.op == "Concat") return concat(node, y);
    static constexpr std::string_view kMoves[] = {"tuner.View", "Transpose", "MaxPool", "Slice",
                                                  "Gather",     "Expand",    "Tile",    "DepthToSpace"};
    const bool moves = std::ranges::find(kMoves, node.op) != std::end(kMoves);
    if (moves && node.outputs.size() == 1) return move(node, y);
    return std::nullopt;
  }
  std::optional<Node> to_floats(const Node& node) {
    if (node.op == "MatMul") return matmul(node, nullptr);
    if (node.op == "Gemm") return gemm(node, nullptr);
    return std::nullopt;
  }
  // Whether there are convolutions of such bytes: unsigned ones with signed ones around 0. Others are faster
  // as floats.
  bool has_convolutions(const Node& node, const Quantized& x, const Quantized& w) const {
    if (graph_[x.bytes].type.dtype != DType::kUInt8 || graph_[w.bytes].type.dtype != DType::kInt8)
      return false;
    if (w.zero != kNoValue && std::ranges::any_of(numbers(w.zero), [](double z) { return z != 0; }))
      return false;
    return has_groups_of_words(Use(graph_, node));
  }
  // Dot products take four bytes at a time: of images in one group, a channel a group, or groups of words.
  static bool has_groups_of_words(const Use& use) {
    constexpr int64_t kWord = 4;
    if (use.rank(0) != 4) return false;
    const int64_t groups = use.integer("group", 1), in = use.shape(0)[1], out = use.shape(1)[0];
    return groups == 1 || (groups == in && groups == out) || in / groups % kWord == 0;
  }
  std::optional<Node> convolution(const Node& node, const Quantized& y) {
    const auto x = bytes_of(node.inputs[0]);
    const auto w = weights_of(node.inputs[1], 0);
    if (!x || !w || !has_convolutions(node, *x, *w)) return std::nullopt;
    std::optional<ValueId> bias;
    if (Use(graph_, node).has(2)) {
      bias = bias_of(node.inputs[2], *x, *w);
      if (!bias) return std::nullopt;
    }
    const Attributes attributes = node.attributes;
    Node made{.op = "QLinearConv",
              .attributes = attributes,
              .inputs = {x->bytes, x->scale, zero_point(*x), w->bytes, w->scale, zero_point(*w), y.scale,
                         zero_point(y)}};
    if (bias) made.inputs.push_back(*bias);
    return made;
  }
  // Sums of so many products of bytes fit 32 bits.
  static bool fits_sums(int64_t terms) { return terms <= int64_t{1} << 15; }
  // The right side of a product: weights with scales a column, or any bytes.
  std::optional<Quantized> right_side(ValueId real, int64_t axis) const {
    if (const auto w = weights_of(real, axis)) return w;
    return bytes_of(real);
  }
  // `y`: null where the result stays floats.
  std::optional<Node> matmul(const Node& node, const Quantized* y) {
    const Use use(graph_, node);
    const auto a = bytes_of(node.inputs[0]);
    const auto b = right_side(node.inputs[1], use.rank(1) - 1);
    if (!a || !b || !fits_sums(use.shape(0).back())) return std::nullopt;
    const ValueId a_zero = zero_point(*a), b_zero = zero_point(*b);
    if (y == nullptr)
      return Node{.op = "com.microsoft.MatMulIntegerToFloat",
                  .inputs = {a->bytes, b->bytes, a->scale, b->scale, a_zero, b_zero}};
    return Node{.op = "QLinearMatMul",
                .inputs = {a->bytes, a->scale, a_zero, b->bytes, b->scale, b_zero, y->scale, zero_point(*y)}};
  }
  std::optional<Node> gemm(const Node& node, const Quantized* y) {
    const Use use(graph_, node);
    const bool ta = use.integer("transA", 0) != 0, tb = use.integer("transB", 0) != 0;
    const auto a = bytes_of(node.inputs[0]);
    const auto b = right_side(node.inputs[1], tb ? 0 : 1);
    if (!a || !b || ta || use.number("alpha", 1) != 1 || use.number("beta", 1) != 1) return std::nullopt;
    if (!fits_sums(use.shape(0).back())) return std::nullopt;
    Node made{.op = "com.microsoft.QGemm",
              .attributes = {{"transB", int64_t{tb}}},
              .inputs = {a->bytes, a->scale, zero_point(*a), b->bytes, b->scale, zero_point(*b)}};
    if (use.has(2)) {
      const auto bias = bias_of(node.inputs[2], *a, *b);
      if (!bias) return std::nullopt;
      made.inputs.push_back(*bias);
    }
    if (y == nullptr) return made;
    made.inputs.resize(7, kNoValue);
    made.inputs.insert(made.inputs.end(), {y->scale, zero_point(*y)});
    return made;
  }
  // Parts of one scale, as the result.
  std::optional<Node> concat(const Node& node, const Quantized& y) const {
    Node made{.op = node.op, .attributes = node.attributes, .inputs = {}};
    for (const ValueId part : node.inputs) {
      const auto x = bytes_of(part);
      if (!x || !same(*x, y)) return std::nullopt;
      made.inputs.push_back(x->bytes);
    }
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
    Node made{.op = node.op, .attributes = node.attributes, .inputs = node.inputs};
    made.inputs[0] = x->bytes;
    return made;
  }

  Graph& graph_;
  Uses uses_;
  std::set<ValueId> turned_;  // bytes that were signed
};

}  // namespace

Status find_quantized(Graph& graph, const Evaluator& evaluate) {
  QuantizedFinder finder(graph);
  finder.make_unsigned();
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].op == "QuantizeLinear") finder.replace(n);
  for (size_t n = 0; n < graph.nodes.size(); ++n) finder.replace_product(n);
  // What follows asks who reads bytes: no longer the floats between.
  return drop_dead(graph, evaluate);
}

}  // namespace tuner::graph
