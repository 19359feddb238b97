#include "compiler_core/graph/empty.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace tuner::graph {
namespace {

bool is_one_of(const std::string& op, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, op) != names.end();
}

bool is_reduction(const std::string& op) { return op.starts_with("Reduce"); }

// What stands for one node.
class Substitute {
 public:
  Substitute(GraphBuilder& builder, Node node, const std::vector<TensorType>& types,
             const std::vector<std::string>& names)
      : b_(builder), node_(std::move(node)), types_(types), names_(names) {}

  Result<std::vector<ValueId>> add() {
    const bool reads_empty = std::ranges::any_of(node_.inputs, [&](ValueId v) { return is_none(v); });
    const auto is_made = [&](size_t k) { return !names_[k].empty() && !is_empty(types_[k]); };
    size_t made = 0;
    for (size_t k = 0; k < names_.size(); ++k) made += is_made(k) ? 1 : 0;
    if (made == 0) return with_constants({});
    if (node_.op == "Split" && !reads_empty) return split();
    ASSIGN_OR_RETURN(const std::vector<ValueId> results, results_of_nothing());
    return with_constants(results);
  }

 private:
  bool is_none(ValueId v) const { return v != kNoValue && is_empty(b_[v].type); }
  bool has_none(size_t i) const { return i < node_.inputs.size() && is_none(node_.inputs[i]); }
  bool has(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }
  Use use() const { return {b_.graph(), node_}; }

  // The results; where a value without elements is asked for, that constant.
  Result<std::vector<ValueId>> with_constants(std::vector<ValueId> results) {
    results.resize(names_.size(), kNoValue);
    for (size_t k = 0; k < names_.size(); ++k)
      if (!names_[k].empty() && is_empty(types_[k]))
        results[k] = b_.constant(names_[k], types_[k], Constant());
    return results;
  }

  Result<ValueId> node(std::string_view op, const std::string& result, Attributes attributes,
                       std::vector<ValueId> inputs) {
    Node made{.name = node_.name,
              .op = std::string(op),
              .operator_set = node_.operator_set,
              .attributes = std::move(attributes),
              .inputs = std::move(inputs)};
    ASSIGN_OR_RETURN(const std::vector<ValueId> results, b_.add(std::move(made), {result}));
    return results[0];
  }
  std::string inner_name(std::string_view what) const { return str(names_[0], "_", what); }

  // The first result as the value of another node.
  Result<std::vector<ValueId>> as(std::string_view op, Attributes attributes, std::vector<ValueId> inputs) {
    ASSIGN_OR_RETURN(const ValueId v, node(op, names_[0], std::move(attributes), std::move(inputs)));
    return std::vector<ValueId>{v};
  }
  Result<std::vector<ValueId>> same(ValueId v) { return as("Identity", {}, {v}); }

  // The first result, all of whose elements are this one.
  Result<std::vector<ValueId>> filled(ValueId element) {
    const ValueId shape = b_.constant(inner_name("shape"), {DType::kInt64, {std::ssize(types_[0].shape)}},
                                      Constant::of(std::span<const int64_t>(types_[0].shape), DType::kInt64));
    if (types_[0].shape.empty()) return same(element);
    return as("Expand", {}, {element, shape});
  }
  Result<std::vector<ValueId>> filled(double number) {
    const DType dtype = types_[0].dtype;
    return filled(b_.constant(inner_name("element"), {dtype, {}}, Constant::of(std::vector{number}, dtype)));
  }
  Result<ValueId> viewed(ValueId v, Shape shape) {
    return node("tuner.View", inner_name("view"), {{"shape", std::move(shape)}}, {v});
  }

  Status refusal() const {
    size_t i = 0, k = 0;
    while (i < node_.inputs.size() && !has_none(i)) ++i;
    while (names_[k].empty() || is_empty(types_[k])) ++k;
    if (i == node_.inputs.size())
      return invalid_argument("node ", node_.name, " (", node_.op, "): results with elements and without (",
                              to_text(types_[k]), " is result ", k, ") are not served");
    return invalid_argument("node ", node_.name, " (", node_.op, "): input ", i, ", ",
                            to_text(b_[node_.inputs[i]].type), ", has no elements, and result ", k, ", ",
                            to_text(types_[k]), ", has: not served");
  }

  // Parts without elements are not asked for.
  Result<std::vector<ValueId>> split() {
    ASSIGN_OR_RETURN(const int64_t axis, use().axis(0, use().rank(0)));
    std::vector<int64_t> parts;
    std::vector<std::string> names;
    std::vector<size_t> places;
    for (size_t k = 0; k < types_.size(); ++k) {
      if (is_empty(types_[k])) continue;
      parts.push_back(types_[k].shape[static_cast<size_t>(axis)]);
      names.push_back(k < names_.size() ? names_[k] : "");
      places.push_back(k);
    }
    Node without = node_;
    without.attributes = {{"axis", axis}, {"split", std::move(parts)}};
    without.inputs.resize(1);
    ASSIGN_OR_RETURN(const std::vector<ValueId> made, b_.add(std::move(without), names));
    std::vector<ValueId> results(names_.size(), kNoValue);
    for (size_t k = 0; k < places.size(); ++k) results[places[k]] = made[k];
    return with_constants(std::move(results));
  }

  // What a node makes although an operand has no elements.
  Result<std::vector<ValueId>> results_of_nothing() {
    const std::string& op = node_.op;
    if (op == "Attention") return attention();
    if (names_.size() > 1) return refusal();
    if (op == "Concat") return concat();
    if (is_reduction(op) && has_none(0)) return reduction();
    if (op == "MatMul" || op == "MatMulInteger" || op == "Einsum") return filled(0.0);
    if (op == "Gemm" && (has_none(0) || has_none(1))) return gemm();
    if (op == "QLinearMatMul" && b_[node_.inputs[7]].type.elements() == 1) return zero_point();
    if ((op == "Conv" || op == "ConvTranspose") && (has_none(0) || has_none(1))) return convolution();
    if (op == "ConvInteger" && (has_none(0) || has_none(1))) return filled(0.0);
    if (op == "CenterCropPad" && has_none(0)) return filled(0.0);
    if (op == "Pad" && has_none(0)) return padding();
    if (is_one_of(op, {"Scatter", "ScatterElements", "ScatterND"}) && has_none(2))
      return same(node_.inputs[0]);
    // Lists that name nothing to be done.
    if (is_one_of(op, {"Expand", "Tile", "Slice", "Pad", "Squeeze", "Unsqueeze", "CenterCropPad"}) &&
        has_none(1) && types_[0] == b_[node_.inputs[0]].type)
      return same(node_.inputs[0]);
    if (op == "Reshape" && has_none(1)) return as("tuner.View", {{"shape", Shape()}}, {node_.inputs[0]});
    return refusal();
  }

  Result<std::vector<ValueId>> concat() {
    std::vector<ValueId> parts;
    std::ranges::copy_if(node_.inputs, std::back_inserter(parts), [&](ValueId v) { return !is_none(v); });
    if (parts.size() == 1) return same(parts[0]);
    return as("Concat", node_.attributes, std::move(parts));
  }

  Result<std::vector<ValueId>> reduction() {
    const DType dtype = types_[0].dtype;
    const double most = std::numeric_limits<double>::infinity();
    const std::string& op = node_.op;
    if (is_one_of(op, {"ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceL2"})) return filled(0.0);
    if (op == "ReduceProd") return filled(1.0);
    if (dtype == DType::kBool && op == "ReduceMax") return filled(0.0);
    if (op == "ReduceMax") return filled(-most);
    if (op == "ReduceMin") return filled(most);
    if (!is_float(dtype)) return refusal();  // ONNX has no number for it
    if (op == "ReduceLogSum" || op == "ReduceLogSumExp") return filled(-most);
    return op == "ReduceMean" ? filled(std::nan("")) : refusal();
  }

  Result<std::vector<ValueId>> gemm() {
    const double beta = use().number("beta", 1);
    if (!has(2)) return filled(0.0);
    if (beta == 1) return filled(node_.inputs[2]);
    const DType dtype = types_[0].dtype;
    const ValueId factor =
        b_.constant(inner_name("beta"), {dtype, {}}, Constant::of(std::vector{beta}, dtype));
    ASSIGN_OR_RETURN(const ValueId scaled, node("Mul", inner_name("scaled"), {}, {node_.inputs[2], factor}));
    return filled(scaled);
  }

  Result<std::vector<ValueId>> zero_point() {
    ASSIGN_OR_RETURN(const ValueId point, viewed(node_.inputs[7], {}));
    return filled(point);
  }

  Result<std::vector<ValueId>> convolution() {
    if (!has(2)) return filled(0.0);
    Shape shape(types_[0].shape.size() - 1, 1);
    shape[0] = types_[0].shape[1];
    ASSIGN_OR_RETURN(const ValueId bias, viewed(node_.inputs[2], std::move(shape)));
    return filled(bias);
  }

  // types() lets no mode but "constant" make elements out of nothing.
  Result<std::vector<ValueId>> padding() {
    if (!has(2)) return filled(use().number("value", 0));
    if (has_none(2)) return refusal();
    ASSIGN_OR_RETURN(const ValueId element, viewed(node_.inputs[2], {}));
    return filled(element);
  }

  // A past without elements is none.
  Result<std::vector<ValueId>> attention() {
    constexpr size_t kPastK = 4, kPastV = 5;
    Node without = node_;
    for (size_t i = 0; i < without.inputs.size(); ++i) {
      if (!has_none(i)) continue;
      if (i != kPastK && i != kPastV) return refusal();
      without.inputs[i] = kNoValue;
    }
    while (without.inputs.back() == kNoValue) without.inputs.pop_back();
    return b_.add(std::move(without), names_);
  }

  GraphBuilder& b_;
  const Node node_;
  const std::vector<TensorType>& types_;
  const std::vector<std::string>& names_;
};

}  // namespace

bool serves_empty(const Operator& row) {
  static const std::set<std::string_view> kOthers = {"Attention",
                                                     "AveragePool",
                                                     "Compress",
                                                     "Concat",
                                                     "Conv",
                                                     "ConvInteger",
                                                     "ConvTranspose",
                                                     "CumSum",
                                                     "DepthToSpace",
                                                     "Einsum",
                                                     "Expand",
                                                     "Flatten",
                                                     "Gather",
                                                     "GatherElements",
                                                     "GatherND",
                                                     "Gemm",
                                                     "GlobalAveragePool",
                                                     "GlobalLpPool",
                                                     "GlobalMaxPool",
                                                     "GroupNormalization",
                                                     "Hardmax",
                                                     "InstanceNormalization",
                                                     "LRN",
                                                     "LayerNormalization",
                                                     "LogSoftmax",
                                                     "LpNormalization",
                                                     "LpPool",
                                                     "MatMul",
                                                     "MatMulInteger",
                                                     "MaxPool",
                                                     "MeanVarianceNormalization",
                                                     "NonZero",
                                                     "OneHot",
                                                     "Pad",
                                                     "ArgMax",
                                                     "ArgMin",
                                                     "CenterCropPad",
                                                     "QLinearConv",
                                                     "QLinearMatMul",
                                                     "RMSNormalization",
                                                     "Reshape",
                                                     "Resize",
                                                     "ReverseSequence",
                                                     "Scatter",
                                                     "ScatterElements",
                                                     "ScatterND",
                                                     "Slice",
                                                     "Softmax",
                                                     "SpaceToDepth",
                                                     "Split",
                                                     "Squeeze",
                                                     "Tile",
                                                     "TopK",
                                                     "Transpose",
                                                     "Trilu",
                                                     "Unique",
                                                     "Unsqueeze",
                                                     "Upsample",
                                                     "tuner.View"};
  return row.kind == OperatorKind::kElementwise || row.kind == OperatorKind::kShape ||
         is_reduction(std::string(row.name)) || kOthers.contains(row.name);
}

void drop_empty_options(const Graph& graph, Node& node) {
  const auto drop = [&](std::initializer_list<size_t> inputs) {
    for (const size_t i : inputs) {
      if (i >= node.inputs.size() || node.inputs[i] == kNoValue) continue;
      if (is_empty(graph[node.inputs[i]].type)) node.inputs[i] = kNoValue;
    }
  };
  if (node.op == "Resize") drop({1, 2, 3});  // the region, scales or sizes
  if (is_reduction(node.op)) drop({1});      // no axes are all axes, or none: noop_with_empty_axes
  if (node.op == "Clip") drop({1, 2});       // a bound
  if (node.op == "Dropout") drop({1, 2});    // ratio and mode
  if (node.op == "Pad") drop({2});           // the filling
  if (node.op == "Trilu") drop({1});         // the diagonal
  while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
}

bool touches_empty(const Graph& graph, const Node& node, std::span<const TensorType> types) {
  const bool is_kept = find_operator(node.op)->kind == OperatorKind::kShape;  // it reads no element
  const auto has_none = [&](ValueId v) { return v != kNoValue && is_empty(graph[v].type); };
  if (!is_kept && std::ranges::any_of(node.inputs, has_none)) return true;
  for (size_t k = 0; k < node.outputs.size() && k < types.size(); ++k)
    if (node.outputs[k] != kNoValue && is_empty(types[k])) return true;
  return false;
}

Result<std::vector<ValueId>> add_without_empty(GraphBuilder& builder, Node node,
                                               const std::vector<TensorType>& types,
                                               const std::vector<std::string>& names) {
  CHECK(types.size() >= names.size())
      << node.op << " gives " << types.size() << " types for " << names.size() << " results";
  return Substitute(builder, std::move(node), types, names).add();
}

}  // namespace tuner::graph
