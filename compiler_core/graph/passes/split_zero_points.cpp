// Kernels multiply unsigned by signed bytes. Other products of integers become such a one, and sums that
// carry what zero points add to it:
//
//   sum (a - za)(b - zb) = sum a*b - za * (sums of b's columns) - zb * (sums of a's rows - k * za)
//
// A product that its kernel rounds to bytes itself stays whole: constant signed weights around 0. The border
// of an image that stands for 0 by another byte is put around it.
#include <algorithm>

#include "compiler_core/graph/operators/window.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

constexpr double kToOtherSign = 128;  // between the numbers of uint8 and int8

// Which inputs of an operator are what; kNone: it has no such input.
constexpr size_t kNone = SIZE_MAX;
struct Places {
  std::string_view op;
  size_t a, a_zero, b, b_zero;
  size_t a_scale = kNone, b_scale = kNone, y_scale = kNone, y_zero = kNone, bias = kNone;
};
constexpr Places kProducts[] = {
    {"MatMulInteger", 0, 2, 1, 3},
    {"QLinearMatMul", 0, 2, 3, 5, 1, 4, 6, 7},
    {"com.microsoft.QGemm", 0, 2, 3, 5, 1, 4, 7, 8, 6},
    {"com.microsoft.MatMulIntegerToFloat", 0, 4, 1, 5, 2, 3, kNone, kNone, 6},
};
const Places* places_of(const Node& node) {
  const auto* found = std::ranges::find(kProducts, node.op, &Places::op);
  return found == std::end(kProducts) ? nullptr : found;
}

class Splitter {
 public:
  explicit Splitter(Graph& graph) : graph_(graph) {}

  void run() {
    sign_right_operands();
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) {
      if (node.op == "QLinearConv") {
        name_ = node.name, operator_set_ = node.operator_set;
        sign_convolution(node);
        put_border(node);
      }
      const Places* places = places_of(node);
      if (places == nullptr || !split(node, *places)) graph_.nodes.push_back(std::move(node));
    }
  }

 private:
  // --- values ---

  const TensorType& type(ValueId v) const { return graph_[v].type; }
  static ValueId input(const Node& node, size_t place) {
    return place < node.inputs.size() ? node.inputs[place] : kNoValue;
  }
  std::vector<double> numbers(ValueId v) const { return graph_[v].constant->numbers(type(v).dtype); }
  bool is_constant(ValueId v) const { return graph_[v].constant.has_value(); }
  // One number: a constant, or one that follows from data.
  bool is_single(ValueId v) const { return v == kNoValue || type(v).elements() == 1; }
  bool is_known_number(ValueId v) const { return v == kNoValue || (is_constant(v) && is_single(v)); }
  // Whether it stands for 0 in every run.
  bool is_zero(ValueId v) const {
    return v == kNoValue ||
           (is_constant(v) && std::ranges::all_of(numbers(v), [](double x) { return x == 0; }));
  }
  ValueId constant(const char* what, TensorType of, const std::vector<double>& values) {
    return add_constant(graph_, str(name_, "/", what), std::move(of), values);
  }
  ValueId add(const char* op, std::vector<ValueId> inputs, TensorType of, Attributes attributes = {}) {
    graph_.values.push_back({str(name_, "/", op), std::move(of), std::nullopt});
    const ValueId made = graph_.values.size() - 1;
    graph_.nodes.push_back(
        {str(name_, "/", op), op, operator_set_, std::move(attributes), std::move(inputs), {made}});
    return made;
  }
  ValueId as(DType dtype, ValueId v) {
    if (type(v).dtype == dtype) return v;
    const TensorType of{dtype, type(v).shape};
    if (is_constant(v)) return constant("cast", of, numbers(v));
    return add("Cast", {v}, of, {{"to", std::string(dtype_name(dtype))}});
  }
  // a op b, of one type, with the shape of `whole`. By value: shapes of the graph's values move as it grows.
  ValueId binary(const char* op, ValueId a, ValueId b, Shape whole) {
    return add(op, {a, b}, {type(a).dtype, std::move(whole)});
  }
  ValueId whole_number(double x) { return constant("number", {DType::kInt32, {}}, {x}); }
  // Numbers a row, [rows], as a column.
  ValueId column(ValueId v) {
    if (is_single(v)) return v;
    const TensorType of{type(v).dtype, {type(v).elements(), 1}};
    if (is_constant(v)) return constant("rows", of, numbers(v));
    return add("tuner.View", {v}, of, {{"shape", of.shape}});
  }
  // Bytes plus `by`, as the other type of bytes.
  ValueId moved(ValueId v, DType to, double by) {
    const TensorType of{to, type(v).shape};
    if (is_constant(v)) {
      std::vector<double> values = numbers(v);
      for (double& x : values) x += by;
      return constant("moved", of, values);
    }
    const ValueId wide = binary("Add", as(DType::kInt32, v), whole_number(by), of.shape);
    return as(to, wide);
  }

  // --- signs ---

  // Rounds what only products read on their right side to signed bytes where it is made.
  void sign_right_operands() {
    const Uses uses(graph_);
    // How often products read a value on their right, with a zero point that is one known number.
    std::vector<int> right(graph_.values.size(), 0);
    for (const Node& node : graph_.nodes)
      if (const Places* p = places_of(node); p != nullptr && is_known_number(input(node, p->b_zero)))
        ++right[node.inputs[p->b]];
    std::vector<bool> is_signed(graph_.values.size(), false);
    for (Node& node : graph_.nodes) {
      if (node.op == "QuantizeLinear") is_signed[node.outputs[0]] = sign(node, uses, right);
      const Places* p = places_of(node);
      if (p == nullptr || !is_signed[node.inputs[p->b]]) continue;
      name_ = node.name;
      node.inputs.resize(std::max(node.inputs.size(), p->b_zero + 1), kNoValue);
      node.inputs[p->b_zero] = signed_zero(node.inputs[p->b_zero]);
    }
  }
  ValueId signed_zero(ValueId zero) {
    const double number = (zero == kNoValue ? 0 : numbers(zero)[0]) - kToOtherSign;
    return constant("zero_point", {DType::kInt8, {}}, {number});
  }
  // Whether the QuantizeLinear gives signed bytes now.
  bool sign(Node& node, const Uses& uses, const std::vector<int>& right) {
    const ValueId made = node.outputs[0], zero = input(node, 2);
    const bool may = type(made).dtype == DType::kUInt8 && right[made] > 0 &&
                     uses.readers(made) == right[made] && !node.attributes.contains("output_dtype") &&
                     is_known_number(zero);
    if (!may) return false;
    name_ = node.name;
    node.inputs.resize(3, kNoValue);
    node.inputs[2] = signed_zero(zero);
    graph_.values[made].type.dtype = DType::kInt8;
    return true;
  }

  // --- convolutions ---

  // Of unsigned images with signed weights, as kernels have them. x, its scale and zero point; w, its scale
  // and zero point.
  void sign_convolution(Node& node) {
    const ValueId x = node.inputs[0], x_zero = node.inputs[2], w = node.inputs[3], w_zero = node.inputs[5];
    if (type(x).dtype == DType::kInt8 && is_known_number(x_zero)) {
      node.inputs[0] = moved(x, DType::kUInt8, kToOtherSign);
      node.inputs[2] = moved(x_zero, DType::kUInt8, kToOtherSign);
    }
    if (type(w).dtype == DType::kUInt8 && is_constant(w) && is_constant(w_zero)) {
      node.inputs[3] = moved(w, DType::kInt8, -kToOtherSign);
      node.inputs[5] = moved(w_zero, DType::kInt8, -kToOtherSign);
    }
  }
  void put_border(Node& node) {
    const ValueId image = node.inputs[0], zero = node.inputs[2];
    if (is_zero(zero) || !is_known_number(zero)) return;
    const Use use(graph_, node);
    const Shape shape = type(image).shape, kernel = type(node.inputs[3]).shape;
    const Result<Window> window = window_of(use, shape, {kernel.begin() + 2, kernel.end()});
    if (!window) return;
    const auto is_none = [](int64_t pad) { return pad == 0; };
    if (std::ranges::all_of(window->before, is_none) && std::ranges::all_of(window->behind, is_none)) return;
    TensorType with_border = type(image);
    std::vector<double> pads(2 * shape.size(), 0);
    for (size_t d = 2; d < shape.size(); ++d) {
      pads[d] = static_cast<double>(window->before[d - 2]);
      pads[shape.size() + d] = static_cast<double>(window->behind[d - 2]);
      with_border.shape[d] += window->before[d - 2] + window->behind[d - 2];
    }
    const ValueId around = constant("pads", {DType::kInt64, {std::ssize(pads)}}, pads);
    node.inputs[0] = add("Pad", {image, around, scalar(zero)}, with_border);
    node.attributes.erase("auto_pad");
    node.attributes["pads"] = Shape(2 * (shape.size() - 2), 0);
  }

  // --- products ---

  struct Factor {
    ValueId bytes, zero;
  };
  // The operand as bytes of the type, and the zero point that it has then, in 32 bits; kNoValue: it is 0.
  Factor as_type(ValueId bytes, ValueId zero, DType to) {
    const double by = type(bytes).dtype == to ? 0 : to == DType::kUInt8 ? kToOtherSign : -kToOtherSign;
    if (by != 0) {
      bytes = moved(bytes, to, by);
      if (zero == kNoValue || is_constant(zero)) {
        std::vector<double> values = zero == kNoValue ? std::vector<double>{0} : numbers(zero);
        for (double& x : values) x += by;
        zero = constant("zero_point", {DType::kInt32, zero == kNoValue ? Shape{} : type(zero).shape}, values);
      } else {
        zero = binary("Add", as(DType::kInt32, zero), whole_number(by), type(zero).shape);
      }
    }
    if (is_zero(zero)) return {bytes, kNoValue};
    return {bytes, as(DType::kInt32, zero)};
  }
  // What a kernel multiplies and rounds by itself: all but the operands is constant.
  bool is_whole(const Node& node, const Places& p) const {
    if (p.y_scale == kNone || input(node, p.y_scale) == kNoValue) return false;
    const ValueId a = node.inputs[p.a], b = node.inputs[p.b];
    if (type(a).dtype != DType::kUInt8 || type(b).dtype != DType::kInt8 || !is_constant(b) ||
        type(b).shape.size() != 2 || type(a).shape.empty() || !is_zero(input(node, p.b_zero)))
      return false;
    for (const size_t place : {p.a_scale, p.a_zero, p.b_scale, p.y_scale, p.y_zero}) {
      const ValueId v = input(node, place);
      if (v != kNoValue && (!is_constant(v) || (place != p.b_scale && !is_single(v)))) return false;
    }
    const Use use(graph_, node);
    if (use.integer("transA", 0) != 0 || use.number("alpha", 1) != 1) return false;
    const ValueId bias = input(node, p.bias);
    const int64_t columns = type(b).shape[use.integer("transB", 0) != 0 ? 0 : 1];
    return bias == kNoValue || (is_constant(bias) && type(bias).elements() == columns &&
                                !type(bias).shape.empty() && type(bias).shape.back() == columns);
  }

  // Puts the nodes that stand for it into the graph. False: it stays as it is, possibly on signed weights.
  bool split(Node& node, const Places& p) {
    name_ = node.name;
    operator_set_ = node.operator_set;
    const ValueId b = node.inputs[p.b], b_zero = input(node, p.b_zero);
    if (is_constant(b) && type(b).dtype == DType::kUInt8 && (b_zero == kNoValue || is_constant(b_zero)))
      move_weights(node, p);
    if (is_whole(node, p)) return false;
    const bool is_plain = p.op == "MatMulInteger" && is_zero(input(node, p.a_zero)) &&
                          is_zero(input(node, p.b_zero)) && type(node.inputs[p.a]).dtype == DType::kUInt8 &&
                          type(node.inputs[p.b]).dtype == DType::kInt8;
    if (is_plain) {
      node.inputs.resize(2);
      return false;
    }
    if (!is_served(node, p)) return false;
    const ValueId sums = sums_of(node, p);
    finish(node, p, sums);
    return true;
  }
  // Constant weights as signed bytes, zero points with them.
  void move_weights(Node& node, const Places& p) {
    const ValueId zero = input(node, p.b_zero);
    node.inputs[p.b] = moved(node.inputs[p.b], DType::kInt8, -kToOtherSign);
    node.inputs.resize(std::max(node.inputs.size(), p.b_zero + 1), kNoValue);
    node.inputs[p.b_zero] = zero == kNoValue ? constant("zero_point", {DType::kInt8, {}}, {-kToOtherSign})
                                             : moved(zero, DType::kInt8, -kToOtherSign);
  }
  // Matrices, zero points and scales of forms that the sums below know.
  bool is_served(const Node& node, const Places& p) const {
    const Shape &a = type(node.inputs[p.a]).shape, &b = type(node.inputs[p.b]).shape;
    if (a.size() < 2 || b.size() < 2) return false;
    const auto is_vector = [&](ValueId v) { return is_single(v) || type(v).shape.size() == 1; };
    for (const size_t place : {p.a_zero, p.b_zero, p.a_scale, p.b_scale})
      if (!is_vector(input(node, place))) return false;
    const Use use(graph_, node);
    return use.integer("transA", 0) == 0 && is_single(input(node, p.y_scale)) &&
           is_single(input(node, p.y_zero));
  }

  ValueId sums_of(const Node& node, const Places& p) {
    const bool is_transposed = Use(graph_, node).integer("transB", 0) != 0;
    Factor a = as_type(node.inputs[p.a], input(node, p.a_zero), DType::kUInt8);
    Factor b = as_type(node.inputs[p.b], input(node, p.b_zero), DType::kInt8);
    if (is_transposed) {
      const Shape& stored = type(b.bytes).shape;
      b.bytes = add("Transpose", {b.bytes}, {DType::kInt8, {stored[1], stored[0]}}, {{"perm", Shape{1, 0}}});
    }
    const Shape shape = type(node.outputs[0]).shape;
    ValueId sums = add("MatMulInteger", {a.bytes, b.bytes}, {DType::kInt32, shape});
    a.zero = a.zero == kNoValue ? kNoValue : column(a.zero);
    if (a.zero != kNoValue) {
      const ValueId columns =
          is_transposed ? column_sums(node.inputs[p.b], b, true) : column_sums(b.bytes, b, false);
      sums = binary("Sub", sums, product(a.zero, columns), shape);
    }
    if (b.zero != kNoValue) {
      Shape rows = type(a.bytes).shape;
      const int64_t terms = rows.back();
      rows.back() = 1;
      // Kernels of products sum up bytes faster than those of sums.
      const ValueId ones =
          constant("ones", {DType::kInt8, {terms, 1}}, std::vector<double>(static_cast<size_t>(terms), 1));
      ValueId row_sums = add("MatMulInteger", {a.bytes, ones}, {DType::kInt32, rows});
      if (a.zero != kNoValue)
        row_sums = binary("Sub", row_sums, product(a.zero, whole_number(static_cast<double>(terms))), rows);
      sums = binary("Sub", sums, product(row_sums, b.zero), shape);
    }
    return sums;
  }
  ValueId column_sums(ValueId stored, const Factor& b, bool is_transposed) {
    Shape columns = type(b.bytes).shape;
    columns[columns.size() - 2] = 1;
    if (is_constant(stored) && type(stored).dtype == DType::kInt8 && type(stored).shape.size() == 2) {
      const std::vector<double> values = numbers(stored);
      std::vector<double> sums(static_cast<size_t>(columns.back()), 0);
      const size_t n = sums.size(), k = values.size() / n;
      for (size_t i = 0; i < values.size(); ++i) sums[is_transposed ? i / k : i % n] += values[i];
      return constant("columns", {DType::kInt32, {columns.back()}}, sums);
    }
    const ValueId rows = constant("axes", {DType::kInt64, {1}}, {-2});
    return add("ReduceSum", {as(DType::kInt32, b.bytes), rows}, {DType::kInt32, columns},
               {{"keepdims", int64_t{1}}});
  }
  // Of two values that broadcast, one of them a number or a row or a column; constants at once.
  ValueId product(ValueId x, ValueId y) {
    const Shape shape = *broadcast(type(x).shape, type(y).shape);
    if (is_constant(x) && is_constant(y) && (is_single(x) || is_single(y))) {
      const std::vector<double> one = numbers(is_single(x) ? x : y);
      std::vector<double> values = numbers(is_single(x) ? y : x);
      for (double& each : values) each *= one[0];
      return constant("product", {type(x).dtype, shape}, values);
    }
    return binary("Mul", x, y, shape);
  }

  // From sums to the node's result.
  void finish(const Node& node, const Places& p, ValueId sums) {
    const Shape shape = type(node.outputs[0]).shape;
    if (p.op == "com.microsoft.QGemm" && input(node, p.bias) != kNoValue)
      sums = binary("Add", sums, input(node, p.bias), shape);
    if (p.a_scale == kNone) return give(node, sums);
    ValueId factor = product(column(node.inputs[p.a_scale]), node.inputs[p.b_scale]);
    if (const double alpha = Use(graph_, node).number("alpha", 1); alpha != 1)
      factor = product(constant("alpha", {DType::kFloat32, {}}, {alpha}), factor);
    const ValueId y_scale = input(node, p.y_scale);
    if (y_scale != kNoValue) factor = quotient(factor, y_scale);
    const ValueId real = binary("Mul", as(DType::kFloat32, sums), factor, shape);
    if (y_scale == kNoValue) {
      const bool has_bias = p.op == "com.microsoft.MatMulIntegerToFloat" && input(node, p.bias) != kNoValue;
      return give(node, has_bias ? binary("Add", real, input(node, p.bias), shape) : real);
    }
    std::vector<ValueId> inputs{real, constant("one", {DType::kFloat32, {}}, {1})};
    const ValueId zero = input(node, p.y_zero);
    const DType bytes = type(node.outputs[0]).dtype;
    inputs.push_back(zero == kNoValue ? constant("zero_point", {bytes, {}}, {0}) : scalar(zero));
    give(node, add("QuantizeLinear", inputs, {bytes, shape}));
  }
  ValueId scalar(ValueId v) {
    if (type(v).shape.empty()) return v;
    const TensorType of{type(v).dtype, {}};
    if (is_constant(v)) return constant("zero_point", of, numbers(v));
    return add("tuner.View", {v}, of, {{"shape", Shape{}}});
  }
  ValueId quotient(ValueId x, ValueId one) {
    if (!is_constant(x) || !is_constant(one)) return binary("Div", x, one, type(x).shape);
    std::vector<double> values = numbers(x);
    const auto divisor = static_cast<float>(numbers(one)[0]);
    for (double& each : values) each = double{static_cast<float>(each) / divisor};
    return constant("factor", type(x), values);
  }
  // The last node that was added makes the node's result.
  void give(const Node& node, ValueId made) {
    Node& last = graph_.nodes.back();
    CHECK(last.outputs[0] == made) << "the last node makes another value";
    last.name = node.name;
    last.outputs = node.outputs;
  }

  Graph& graph_;
  std::string name_;           // of the node that is split
  int64_t operator_set_ = 23;  // its own
};

}  // namespace

Status split_zero_points(Graph& graph, const Evaluator& /*evaluate*/) {
  Splitter(graph).run();
  return Status::ok();
}

}  // namespace tuner::graph
