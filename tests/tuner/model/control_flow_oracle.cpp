#include "tests/tuner/model/control_flow_oracle.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "compiler_core/base/status.h"

namespace tuner::testing {
namespace {

using Tensors = std::vector<OracleTensor>;

int64_t size_of(const std::vector<int64_t>& shape) {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  return size;
}
// Around one axis: how many elements stand before it and behind it.
struct Around {
  int64_t before = 1, extent = 1, behind = 1;
};
Around around(const std::vector<int64_t>& shape, int64_t axis) {
  Around a;
  const auto at = shape.begin() + axis;
  a.before = size_of({shape.begin(), at});
  a.extent = *at;
  a.behind = size_of({at + 1, shape.end()});
  return a;
}

OracleTensor tensor_of(const onnx::TensorProto& t) {
  OracleTensor made{{t.dims().begin(), t.dims().end()}, {}};
  made.numbers.assign(t.float_data().begin(), t.float_data().end());
  made.numbers.insert(made.numbers.end(), t.int64_data().begin(), t.int64_data().end());
  made.numbers.insert(made.numbers.end(), t.int32_data().begin(), t.int32_data().end());
  return made;
}

const onnx::AttributeProto* attribute(const onnx::NodeProto& node, const std::string& name) {
  for (const auto& a : node.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}
int64_t integer(const onnx::NodeProto& node, const std::string& name, size_t i = 0) {
  const auto* a = attribute(node, name);
  if (a == nullptr) return 0;
  return a->ints_size() > 0 ? a->ints(static_cast<int>(i)) : a->i();
}

// Equal shapes, or one of them is a single number.
OracleTensor pairwise(const OracleTensor& a, const OracleTensor& b,
                      const std::function<double(double, double)>& f) {
  OracleTensor made = a.numbers.size() >= b.numbers.size() ? a : b;
  for (size_t i = 0; i < made.numbers.size(); ++i)
    made.numbers[i] = f(a.numbers[a.numbers.size() == 1 ? 0 : i], b.numbers[b.numbers.size() == 1 ? 0 : i]);
  return made;
}
OracleTensor each(OracleTensor x, const std::function<double(double)>& f) {
  std::ranges::transform(x.numbers, x.numbers.begin(), f);
  return x;
}
OracleTensor sum(const OracleTensor& x, const onnx::NodeProto& node) {
  if (attribute(node, "axes") == nullptr) {
    double all = 0;
    for (const double number : x.numbers) all += number;
    return {{}, {all}};
  }
  const int64_t axis = integer(node, "axes");
  const auto [before, extent, behind] = around(x.shape, axis);
  OracleTensor made{x.shape, std::vector<double>(static_cast<size_t>(before * behind), 0)};
  made.shape.erase(made.shape.begin() + axis);
  for (int64_t i = 0; i < before * extent * behind; ++i)
    made.numbers[static_cast<size_t>(i / (extent * behind) * behind + i % behind)] +=
        x.numbers[static_cast<size_t>(i)];
  return made;
}
OracleTensor part(const OracleTensor& x, int64_t axis, int64_t index) {
  const auto [before, extent, behind] = around(x.shape, axis);
  OracleTensor made{x.shape, {}};
  made.shape.erase(made.shape.begin() + axis);
  for (int64_t i = 0; i < before; ++i)
    for (int64_t k = 0; k < behind; ++k)
      made.numbers.push_back(x.numbers[static_cast<size_t>((i * extent + index) * behind + k)]);
  return made;
}
OracleTensor stack(const Tensors& parts, int64_t axis) {
  OracleTensor made{parts[0].shape, {}};
  made.shape.insert(made.shape.begin() + axis, std::ssize(parts));
  const auto [before, extent, behind] = around(made.shape, axis);
  for (int64_t i = 0; i < before; ++i)
    for (const OracleTensor& each_part : parts)
      for (int64_t k = 0; k < behind; ++k)
        made.numbers.push_back(each_part.numbers[static_cast<size_t>(i * behind + k)]);
  return made;
}

// One run of a graph: values are computed when they are asked for.
class Run {
 public:
  Run(const onnx::GraphProto& graph, const std::map<std::string, OracleTensor>& given, Run* outer)
      : graph_(graph), values_(given), outer_(outer) {
    for (const auto& constant : graph.initializer()) values_.emplace(constant.name(), tensor_of(constant));
  }

  Tensors outputs() {
    Tensors made;
    for (const auto& output : graph_.output()) made.push_back(value(output.name()));
    return made;
  }

 private:
  OracleTensor value(const std::string& name) {
    if (const auto known = values_.find(name); known != values_.end()) return known->second;
    for (const auto& node : graph_.node())
      for (const std::string& output : node.output()) {
        if (output != name) continue;
        const Tensors made = run(node);
        for (size_t i = 0; i < made.size(); ++i) values_[node.output(static_cast<int>(i))] = made[i];
        return values_.at(name);
      }
    CHECK(outer_ != nullptr) << "nobody makes " << name;
    return outer_->value(name);
  }
  Tensors run_inside(const onnx::NodeProto& node, const char* name, const Tensors& given) {
    const onnx::GraphProto& graph = attribute(node, name)->g();
    std::map<std::string, OracleTensor> inputs;
    for (size_t i = 0; i < given.size(); ++i) inputs[graph.input(static_cast<int>(i)).name()] = given[i];
    return Run(graph, inputs, this).outputs();
  }

  Tensors run(const onnx::NodeProto& node) {
    if (node.op_type() == "If")
      return run_inside(node, value(node.input(0)).numbers[0] != 0 ? "then_branch" : "else_branch", {});
    if (node.op_type() == "Loop") return loop(node);
    if (node.op_type() == "Scan") return scan(node);
    return {simple(node)};
  }
  Tensors loop(const onnx::NodeProto& node) {
    const double count = node.input(0).empty() ? HUGE_VAL : value(node.input(0)).numbers[0];
    bool goes_on = node.input(1).empty() || value(node.input(1)).numbers[0] != 0;
    Tensors state;
    for (int k = 2; k < node.input_size(); ++k) state.push_back(value(node.input(k)));
    std::vector<Tensors> parts(static_cast<size_t>(node.output_size()) - state.size());
    for (double i = 0; i < count && goes_on; ++i) {
      Tensors given{{{}, {i}}, {{}, {1}}};
      given.insert(given.end(), state.begin(), state.end());
      const Tensors made = run_inside(node, "body", given);
      goes_on = made[0].numbers[0] != 0;
      std::copy_n(made.begin() + 1, state.size(), state.begin());
      for (size_t k = 0; k < parts.size(); ++k) parts[k].push_back(made[1 + state.size() + k]);
    }
    for (const Tensors& each_output : parts) state.push_back(stack(each_output, 0));
    return state;
  }
  Tensors scan(const onnx::NodeProto& node) {
    const auto sequences = static_cast<size_t>(integer(node, "num_scan_inputs"));
    Tensors state, scanned;
    for (int k = 0; k < node.input_size(); ++k)
      (static_cast<size_t>(k) + sequences < static_cast<size_t>(node.input_size()) ? state : scanned)
          .push_back(value(node.input(k)));
    std::vector<Tensors> parts(static_cast<size_t>(node.output_size()) - state.size());
    const int64_t length = scanned[0].shape[static_cast<size_t>(integer(node, "scan_input_axes"))];
    for (int64_t i = 0; i < length; ++i) {
      Tensors given = state;
      for (size_t k = 0; k < scanned.size(); ++k)
        given.push_back(part(scanned[k], integer(node, "scan_input_axes", k),
                             integer(node, "scan_input_directions", k) == 1 ? length - 1 - i : i));
      const Tensors made = run_inside(node, "body", given);
      std::copy_n(made.begin(), state.size(), state.begin());
      for (size_t k = 0; k < parts.size(); ++k) parts[k].push_back(made[state.size() + k]);
    }
    for (size_t k = 0; k < parts.size(); ++k) {
      if (integer(node, "scan_output_directions", k) == 1) std::ranges::reverse(parts[k]);
      state.push_back(stack(parts[k], integer(node, "scan_output_axes", k)));
    }
    return state;
  }

  OracleTensor simple(const onnx::NodeProto& node) {
    const std::string& op = node.op_type();
    const OracleTensor a = value(node.input(0));
    if (op == "Identity" || op == "Cast") return a;
    if (op == "Neg") return each(a, [](double x) { return -x; });
    if (op == "Tanh") return each(a, [](double x) { return std::tanh(x); });
    if (op == "Relu") return each(a, [](double x) { return std::max(x, 0.0); });
    if (op == "Not") return each(a, [](double x) { return x == 0 ? 1.0 : 0.0; });
    if (op == "ReduceSum") return sum(a, node);
    if (op == "Size") return {{}, {static_cast<double>(a.numbers.size())}};
    const OracleTensor b = value(node.input(1));
    if (op == "Add") return pairwise(a, b, std::plus<>());
    if (op == "Sub") return pairwise(a, b, std::minus<>());
    if (op == "Mul") return pairwise(a, b, std::multiplies<>());
    if (op == "Less") return pairwise(a, b, [](double x, double y) { return x < y ? 1.0 : 0.0; });
    CHECK(op == "Greater") << "the oracle knows no " << op;
    return pairwise(a, b, [](double x, double y) { return x > y ? 1.0 : 0.0; });
  }

  const onnx::GraphProto& graph_;
  std::map<std::string, OracleTensor> values_;
  Run* outer_;
};

}  // namespace

std::vector<OracleTensor> run_control_flow(const onnx::GraphProto& graph,
                                           const std::map<std::string, OracleTensor>& inputs) {
  return Run(graph, inputs, nullptr).outputs();
}

}  // namespace tuner::testing
