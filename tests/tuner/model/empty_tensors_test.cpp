// Tensors with an extent of 0, in models: read, rewritten and computed, against plain loops after ONNX's
// definitions (random_empty.h); and what is refused, in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/graph/signature.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/random_seed.h"
#include "tests/tuner/model/random_empty.h"
#include "tuner/model/read_model.h"

namespace tuner {
namespace {

using graph::Constant;
using graph::kNoValue;
using graph::Shape;
using graph::ValueId;
using ::testing::HasSubstr;
using Numbers = std::vector<double>;
using testing::RandomEmpty;

bool near(double found, double expected) {
  if (std::isnan(expected)) return std::isnan(found);
  if (std::isinf(expected)) return found == expected;
  return std::fabs(found - expected) <= 1e-5 * (1 + std::fabs(expected));
}

void expect_answers(const graph::Graph& graph, const RandomEmpty& made) {
  ASSERT_TRUE(check(graph)) << check(graph).message();
  std::vector<Numbers> inputs;
  for (const ValueId v : graph.inputs)
    inputs.push_back(std::ranges::find(made.inputs(), graph[v].name, &RandomEmpty::Tensor::name)->numbers);
  const auto answers = run_reference(graph, std::move(inputs), interpret);
  ASSERT_TRUE(answers.is_ok()) << answers.message();
  for (size_t o = 0; o < made.outputs().size(); ++o) {
    const RandomEmpty::Tensor& expected = made.outputs()[o];
    ASSERT_EQ(graph[graph.outputs[o]].type.shape, expected.shape) << graph.output_names[o];
    ASSERT_EQ((*answers)[o].size(), expected.numbers.size());
    for (size_t e = 0; e < expected.numbers.size(); ++e)
      ASSERT_TRUE(near((*answers)[o][e], expected.numbers[e]))
          << graph.output_names[o] << ", element " << e << ": found " << (*answers)[o][e] << ", expected "
          << expected.numbers[e] << "\n"
          << to_text(graph);
  }
}

TEST(EmptyTensors, RandomModelsComputeWhatOnnxSays) {
  std::map<std::string, int> all;
  Seeds seeds(5600, 600);
  for (const uint32_t seed : seeds) {
    const RandomEmpty made(seed);
    for (const auto& [op, count] : made.counts()) all[op] += count;
    auto graph = read_model(made.bytes(), nullptr, {}, interpret);
    ASSERT_TRUE(graph.is_ok()) << graph.message();
    expect_answers(*graph, made);
    if (HasFatalFailure()) break;
    ASSERT_TRUE(optimize(*graph, interpret));
    expect_answers(*graph, made);
  }
  for (const auto& [op, count] : all) std::cout << op << " " << count << "  ";
  std::cout << "\n";
  if (!seeds.all()) return;
  for (const char* op : {"Slice",
                         "Split",
                         "Concat",
                         "Gather",
                         "Reshape",
                         "Expand",
                         "ReduceSum",
                         "ReduceProd",
                         "ReduceMax",
                         "Tile",
                         "ReduceMin",
                         "ReduceMean",
                         "ReduceL2",
                         "ReduceLogSumExp",
                         "MatMul",
                         "Einsum",
                         "Gemm",
                         "Conv",
                         "Pad",
                         "Where",
                         "Relu",
                         "Add",
                         "Mul",
                         "Transpose",
                         "Cast",
                         "Softmax",
                         "ScatterND",
                         "Compress",
                         "ConstantOfShape"})
    EXPECT_GE(all[op], 3) << op;
}

// Bytes of those models changed at random: nothing crashes, and what is read is a graph.
TEST(EmptyTensors, DamagedModelsAreRefusedOrRead) {
  size_t read = 0;
  for (const uint32_t seed : Seeds(9100, 3000)) {
    std::mt19937 random(seed);
    std::string bytes = RandomEmpty(seed).bytes();
    for (uint32_t changes = random() % 4; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random() % 3 == 0 ? 0 : random());
    auto graph = read_model(bytes, nullptr, {}, interpret);
    EXPECT_EQ(std::ranges::count(graph.message(), '\n'), 0) << graph.message();
    if (!graph) continue;
    ++read;
    ASSERT_TRUE(check(*graph)) << check(*graph).message();
    int64_t elements = 0;
    for (const graph::Value& v : graph->values) elements += v.type.elements();
    if (elements > 100'000) continue;
    const Status rewritten = optimize(*graph, interpret);
    EXPECT_EQ(std::ranges::count(rewritten.message(), '\n'), 0) << rewritten.message();
    if (rewritten) {
      ASSERT_TRUE(check(*graph)) << check(*graph).message();
    }
  }
  std::cout << read << " were read\n";
}

// Any operator on any tensors, with attributes that it has: nothing crashes, as a division by an extent
// would.
class AnyNode {
 public:
  explicit AnyNode(uint32_t seed) : random_(seed), b_("test", interpret) {}

  // Returns the refusal; empty: the node was added, and the graph is one.
  std::string add(const graph::Operator& row, bool* has_empty) {
    graph::Node node{.name = "n", .op = std::string(row.name), .attributes = {}, .inputs = {}};
    const size_t most = std::min<size_t>(row.most_inputs, row.least_inputs + 3);
    const auto inputs =
        static_cast<size_t>(pick(static_cast<int64_t>(row.least_inputs), static_cast<int64_t>(most)));
    const int64_t rank = pick(1, 4);
    for (size_t i = 0; i < inputs; ++i) {
      node.inputs.push_back(value(i, rank));
      *has_empty = *has_empty || b_[node.inputs.back()].type.elements() == 0;
    }
    add_attributes(node);
    std::vector<std::string> names{"y"};
    if (row.most_outputs > 1 && pick(0, 1) == 0) names.emplace_back("z");
    const auto made = b_.add(std::move(node), names);
    if (!made) return made.message();
    const graph::Graph graph = b_.finish(*made);
    EXPECT_TRUE(check(graph)) << row.name << ": " << check(graph).message();
    return "";
  }

 private:
  int64_t pick(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  Shape shape(int64_t rank) {
    Shape s(static_cast<size_t>(rank));
    for (int64_t& d : s) d = pick(0, 2) == 0 ? 0 : pick(1, 3);
    return s;
  }
  // The first inputs are data mostly, the others often short lists.
  ValueId value(size_t i, int64_t rank) {
    constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat32, DType::kInt64, DType::kBool, DType::kUInt8};
    if (i == 0 || pick(0, 1) == 0)
      return b_.input("x",
                      {kTypes[i == 0 ? pick(0, 4) : pick(0, 2)], shape(pick(0, 3) > 0 ? rank : pick(0, 4))});
    const DType dtype = pick(0, 2) == 0 ? DType::kFloat32 : DType::kInt64;
    Shape of = pick(0, 3) == 0 ? Shape() : Shape{pick(0, 1) == 0 ? rank : pick(0, 5)};
    std::vector<int64_t> numbers;
    for (int64_t k = graph::TensorType{dtype, of}.elements(); k > 0; --k) numbers.push_back(pick(-1, 3));
    return b_.constant("c", {dtype, of}, Constant::of(numbers, dtype));
  }
  void add_attributes(graph::Node& node) {
    for (const char* name : {"axis",      "group",       "blocksize",    "num_groups",
                             "num_heads", "q_num_heads", "kv_num_heads", "batch_dims",
                             "size",      "k",           "keepdims",     "noop_with_empty_axes",
                             "allowzero", "hidden_size", "ceil_mode",    "block_size",
                             "to",        "axes",        "kernel_shape", "strides",
                             "pads",      "split",       "starts",       "ends",
                             "perm",      "shape",       "output_shape", "scales",
                             "mode",      "auto_pad",    "reduction",    "keep_aspect_ratio_policy",
                             "equation"}) {
      const auto kind = graph::attribute_kind(node.op, name);
      if (!kind || pick(0, 1) == 0) continue;
      if (*kind == graph::AttributeKind::kInteger) node.attributes[name] = pick(-1, 3);
      if (*kind == graph::AttributeKind::kType) node.attributes[name] = std::string("float32");
      if (*kind == graph::AttributeKind::kIntegers) {
        Shape numbers(static_cast<size_t>(pick(0, 4)));
        for (int64_t& x : numbers) x = pick(-1, 3);
        node.attributes[name] = std::move(numbers);
      }
      if (*kind == graph::AttributeKind::kString) {
        constexpr const char* kWords[] = {"edge",       "linear",    "SAME_UPPER", "add",
                                          "not_larger", "ij,jk->ik", "VALID"};
        node.attributes[name] = std::string(kWords[pick(0, 6)]);
      }
    }
  }

  std::mt19937 random_;
  graph::GraphBuilder b_;
};

TEST(EmptyTensors, EveryOperatorTakesOrRefusesThem) {
  const std::vector<const graph::Operator*> rows = graph::all_operators();
  std::set<std::string_view> served;
  size_t added = 0;
  Seeds seeds(71000, 60'000);
  for (const uint32_t seed : seeds) {
    const graph::Operator& row = *rows[seed % rows.size()];
    bool has_empty = false;
    const std::string refusal = AnyNode(seed).add(row, &has_empty);
    ASSERT_EQ(std::ranges::count(refusal, '\n'), 0) << refusal;
    if (!refusal.empty() || !has_empty) continue;
    ++added;
    served.insert(row.name);
  }
  std::cout << added << " nodes of " << served.size() << " operators\n";
  if (seeds.all()) {
    EXPECT_GT(served.size(), 60u);
  }
}

// Graphs by hand: one node on values of these types.
class OneNode {
 public:
  OneNode() : b_("test", interpret) {}

  ValueId input(Shape shape, DType dtype = DType::kFloat32) {
    return b_.input(str("x", b_.graph().inputs.size()), {dtype, std::move(shape)});
  }
  ValueId list(const Shape& numbers) {
    return b_.constant("list", {DType::kInt64, {std::ssize(numbers)}}, Constant::of(numbers, DType::kInt64));
  }
  std::string refusal(const std::string& op, std::vector<ValueId> inputs, graph::Attributes attributes = {},
                      int64_t set = 23) {
    return add(op, std::move(inputs), std::move(attributes), set).message();
  }
  // "TYPE: elements", the node's first result computed of these inputs.
  std::string computed(const std::string& op, std::vector<ValueId> inputs, graph::Attributes attributes = {},
                       std::vector<Numbers> numbers = {}) {
    const auto made = add(op, std::move(inputs), std::move(attributes), 23);
    if (!made) return made.message();
    const graph::Graph graph = b_.finish({made->front()});
    if (const Status valid = check(graph); !valid) return valid.message();
    numbers.resize(graph.inputs.size());
    const auto answers = run_reference(graph, std::move(numbers), interpret);
    if (!answers) return answers.message();
    std::string text = to_text(graph[graph.outputs[0]].type) + ":";
    for (const double x : answers->front()) text += str(" ", x);
    return text;
  }

 private:
  Result<std::vector<ValueId>> add(const std::string& op, std::vector<ValueId> inputs,
                                   graph::Attributes attributes, int64_t set) {
    return b_.add({.name = "n",
                   .op = op,
                   .operator_set = set,
                   .attributes = std::move(attributes),
                   .inputs = std::move(inputs)},
                  {"y"});
  }
  graph::GraphBuilder b_;
};

TEST(EmptyTensors, ReductionsOfNothingAreTheLeastAndGreatestOfIntegerTypes) {
  const auto reduced = [](const std::string& op, DType dtype) {
    OneNode n;
    return n.computed(op, {n.input({1, 0}, dtype), n.list({1})});
  };
  EXPECT_EQ(reduced("ReduceMax", DType::kInt8), "int8[1, 1]: -128");
  EXPECT_EQ(reduced("ReduceMin", DType::kUInt8), "uint8[1, 1]: 255");
  EXPECT_EQ(reduced("ReduceMax", DType::kInt32), str("int32[1, 1]: ", -2147483648.0));
  EXPECT_EQ(reduced("ReduceMax", DType::kBool), "bool[1, 1]: 0");
  EXPECT_EQ(reduced("ReduceMin", DType::kBool), "bool[1, 1]: 1");
  EXPECT_EQ(reduced("ReduceProd", DType::kInt64), "int64[1, 1]: 1");
  EXPECT_EQ(reduced("ReduceMax", DType::kFloat16), "float16[1, 1]: -inf");
  EXPECT_EQ(reduced("ReduceMean", DType::kInt32),
            "node n (ReduceMean): input 0, int32[1, 0], has no elements, and result 0, int32[1, 1], has: not "
            "served");
}

// The first step of a decoder: nothing was there before.
TEST(EmptyTensors, APastWithoutElementsIsNone) {
  const auto attention = [](bool with_past) {
    OneNode n;
    std::vector<ValueId> in{n.input({1, 1, 2, 2}), n.input({1, 1, 2, 2}), n.input({1, 1, 2, 3})};
    if (with_past) in.insert(in.end(), {kNoValue, n.input({1, 1, 0, 2}), n.input({1, 1, 0, 3})});
    return n.computed("Attention", in, {}, {{1, 2, 3, 4}, {1, 0, 0, 1}, {1, 2, 3, 4, 5, 6}});
  };
  EXPECT_THAT(attention(true), HasSubstr("float32[1, 1, 2, 3]: "));
  EXPECT_EQ(attention(true), attention(false));
  OneNode n;
  EXPECT_EQ(
      n.computed("Concat", {n.input({1, 0, 2}), n.input({1, 1, 2})}, {{"axis", int64_t{1}}}, {{}, {7, 8}}),
      "float32[1, 1, 2]: 7 8");
}

TEST(EmptyTensors, ListsWithoutElementsAskForNothing) {
  const Numbers x{1, 2};
  const auto given = [&](const std::string& op, graph::Attributes attributes = {}) {
    OneNode n;
    return n.computed(op, {n.input({1, 2}), n.list({})}, std::move(attributes), {x});
  };
  EXPECT_EQ(given("Squeeze"), "float32[1, 2]: 1 2");
  EXPECT_EQ(given("Unsqueeze"), "float32[1, 2]: 1 2");
  EXPECT_EQ(given("Expand"), "float32[1, 2]: 1 2");
  EXPECT_EQ(given("ReduceSum"), "float32[1, 1]: 3");
  EXPECT_EQ(given("ReduceSum", {{"noop_with_empty_axes", int64_t{1}}}), "float32[1, 2]: 1 2");
  OneNode slice, scalar, of_shape, resize;
  EXPECT_EQ(slice.computed("Slice", {slice.input({2}), slice.list({}), slice.list({})}, {}, {x}),
            "float32[2]: 1 2");
  EXPECT_EQ(scalar.computed("Reshape", {scalar.input({1, 1}), scalar.list({})}, {}, {{5}}), "float32[]: 5");
  EXPECT_EQ(of_shape.computed("ConstantOfShape", {of_shape.list({})}), "float32[]: 0");
  const ValueId none = resize.input({0}), image = resize.input({1, 1, 1, 2});
  EXPECT_EQ(resize.computed("Resize", {image, none, none, resize.list({1, 1, 1, 4})}, {}, {{}, x}),
            "float32[1, 1, 1, 4]: 1 1 2 2");
}

TEST(EmptyTensors, WhatHasNoMeaningIsRefusedInOneLine) {
  OneNode n;
  const ValueId none = n.input({2, 0}), some = n.input({2, 3});
  EXPECT_EQ(
      n.refusal("ArgMax", {none}, {{"axis", int64_t{1}}}),
      "node n (ArgMax): input 0, float32[2, 0], has no elements, and result 0, int64[2, 1], has: not served");
  EXPECT_EQ(
      n.refusal("GlobalMaxPool", {n.input({1, 2, 0, 4})}),
      "node n (GlobalMaxPool): input 0, float32[1, 2, 0, 4], has no elements, and result 0, float32[1, 2, 1, "
      "1], has: not served");
  EXPECT_EQ(n.refusal("Det", {n.input({0, 0})}),
            "node n (Det): input 0, float32[0, 0], has no elements: not served by this operator");
  EXPECT_EQ(
      n.refusal("Gather", {none, n.list({0})}, {{"axis", int64_t{1}}}),
      "node n (Gather): index 0 (element 0 of input 1) lies outside of dimension 1, which has no elements");
  EXPECT_EQ(n.refusal("Gather", {none, n.input({2}, DType::kInt64)}, {{"axis", int64_t{1}}}),
            "node n (Gather): input 0, float32[2, 0], has no elements, and result 0, float32[2, 2], has: not "
            "served");
  EXPECT_EQ(n.refusal("Reshape", {none, n.list({0, -1})}, {{"allowzero", int64_t{1}}}),
            "node n (Reshape): float32[2, 0] does not reshape to float32[0, -1]");
  EXPECT_EQ(n.refusal("Pad", {none, n.list({0, 1, 0, 0})}, {{"mode", std::string("edge")}}),
            "node n (Pad): a border of 1 of dimension 1, which is 0");
  EXPECT_EQ(n.refusal("Pad", {some, n.list({0, -4, 0, 0})}),
            "node n (Pad): its result float32[2, -1] has a negative extent");
  EXPECT_EQ(n.refusal("Expand", {none, n.list({2, 3})}),
            "node n (Expand): shapes [2, 0] and [2, 3] do not broadcast");
  EXPECT_EQ(
      n.refusal("ConstantOfShape", {n.list({int64_t{1} << 30, int64_t{1} << 30, 0})}),
      "node n (ConstantOfShape): asks for an extent of 1073741824, expected 0 or more, and at most 2^28 "
      "elements");
  EXPECT_EQ(n.refusal("TopK", {some, n.list({})}),
            "node n (TopK): input 1 is int64[0], expected a single number");
}

// What nothing adds up to may be large: it stays a node.
TEST(EmptyTensors, ASumOfNothingOfManyElementsCostsNoMemory) {
  graph::GraphBuilder b("test", interpret);
  const ValueId x = b.input("x", {DType::kFloat32, {int64_t{1} << 36, 0}});
  const auto made =
      b.add({.name = "n", .op = "ReduceSum", .attributes = {{"axes", Shape{1}}}, .inputs = {x}}, {"y"});
  ASSERT_TRUE(made.is_ok()) << made.message();
  const graph::Graph graph = b.finish(*made);
  EXPECT_TRUE(check(graph)) << check(graph).message();
  EXPECT_FALSE(graph[graph.outputs[0]].constant);
  EXPECT_THAT(graph.nodes, ::testing::SizeIs(1));
  EXPECT_THAT(graph::check_size({DType::kFloat32, {int64_t{1} << 39, 0}}).message(),
              HasSubstr("more than 2^40 bytes"));
}

// A graph that somebody wrote otherwise than by the builder.
TEST(EmptyTensors, NodesOnThemAreNoGraph) {
  graph::Graph graph;
  graph.values = {{"x", {DType::kFloat32, {0}}, {}}, {"y", {DType::kFloat32, {0}}, {}}};
  graph.inputs = {0};
  graph.outputs = {1};
  graph.output_names = {"y"};
  graph.nodes.push_back({.name = "n", .op = "Relu", .attributes = {}, .inputs = {0}, .outputs = {1}});
  EXPECT_EQ(check(graph).message(), "node n (Relu) reads or makes a value without elements");
}

}  // namespace
}  // namespace tuner
