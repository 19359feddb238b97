#include "tests/tuner/model/random_control_flow.h"

#include <algorithm>

#include "compiler_core/base/status.h"

namespace tuner::testing {
namespace {

using onnx::TensorProto;

constexpr int kMostDepth = 3;

}  // namespace

RandomControlFlow::RandomControlFlow(uint32_t seed, const RandomControlFlowOptions& options)
    : options_(options),
      random_(seed),
      rows_(pick(1, options.most_rows)),
      columns_(pick(1, options.most_columns)) {
  model_.add_opset_import()->set_version(12);
  Frame frame{*model_.mutable_graph(), {}, {}, {}, {rows_, columns_}};
  frame.graph.set_name("random");
  for (const char* name : {"x", "z"}) {
    describe(*frame.graph.add_input(), name, TensorProto::FLOAT, {rows_, columns_});
    frame.tensors.emplace_back(name);
    frame.made.insert(name);
  }
  fill(frame, 0);
  for (int k = 0; k < 2; ++k) add_output(frame);
  shuffle(frame.graph);
}

void RandomControlFlow::add_output(Frame& frame) {
  const std::string name = a_tensor(frame);
  if (options_.strict) {
    const std::string copy = new_name(frame);
    node(frame, "Identity", {name}, {copy});
    return describe(*frame.graph.add_output(), copy, TensorProto::FLOAT, frame.shape);
  }
  frame.graph.add_output()->set_name(name);
}

// Often one that a graph around has, too: it is hidden then, unless this graph has read it already.
std::string RandomControlFlow::new_name(Frame& frame) {
  for (int tries = 0; tries < 8 && !options_.strict; ++tries) {
    const std::string name = str("v", pick(0, 9));
    if (!frame.made.contains(name) && !frame.read.contains(name)) {
      frame.made.insert(name);
      return name;
    }
  }
  const std::string name = str("n", names_++);
  frame.made.insert(name);
  return name;
}
std::string RandomControlFlow::new_tensor(Frame& frame) {
  const std::string name = new_name(frame);
  std::erase(frame.tensors, name);  // of a graph around
  frame.tensors.push_back(name);
  return name;
}
std::string RandomControlFlow::a_tensor(Frame& frame) {
  const std::string name = frame.tensors[static_cast<size_t>(pick(0, std::ssize(frame.tensors) - 1))];
  frame.read.insert(name);
  return name;
}
onnx::NodeProto& RandomControlFlow::node(Frame& frame, const std::string& op, const Names& inputs,
                                         const Names& outputs) {
  ++counts_[op];
  onnx::NodeProto& made = add_node(frame.graph, op, inputs, outputs);
  made.set_name(str(op, names_++));
  return made;
}
std::string RandomControlFlow::number(Frame& frame, int type, double value) {
  const std::string name = new_name(frame);
  // A type that hides a tensor of a graph around is none any more.
  std::erase(frame.tensors, name);
  add_constant(frame.graph, name, type, {}, {value});
  return name;
}

std::string RandomControlFlow::weights(Frame& frame, const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  std::vector<double> numbers(static_cast<size_t>(elements));
  for (double& x : numbers) x = std::uniform_real_distribution<float>(-0.5F, 0.5F)(random_);
  const std::string name = str("weights", names_++);
  add_constant(frame.graph, name, TensorProto::FLOAT, shape, numbers);
  return name;
}

// A subgraph: it reads what its graph has so far, if the shape of its own values is the same.
RandomControlFlow::Frame RandomControlFlow::inside(Frame& frame, onnx::NodeProto& node,
                                                   const std::string& attribute, bool same_shape) {
  Frame inner{add_subgraph(node, attribute), {}, {}, {}, frame.shape};
  if (same_shape) inner.tensors = frame.tensors;
  return inner;
}
void RandomControlFlow::leave(Frame& frame, const Frame& inner) {
  shuffle(inner.graph);
  for (const std::string& name : inner.read)
    if (!inner.made.contains(name)) frame.read.insert(name);
}

void RandomControlFlow::fill(Frame& frame, int depth) {
  const int64_t least = depth == 0 ? 3 : 1, most = depth == 0 ? 6 : 3;
  for (int64_t k = pick(least, most); k > 0; --k) add_step(frame, depth);
}
void RandomControlFlow::add_step(Frame& frame, int depth) {
  switch (depth < kMostDepth ? pick(0, 6) : 0) {
    case 4:
      return add_if(frame, depth);
    case 5:
      return add_loop(frame, depth);
    case 6:
      return add_scan(frame, depth);
    default:
      return add_simple(frame);
  }
}
void RandomControlFlow::add_simple(Frame& frame) {
  if (options_.recurrent && frame.shape.size() == 2 && pick(0, 3) == 0) return add_recurrent(frame);
  const char* const kOne[] = {"Neg", "Tanh", "Relu", "Identity"};
  const char* const kTwo[] = {"Add", "Sub", "Mul"};
  if (pick(0, 1) == 0) {
    const std::string a = a_tensor(frame);
    node(frame, kOne[pick(0, 3)], {a}, {new_tensor(frame)});
  } else {
    const std::string a = a_tensor(frame), b = a_tensor(frame);
    const std::string product = new_tensor(frame);
    node(frame, kTwo[pick(0, 2)], {a, b}, {product});
    node(frame, "Tanh", {product}, {new_tensor(frame)});  // numbers stay small
  }
}

// Rows are the steps of one sequence. The result is the sum over directions of all steps, or the last state
// beside each row.
void RandomControlFlow::add_recurrent(Frame& frame) {
  const auto other = [&] {  // a name of something that is no tensor of the usual shape
    std::string name = new_name(frame);
    std::erase(frame.tensors, name);
    return name;
  };
  const int64_t kind = pick(0, 2), gates = kind == 0 ? 4 : kind == 1 ? 3 : 1;
  const char* const kOps[] = {"LSTM", "GRU", "RNN"};
  const char* const kDirections[] = {"forward", "reverse", "bidirectional"};
  const int64_t way = pick(0, 2), directions = way == 2 ? 2 : 1, rows = gates * columns_;
  const std::string x = a_tensor(frame), sequence = other();
  add_integers(node(frame, "Unsqueeze", {x}, {sequence}), "axes", {1});
  Names inputs{sequence, weights(frame, {directions, rows, columns_}),
               weights(frame, {directions, rows, columns_}),
               pick(0, 1) == 0 ? "" : weights(frame, {directions, 2 * rows}), ""};
  if (pick(0, 3) == 0) {
    inputs[4] = str("lengths", names_++);
    add_constant(frame.graph, inputs[4], TensorProto::INT32, {1}, {static_cast<double>(pick(1, rows_))});
  }
  if (pick(0, 2) == 0 && directions == 1) {
    const std::string sum = other(), state = other(), small = other();
    onnx::NodeProto& reduce = node(frame, "ReduceSum", {a_tensor(frame)}, {sum});
    add_integers(reduce, "axes", {0});
    node(frame, "Tanh", {sum}, {small});
    add_integers(node(frame, "Unsqueeze", {small}, {state}), "axes", {0});
    inputs.push_back(state);
  }
  const bool whole = pick(0, 1) == 0;
  const std::string made = other(), sum = other(), joined = other();
  onnx::NodeProto& layer = node(frame, kOps[kind], inputs, whole ? Names{made} : Names{"", made});
  add_integer(layer, "hidden_size", columns_);
  add_attribute(layer, "direction", onnx::AttributeProto::STRING).set_s(kDirections[way]);
  if (kind == 1) add_integer(layer, "linear_before_reset", pick(0, 1));
  onnx::NodeProto& reduce = node(frame, "ReduceSum", {made}, {sum});
  add_integers(reduce, "axes", whole ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{0, 1});
  add_integer(reduce, "keepdims", 0);
  node(frame, "Add", {x, sum}, {joined});
  node(frame, "Tanh", {joined}, {new_tensor(frame)});
}

// A bool: a constant, what follows from a shape, or what follows from data.
std::string RandomControlFlow::condition(Frame& frame, bool* is_known, bool* value) {
  const int64_t kind = pick(0, 3);
  *is_known = kind < 2;
  *value = pick(0, 1) == 1;
  if (kind == 0) return number(frame, TensorProto::BOOL, *value ? 1 : 0);
  const std::string tensor = a_tensor(frame), whole = new_name(frame), made = new_name(frame);
  std::erase(frame.tensors, whole);
  std::erase(frame.tensors, made);
  if (kind == 1) {
    node(frame, "Size", {tensor}, {whole});
    node(frame, "Less", {whole, number(frame, TensorProto::INT64, *value ? 1000 : 0)}, {made});
  } else {
    add_integer(node(frame, "ReduceSum", {tensor}, {whole}), "keepdims", 0);
    node(frame, "Greater", {whole, number(frame, TensorProto::FLOAT, 0.01)}, {made});
  }
  if (pick(0, 2) > 0) return made;
  *value = !*value;
  const std::string turned = new_name(frame);
  std::erase(frame.tensors, turned);
  node(frame, "Not", {made}, {turned});
  return turned;
}

void RandomControlFlow::add_if(Frame& frame, int depth) {
  bool is_known = false, value = false;
  const std::string chosen_by = condition(frame, &is_known, &value);
  frame.read.insert(chosen_by);
  ++counts_[is_known ? "If on a constant" : "If on data"];
  onnx::NodeProto& made = node(frame, "If", {chosen_by}, {});
  const int64_t outputs = pick(1, 2);
  for (const bool then : {true, false}) {
    Frame inner = inside(frame, made, then ? "then_branch" : "else_branch", true);
    fill(inner, depth + 1);
    for (int64_t k = 0; k < outputs; ++k) add_output(inner);
    if (is_known && then != value && !options_.strict)  // what nobody needs may hold anything
      add_node(inner.graph, "Nonsense", {inner.graph.output(0).name()}, {"nothing"});
    leave(frame, inner);
  }
  for (int64_t k = 0; k < outputs; ++k) made.add_output(new_tensor(frame));
}

void RandomControlFlow::add_loop(Frame& frame, int depth) {
  const int64_t state = pick(1, 2), iterations = pick(0, 3);
  const bool stacks = iterations > 0 && pick(0, 1) == 0, by_condition = pick(0, 2) == 0;
  const std::string count = number(frame, TensorProto::INT64, static_cast<double>(iterations));
  const std::string goes_on = number(frame, TensorProto::BOOL, 1);
  onnx::NodeProto& made =
      node(frame, "Loop", {by_condition && iterations > 0 ? "" : count, pick(0, 1) == 0 ? goes_on : ""}, {});
  for (int64_t k = 0; k < state; ++k) made.add_input(a_tensor(frame));
  Frame inner = inside(frame, made, "body", true);
  const std::string i = new_name(inner), still = new_name(inner);
  std::erase(inner.tensors, i);
  std::erase(inner.tensors, still);
  describe(*inner.graph.add_input(), i, TensorProto::INT64, {});
  describe(*inner.graph.add_input(), still, TensorProto::BOOL, {});
  for (int64_t k = 0; k < state; ++k)
    describe(*inner.graph.add_input(), new_tensor(inner), TensorProto::FLOAT);
  fill(inner, depth + 1);
  std::string next = still;
  if (by_condition && iterations > 0) {
    const std::string last = number(inner, TensorProto::INT64, static_cast<double>(iterations - 1));
    next = new_name(inner);
    std::erase(inner.tensors, next);
    node(inner, "Less", {i, last}, {next});
  }
  if (options_.strict) {
    const std::string copy = new_name(inner);
    node(inner, "Identity", {next}, {copy});
    next = copy;
  }
  inner.graph.add_output()->set_name(next);
  for (int64_t k = 0; k < state + (stacks ? 1 : 0); ++k) add_output(inner);
  leave(frame, inner);
  for (int64_t k = 0; k < state; ++k) made.add_output(new_tensor(frame));
  if (!stacks) return;
  const std::string stack = new_name(frame);
  std::erase(frame.tensors, stack);
  made.add_output(stack);
  onnx::NodeProto& sum = node(frame, "ReduceSum", {stack}, {});
  add_integers(sum, "axes", {0});
  add_integer(sum, "keepdims", 0);
  sum.add_output(new_tensor(frame));
}

// Along rows or columns: in the body all tensors are one column or one row.
void RandomControlFlow::add_scan(Frame& frame, int depth) {
  const int64_t axis = pick(0, 1), sequences = pick(1, 2);
  const std::string start = new_name(frame);
  std::erase(frame.tensors, start);
  onnx::NodeProto& sum = node(frame, "ReduceSum", {a_tensor(frame)}, {start});
  add_integers(sum, "axes", {axis});
  add_integer(sum, "keepdims", 0);
  onnx::NodeProto& made = node(frame, "Scan", {start}, {});
  std::vector<int64_t> axes, input_directions;
  for (int64_t k = 0; k < sequences; ++k) {
    made.add_input(a_tensor(frame));
    axes.push_back(axis);
    input_directions.push_back(pick(0, 1));
  }
  add_integer(made, "num_scan_inputs", sequences);
  add_integers(made, "scan_input_axes", axes);
  add_integers(made, "scan_input_directions", input_directions);
  add_integers(made, "scan_output_axes", {axis});
  add_integers(made, "scan_output_directions", {pick(0, 1)});
  Frame inner = inside(frame, made, "body", false);
  inner.shape = {axis == 0 ? columns_ : rows_};
  for (int64_t k = 0; k <= sequences; ++k)
    describe(*inner.graph.add_input(), new_tensor(inner), TensorProto::FLOAT);
  // Scans of vectors would be of scalars: loops and branches stay.
  for (int64_t k = pick(1, 3); k > 0; --k) {
    if (depth + 1 < kMostDepth && pick(0, 3) == 0)
      pick(0, 1) == 0 ? add_if(inner, kMostDepth - 1) : add_loop(inner, kMostDepth - 1);
    else
      add_simple(inner);
  }
  for (int k = 0; k < 2; ++k) add_output(inner);
  leave(frame, inner);
  const std::string last = new_name(frame);
  std::erase(frame.tensors, last);
  made.add_output(last);
  made.add_output(new_tensor(frame));
}

void RandomControlFlow::shuffle(onnx::GraphProto& graph) {
  if (options_.strict) return;
  std::vector<int> order(static_cast<size_t>(graph.node_size()));
  for (int n = 0; n < graph.node_size(); ++n)
    graph.mutable_node()->SwapElements(n, static_cast<int>(pick(n, graph.node_size() - 1)));
}

}  // namespace tuner::testing
