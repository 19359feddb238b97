#include "tuner/model/epilogues.h"

#include <cmath>
#include <limits>
#include <optional>

#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/uses.h"

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

// What a node with two operands does to the step's result, beside what other operand.
struct Step {
  EpiloguePart part;  // bias (or residual) or scale
  ValueId other;
  double (*number)(double) = nullptr;  // what becomes of each constant number; null: it stays
};
// Nothing for other operators, and where both operands are the result.
std::optional<Step> step_of(const Node& node, ValueId result) {
  const bool sums = node.op == "Add" || node.op == "Sub";
  if (!sums && node.op != "Mul" && node.op != "Div") return std::nullopt;
  if (node.inputs[0] == node.inputs[1]) return std::nullopt;
  const bool first = node.inputs[0] == result;
  if (!first && (node.op == "Sub" || node.op == "Div")) return std::nullopt;
  Step step{.part = sums ? EpiloguePart::kBias : EpiloguePart::kScale, .other = node.inputs[first ? 1 : 0]};
  if (node.op == "Sub") step.number = [](double x) { return -x; };
  if (node.op == "Div") step.number = [](double x) { return 1 / x; };
  return step;
}

// One number a channel of the result: dimension `axis`.
bool is_per_channel(const Graph& graph, ValueId other, ValueId result, size_t axis) {
  const graph::Shape &shape = graph[other].type.shape, &whole = graph[result].type.shape;
  if (graph[other].type.dtype != graph[result].type.dtype || shape.size() > whole.size()) return false;
  const size_t skipped = whole.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != (d + skipped == axis ? whole[axis] : 1)) return false;
  return graph[other].type.elements() == whole[axis];
}

// The value that has the step's numbers, one a channel: its operand, or a constant that is made of it.
// `axis`: of the channels, if the result shows them.
std::optional<ValueId> channel_numbers(Graph& graph, const Node& node, const Step& step, ValueId result,
                                       std::optional<size_t> axis, int64_t channels) {
  const bool each = axis && is_per_channel(graph, step.other, result, *axis);
  if (each && step.number == nullptr) return step.other;
  const graph::Value& other = graph[step.other];
  const bool one = other.type.elements() == 1 && other.type.shape.size() <= graph[result].type.shape.size() &&
                   other.type.dtype == graph[result].type.dtype;
  if (!other.constant || (!each && !one)) return std::nullopt;
  std::vector<double> numbers = other.constant->numbers(other.type.dtype);
  for (double& x : numbers) {
    if (step.number != nullptr) x = step.number(x);
    if (!std::isfinite(x)) return std::nullopt;
  }
  if (one) numbers.assign(static_cast<size_t>(channels), numbers[0]);
  return graph::add_constant(graph, str(node.name, "/", epilogue_part_name(step.part)),
                             {other.type.dtype, {channels}}, numbers);
}

// Adds the part behind those that the workload has.
template <class Product, class Change>
void append(Product& w, EpiloguePart part, Change change) {
  std::vector<EpiloguePart> parts = epilogue_parts(w);
  parts.push_back(part);
  change(w);
  set_order(w, std::move(parts));
}

template <class Product>
bool take_in(Graph& graph, const Node& node, Product& w, ModelStep& step) {
  if (const std::optional<Activation> activation = activation_of(graph, node)) {
    if (w.activation != Activation::kNone) return false;
    append(w, EpiloguePart::kActivation, [&](Product& p) { p.activation = *activation; });
    return true;
  }
  const std::optional<Step> taken = step_of(node, step.writes);
  if (!taken || graph[node.outputs[0]].type != graph[step.writes].type) return false;
  const graph::Shape& shape = graph[step.writes].type.shape;
  std::optional<size_t> axis;
  int64_t channels = 0;
  if constexpr (std::is_same_v<Product, Conv2dWorkload>) {
    axis = 1;
    channels = w.out_channels;
  } else {
    // A product with a vector gives one column, whatever the rank of its result says.
    if (!shape.empty() && shape.back() == w.n) axis = shape.size() - 1;
    channels = w.n;
  }
  const bool is_scale = taken->part == EpiloguePart::kScale;
  if (is_scale ? !w.scale : !w.bias)
    if (const auto numbers = channel_numbers(graph, node, *taken, step.writes, axis, channels)) {
      append(w, taken->part, [&](Product& p) { (is_scale ? p.scale : p.bias) = true; });
      step.reads.insert(is_scale ? step.reads.end() : step.reads.begin() + 2, *numbers);
      return true;
    }
  if (node.op != "Add" || w.residual || graph[taken->other].type != graph[step.writes].type) return false;
  append(w, EpiloguePart::kResidual, [](Product& p) { p.residual = true; });
  step.reads.insert(step.reads.begin() + 2 + (w.bias ? 1 : 0), taken->other);
  return true;
}

}  // namespace

bool take_in(Graph& graph, const Node& node, ModelStep& step) {
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
