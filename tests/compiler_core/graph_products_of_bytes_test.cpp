// Products of integers in every form that quantisers write become those that kernels have, and stay the same
// numbers; so do roundings by a tensor's own range, and borders of images.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "tests/compiler_core/graph_writer.h"
#include "tests/random_seed.h"

namespace tuner::graph {
namespace {

using testing::Dims;
using testing::Numbers;

// The graph builder makes inputs of float32 only, so the graphs of this file are written by hand.
class Draws {
 public:
  explicit Draws(uint32_t seed) : random_(seed) { graph_.name = "test"; }

  int64_t integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool flag() { return integer(0, 1) == 1; }
  // From now on everything is as a quantiser writes it beside activations: known, and weights around 0.
  void know_all() { knows_all_ = true; }
  DType byte() { return flag() ? DType::kInt8 : DType::kUInt8; }

  ValueId value(const TensorType& type) {
    graph_.values.push_back({str("v", graph_.values.size()), type, std::nullopt});
    return graph_.values.size() - 1;
  }
  // Any numbers of the type, given with each run or known.
  ValueId operand(const TensorType& type, bool is_constant) {
    const ValueId v = value(type);
    is_constant = is_constant || knows_all_;
    Numbers numbers;
    for (int64_t k = 0; k < type.elements(); ++k)
      numbers.push_back(type.dtype == DType::kFloat32
                            ? scale()
                            : static_cast<double>(integer(least(type.dtype), most(type.dtype))));
    if (is_constant) {
      graph_.values[v].constant = Constant::of(numbers, type.dtype);
    } else {
      graph_.inputs.push_back(v);
      inputs_.push_back(std::move(numbers));
    }
    return v;
  }
  // The first result; the others are behind it.
  ValueId add(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {},
              size_t results = 1) {
    Node node{.name = str("node", graph_.nodes.size()),
              .op = op,
              .attributes = std::move(attributes),
              .inputs = std::move(inputs)};
    const size_t first = graph_.values.size();
    for (size_t k = 0; k < results; ++k) node.outputs.push_back(first + k);
    const auto types = infer(graph_, node);
    CHECK(types.is_ok()) << op << ": " << types.message();
    for (size_t k = 0; k < results; ++k) value(types->at(k));
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back().outputs[0];
  }
  Graph finish(std::vector<ValueId> outputs) {
    graph_.outputs = std::move(outputs);
    for (const ValueId v : graph_.outputs) graph_.output_names.push_back(graph_[v].name);
    return graph_;
  }
  const std::vector<Numbers>& inputs() const { return inputs_; }
  Graph& graph() { return graph_; }

  // A zero point of the bytes, or none: one number or one a row (column), known or not.
  ValueId zero(DType dtype, int64_t count) {
    if (knows_all_) {
      const ValueId known = operand({dtype, {}}, true);
      if (dtype == DType::kInt8) graph_.values[known].constant = Constant::of(Numbers(1, 0), dtype);
      return known;
    }
    const int64_t kind = integer(0, 4);
    if (kind == 0) return kNoValue;
    const ValueId v = operand({dtype, kind == 1 ? Dims{count} : flag() ? Dims{} : Dims{1}}, kind < 4);
    if (kind == 2 && flag()) graph_.values[v].constant = Constant::of(Numbers(1, 0), dtype);
    return v;
  }
  ValueId scales(int64_t count) {
    const bool has_many = !knows_all_ && flag();
    return operand({DType::kFloat32, has_many ? Dims{count} : Dims{}}, integer(0, 3) > 0);
  }

 private:
  static int64_t least(DType t) { return t == DType::kInt8 ? -128 : t == DType::kUInt8 ? 0 : -2000; }
  static int64_t most(DType t) { return t == DType::kInt8 ? 127 : t == DType::kUInt8 ? 255 : 2000; }
  double scale() { return static_cast<double>(std::uniform_real_distribution<float>(0.01F, 0.03F)(random_)); }

  std::mt19937 random_;
  Graph graph_;
  std::vector<Numbers> inputs_;
  bool knows_all_ = false;
};

// A product of one of the four forms.
ValueId product(Draws& d, int64_t form) {
  const bool is_usual = d.integer(0, 3) == 0;
  const DType of_a = is_usual ? DType::kUInt8 : d.byte(), of_b = is_usual ? DType::kInt8 : d.byte();
  const int64_t m = d.integer(1, 5), n = d.integer(1, 9), k = d.integer(1, 20);
  const bool has_batch = form != 2 && d.flag(), is_constant = d.flag(), is_transposed = form == 2 && d.flag();
  Dims shape_a{m, k}, shape_b = is_transposed ? Dims{n, k} : Dims{k, n};
  if (has_batch) shape_a.insert(shape_a.begin(), 3);
  if (has_batch && !is_constant) shape_b.insert(shape_b.begin(), 3);
  const ValueId a = d.operand({of_a, shape_a}, false);
  if (is_usual) d.know_all();
  const ValueId b = d.operand({of_b, shape_b}, is_constant);
  const auto required = [&](ValueId v, DType dtype) {
    return v == kNoValue ? d.operand({dtype, {}}, true) : v;
  };
  const auto one = [&] { return d.operand({DType::kFloat32, {}}, d.flag()); };
  if (form == 0) return d.add("MatMulInteger", {a, b, d.zero(of_a, m), d.zero(of_b, n)});
  if (form == 1) {
    const DType of_y = d.byte();
    const ValueId y_scale = d.operand({DType::kFloat32, {}}, d.flag());
    return d.add("QLinearMatMul",
                 {a, d.scales(m), required(d.zero(of_a, m), of_a), b, d.scales(n),
                  required(d.zero(of_b, n), of_b), y_scale, d.operand({of_y, {}}, d.flag())});
  }
  if (form == 2) {
    const ValueId a_zero = d.operand({of_a, {}}, d.flag());
    std::vector<ValueId> in{a,
                            one(),
                            a_zero,
                            b,
                            d.scales(n),
                            required(d.zero(of_b, n), of_b),
                            d.flag() ? d.operand({DType::kInt32, {n}}, d.flag()) : kNoValue};
    if (d.flag()) in.insert(in.end(), {one(), d.operand({d.byte(), {}}, d.flag())});
    Attributes attributes{{"transB", int64_t{is_transposed}}};
    if (d.flag()) attributes["alpha"] = 0.5;
    return d.add("com.microsoft.QGemm", in, attributes);
  }
  return d.add("com.microsoft.MatMulIntegerToFloat",
               {a, b, d.scales(m), d.scales(n), d.zero(of_a, m), d.zero(of_b, n),
                d.flag() ? d.operand({DType::kFloat32, {n}}, true) : kNoValue});
}

bool is_zero(const Graph& graph, ValueId v) {
  if (v == kNoValue) return true;
  if (!graph[v].constant) return false;
  for (const double x : graph[v].constant->numbers(graph[v].type.dtype))
    if (x != 0) return false;
  return true;
}
// What a kernel takes: bytes without zero points, or with what it rounds its sums by.
void expect_kernel(const Graph& graph, const Node& node) {
  if (node.op == "MatMulInteger") {
    EXPECT_EQ(graph[node.inputs[0]].type.dtype, DType::kUInt8);
    EXPECT_EQ(graph[node.inputs[1]].type.dtype, DType::kInt8);
    EXPECT_EQ(node.inputs.size(), 2U);
  } else if (node.op == "QLinearMatMul" || node.op == "com.microsoft.QGemm") {
    EXPECT_EQ(graph[node.inputs[0]].type.dtype, DType::kUInt8);
    EXPECT_EQ(graph[node.inputs[3]].type.dtype, DType::kInt8);
    EXPECT_TRUE(graph[node.inputs[3]].constant.has_value());
    EXPECT_TRUE(is_zero(graph, node.inputs[5]));
  } else {
    EXPECT_NE(node.op, "com.microsoft.MatMulIntegerToFloat");
  }
}

// The same numbers, but for bytes between two and the last digits of floats.
void expect_same(const Graph& before, const Graph& after, const std::vector<Numbers>& inputs) {
  ASSERT_TRUE(check(after)) << check(after).message() << "\n" << to_text(after);
  const auto expected = run_reference(before, inputs, interpret),
             got = run_reference(after, inputs, interpret);
  ASSERT_TRUE(expected.is_ok() && got.is_ok()) << expected.message() << got.message();
  for (size_t o = 0; o < expected->size(); ++o) {
    const DType dtype = before[before.outputs[o]].type.dtype;
    ASSERT_EQ((*expected)[o].size(), (*got)[o].size());
    size_t off = 0;
    for (size_t k = 0; k < (*expected)[o].size(); ++k) {
      const double x = (*expected)[o][k], difference = std::fabs(x - (*got)[o][k]);
      const bool is_byte = dtype == DType::kInt8 || dtype == DType::kUInt8;
      ASSERT_LE(difference, is_byte                  ? 1
                            : dtype == DType::kInt32 ? 0
                                                     : 1e-6 * (1 + std::fabs(x)))
          << "output " << o << ", element " << k << "\n"
          << to_text(after);
      off += difference > 0 ? 1 : 0;
    }
    if (dtype != DType::kFloat32) {
      EXPECT_LE(off * 20, (*expected)[o].size() + 20);
    }
  }
}

TEST(GraphProductsOfBytes, KeepTheirNumbersInEveryForm) {
  std::multiset<std::string> found;
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/400)) {
    SCOPED_TRACE(seed);
    Draws d(seed);
    const Graph before = d.finish({product(d, seed % 4)});
    Graph after = before;
    ASSERT_TRUE(split_zero_points(after, interpret));
    ASSERT_NO_FATAL_FAILURE(expect_same(before, after, d.inputs()));
    for (const Node& node : after.nodes) expect_kernel(after, node), found.insert(node.op);
    if (::testing::Test::HasFailure()) FAIL() << to_text(before) << to_text(after);
  }
  if (wanted_rounds(400) < 400) return;
  // Some stay whole, most do not.
  EXPECT_GE(found.count("QLinearMatMul"), 5U);
  EXPECT_GE(found.count("com.microsoft.QGemm"), 3U);
  EXPECT_GE(found.count("MatMulInteger"), 300U);
}

// One that its kernel rounds itself: nothing is added to it.
TEST(GraphProductsOfBytes, ConstantSignedWeightsStayWhole) {
  for (const DType of_weights : {DType::kInt8, DType::kUInt8}) {
    Draws d(5);
    const ValueId a = d.operand({DType::kUInt8, {4, 8}}, false), b = d.operand({of_weights, {8, 3}}, true);
    const auto byte = [&](DType dtype, double x) {
      const ValueId v = d.value({dtype, {}});
      d.graph().values[v].constant = Constant::of(Numbers{x}, dtype);
      return v;
    };
    const ValueId scale = d.operand({DType::kFloat32, {}}, true);
    const Graph before = d.finish(
        {d.add("QLinearMatMul",
               {a, scale, byte(DType::kUInt8, 7), b, d.operand({DType::kFloat32, {3}}, true),
                byte(of_weights, of_weights == DType::kInt8 ? 0 : 128), scale, byte(DType::kUInt8, 100)})});
    Graph after = before;
    ASSERT_TRUE(split_zero_points(after, interpret));
    expect_same(before, after, d.inputs());
    ASSERT_EQ(after.nodes.size(), 1U) << to_text(after);
    expect_kernel(after, after.nodes[0]);
  }
}

// What only products read on their right is rounded to signed bytes where it is made.
TEST(GraphProductsOfBytes, RightSidesAreRoundedToSignedBytes) {
  for (const bool is_shown : {false, true}) {
    Draws d(6);
    const ValueId x = d.operand({DType::kFloat32, {2, 8, 3}}, false),
                  a = d.operand({DType::kUInt8, {2, 4, 8}}, false);
    const ValueId scale = d.operand({DType::kFloat32, {}}, true), zero = d.operand({DType::kUInt8, {}}, true);
    const ValueId b = d.add("QuantizeLinear", {x, scale, zero});
    std::vector<ValueId> outputs{d.add("MatMulInteger", {a, b, kNoValue, zero})};
    if (is_shown) outputs.push_back(b);
    const Graph before = d.finish(outputs);
    Graph after = before;
    ASSERT_TRUE(split_zero_points(after, interpret));
    expect_same(before, after, d.inputs());
    int casts = 0;
    for (const Node& node : after.nodes) {
      expect_kernel(after, node);
      casts += node.op == "Cast" && after[node.outputs[0]].type.dtype == DType::kInt8 ? 1 : 0;
    }
    EXPECT_EQ(casts, is_shown ? 1 : 0) << to_text(after);
  }
}

TEST(GraphProductsOfBytes, BordersOfAnotherByteArePutAroundImages) {
  for (const bool is_same : {false, true}) {
    Draws d(7);
    const ValueId x = d.operand({DType::kUInt8, {2, 4, 5, 6}}, false),
                  w = d.operand({DType::kInt8, {3, 4, 3, 3}}, true);
    const auto number = [&](DType dtype, double of) {
      const ValueId v = d.value({dtype, {}});
      d.graph().values[v].constant = Constant::of(Numbers{of}, dtype);
      return v;
    };
    const ValueId scale = d.operand({DType::kFloat32, {}}, true);
    Attributes attributes{{"strides", Dims{2, 2}}};
    if (is_same)
      attributes["auto_pad"] = std::string("SAME_UPPER");
    else
      attributes["pads"] = Dims{1, 0, 2, 1};
    const Graph before =
        d.finish({d.add("QLinearConv",
                        {x, scale, number(DType::kUInt8, 9), w, scale, number(DType::kInt8, 0),
                         number(DType::kFloat32, 4), number(DType::kUInt8, 30)},
                        attributes)});
    Graph after = before;
    ASSERT_TRUE(split_zero_points(after, interpret));
    expect_same(before, after, d.inputs());
    ASSERT_EQ(after.nodes.size(), 2U) << to_text(after);
    EXPECT_EQ(after.nodes[0].op, "Pad");
    EXPECT_EQ(std::get<Dims>(after.nodes[1].attributes.at("pads")), Dims(4, 0));
    EXPECT_FALSE(after.nodes[1].attributes.contains("auto_pad"));
  }
}

TEST(GraphProductsOfBytes, ConvolutionsTakeUnsignedImagesAndSignedWeights) {
  for (const DType of_x : {DType::kUInt8, DType::kInt8})
    for (const DType of_w : {DType::kUInt8, DType::kInt8}) {
      Draws d(9);
      const ValueId x = d.operand({of_x, {2, 4, 5, 6}}, false), w = d.operand({of_w, {3, 4, 3, 3}}, true);
      const ValueId scale = d.operand({DType::kFloat32, {}}, true),
                    y_scale = d.operand({DType::kFloat32, {}}, true);
      d.graph().values[y_scale].constant = Constant::of(Numbers{8}, DType::kFloat32);
      const Graph before =
          d.finish({d.add("QLinearConv",
                          {x, scale, d.operand({of_x, {}}, true), w, scale, d.operand({of_w, {3}}, true),
                           y_scale, d.operand({DType::kUInt8, {}}, true)},
                          {{"pads", Dims{1, 1, 1, 1}}})});
      Graph after = before;
      ASSERT_TRUE(split_zero_points(after, interpret));
      expect_same(before, after, d.inputs());
      const Node& conv = after.nodes.back();
      EXPECT_EQ(after[conv.inputs[0]].type.dtype, DType::kUInt8);
      EXPECT_EQ(after[conv.inputs[3]].type.dtype, DType::kInt8);
      EXPECT_EQ(after.nodes.size(), of_x == DType::kUInt8 ? 2U : 5U) << to_text(after);
    }
}

TEST(GraphProductsOfBytes, RoundingByATensorsOwnRangeIsThatOfItsDefinition) {
  for (const Numbers& numbers :
       {Numbers{-1, 0.5, 3, 2}, Numbers{1, 2, 3, 4}, Numbers{-4, -3, -2, -1}, Numbers(4, 0)}) {
    Draws d(8);
    const ValueId x = d.operand({DType::kFloat32, {2, 2}}, false);
    const ValueId y = d.add("DynamicQuantizeLinear", {x}, {}, 3);
    const Graph before = d.finish({y, y + 1, y + 2});
    Graph after = before;
    ASSERT_TRUE(split_dynamic(after, interpret));
    expect_same(before, after, {numbers});
    for (const Node& node : after.nodes) EXPECT_NE(node.op, "DynamicQuantizeLinear");
  }
}

}  // namespace
}  // namespace tuner::graph
