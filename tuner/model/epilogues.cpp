#include "tuner/model/epilogues.h"

#include <limits>
#include <optional>

#include "compiler_core/graph/operator.h"

namespace tuner {
namespace {

using graph::Graph;
using graph::Node;
using graph::Use;
using graph::ValueId;

// The activation a node is, if epilogues have it.
std::optional<Activation> activation_of(const Graph& graph, const Node& node) {
  const Use use(graph, node);
  const std::string& op = node.op;
  if (op == "Relu") return Activation::kRelu;
  if (op == "Sigmoid") return Activation::kSigmoid;
  if (op == "Tanh") return Activation::kTanh;
  if (op == "HardSwish") return Activation::kHardSwish;
  if (op == "Swish" && use.number("alpha", 1) == 1) return Activation::kSilu;
  if (op == "Gelu")
    return use.word("approximate", "none") == "tanh" ? Activation::kGeluTanh : Activation::kGelu;
  if (op == "LeakyRelu") return Activation::leaky(static_cast<float>(use.number("alpha", 0.01)));
  if (op != "Clip") return std::nullopt;
  // A limit that is not given is none.
  constexpr double kNone = std::numeric_limits<float>::max();
  const auto limit = [&](size_t i, std::string_view attribute, double none) -> std::optional<double> {
    if (!use.has(i)) return use.number(attribute, none);
    const auto numbers = use.numbers(i);
    return numbers ? std::optional(numbers->at(0)) : std::nullopt;
  };
  const std::optional<double> low = limit(1, "min", -kNone), high = limit(2, "max", kNone);
  if (!low || !high) return std::nullopt;
  if (*low == 0 && *high >= kNone) return Activation::kRelu;
  const Activation clip = Activation::clip(static_cast<float>(*low), static_cast<float>(*high));
  return has_good_numbers(clip) ? std::optional(clip) : std::nullopt;
}

// What a sum adds to the step's result; nothing for other operators, and where both operands are the result.
std::optional<ValueId> summand(const Node& node, ValueId result) {
  if (node.op != "Add" || node.inputs[0] == node.inputs[1]) return std::nullopt;
  return node.inputs[0] == result ? node.inputs[1] : node.inputs[0];
}

// One number a channel of the result: dimension `axis`.
bool is_bias(const Graph& graph, ValueId other, ValueId result, size_t axis) {
  const graph::Shape &shape = graph[other].type.shape, &whole = graph[result].type.shape;
  if (graph[other].type.dtype != graph[result].type.dtype || shape.size() > whole.size()) return false;
  const size_t skipped = whole.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != (d + skipped == axis ? whole[axis] : 1)) return false;
  return graph[other].type.elements() == whole[axis];
}

template <class Product>
bool take_in(const Graph& graph, const Node& node, Product& w, ModelStep& step) {
  if (w.residual_last) return false;
  const bool activated = w.activation != Activation::kNone;
  if (const std::optional<Activation> activation = activation_of(graph, node)) {
    if (activated) return false;
    w.activation = *activation;
    return true;
  }
  const std::optional<ValueId> other = summand(node, step.writes);
  if (!other) return false;
  constexpr bool kConvolution = std::is_same_v<Product, Conv2dWorkload>;
  const size_t axis = kConvolution ? 1 : graph[step.writes].type.shape.size() - 1;
  // A product with a vector gives one column, whatever the rank of its result says.
  bool has_channels = true;
  if constexpr (!kConvolution) {
    const graph::Shape& shape = graph[step.writes].type.shape;
    has_channels = !shape.empty() && shape.back() == w.n;
  }
  if (!w.bias && !activated && has_channels && is_bias(graph, *other, step.writes, axis)) {
    w.bias = true;
    step.reads.insert(step.reads.begin() + 2, *other);
    return true;
  }
  if (w.residual || graph[*other].type != graph[step.writes].type) return false;
  w.residual = true;
  w.residual_last = activated;
  step.reads.push_back(*other);
  return true;
}

}  // namespace

bool take_in(const Graph& graph, const Node& node, ModelStep& step) {
  const std::vector<ValueId> reads = step.reads;
  const auto tried = [&](auto w) {
    if (!take_in(graph, node, w, step)) return false;
    Workload workload(std::move(w));
    if (!validate(workload)) {
      step.reads = reads;
      return false;
    }
    step.workload = std::move(workload);
    return true;
  };
  if (const auto* w = step.workload.get_if<Conv2dWorkload>()) return tried(*w);
  if (const auto* w = step.workload.get_if<MatmulWorkload>()) return tried(*w);
  return false;
}

}  // namespace tuner
