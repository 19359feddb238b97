// If in models: what is left of it in a graph, and what is refused; how deep graphs may stand in each other.
#include "tuner/model/control_flow.h"

#include "tests/tuner/model/control_flow_model.h"
#include "tuner/model/subgraph.h"

namespace tuner {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using onnx::TensorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = one of two operators of x.
onnx::NodeProto& choice(onnx::GraphProto& graph, const std::string& condition, const std::string& then,
                        const std::string& otherwise) {
  auto& node = add_node(graph, "If", {condition}, {"y"});
  for (const auto& [branch, op] : {std::pair("then_branch", then), std::pair("else_branch", otherwise)}) {
    auto& inside = add_subgraph(node, branch);
    add_node(inside, op, {"x"}, {"inner"});
    inside.add_output()->set_name("inner");
  }
  return node;
}

TEST(ControlFlowIf, AKnownConditionTakesItsBranchAndDoesNotLookAtTheOther) {
  const auto with = [](double condition, const std::string& then, const std::string& otherwise) {
    return model_of([&](onnx::GraphProto& graph) {
      add_constant(graph, "known", TensorProto::BOOL, {1}, {condition});
      choice(graph, "known", then, otherwise);
    });
  };
  EXPECT_THAT(computed(with(1, "Neg", "Nonsense"), {1, -2, 3}), ElementsAre(-1, 2, -3));
  EXPECT_THAT(computed(with(0, "Nonsense", "Abs"), {1, -2, 3}), ElementsAre(1, 2, 3));
  EXPECT_THAT(operators(with(1, "Neg", "Abs")), ElementsAre("Neg"));
  EXPECT_EQ(refusal(with(1, "Nonsense", "Abs")),
            "node node_y (If): then_branch: node node_inner (Nonsense): this operator is not served");
}

// As exporters write what depends on a shape.
TEST(ControlFlowIf, AConditionMayFollowFromShapes) {
  const auto of_rank = [](int64_t rank) {
    return model_of([&](onnx::GraphProto& graph) {
      add_node(graph, "Shape", {"x"}, {"shape"});
      add_node(graph, "Size", {"shape"}, {"rank"});
      add_constant(graph, "two", TensorProto::INT64, {}, {static_cast<double>(rank)});
      add_node(graph, "Equal", {"rank", "two"}, {"fits"});
      choice(graph, "fits", "Neg", "Abs");
    });
  };
  EXPECT_THAT(operators(of_rank(1)), ElementsAre("Neg"));
  EXPECT_THAT(operators(of_rank(2)), ElementsAre("Abs"));
}

TEST(ControlFlowIf, AnInputGivenAsAConstantDecides) {
  const auto model = model_of([&](onnx::GraphProto& graph) { choice(graph, "yes", "Neg", "Nonsense"); });
  EXPECT_EQ(refusal(model),
            "node node_y (If): else_branch: node node_inner (Nonsense): this operator is not served. If its "
            "condition is the same in every run: --constant yes=FILE");
  ModelOptions options;
  options.constants["yes"] = {"yes", {DType::kBool, {}}, graph::Constant::of(Numbers{1}, DType::kBool)};
  const auto graph = read(model, options);
  ASSERT_TRUE(graph.is_ok()) << graph.message();
  EXPECT_EQ(graph->nodes.size(), 1);
}

TEST(ControlFlowIf, DataChooseBetweenBothBranches) {
  const auto model = model_of([&](onnx::GraphProto& graph) { choice(graph, "yes", "Neg", "Abs"); });
  EXPECT_THAT(computed(model, {1, -2, 3}, 1), ElementsAre(-1, 2, -3));
  EXPECT_THAT(computed(model, {1, -2, 3}, 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(operators(model), ElementsAre("Neg", "Abs", "Where"));
}

// The branch that is not taken may compute anything.
TEST(ControlFlowIf, WhatIsNotChosenLeavesNoTrace) {
  const auto model = model_of([&](onnx::GraphProto& graph) { choice(graph, "yes", "Log", "Abs"); });
  EXPECT_THAT(computed(model, {-1, 0, 3}, 0), ElementsAre(1, 0, 3));
}

// A scalar stays one, though its condition has a dimension.
TEST(ControlFlowIf, AConditionOfOneDimensionAddsNone) {
  onnx::ModelProto model = model_of([&](onnx::GraphProto& graph) {
    add_constant(graph, "flat", TensorProto::INT64, {1}, {1});
    add_node(graph, "Reshape", {"yes", "flat"}, {"list"});
    auto& node = add_node(graph, "If", {"list"}, {"y"});
    for (const auto& [branch, value] : {std::pair("then_branch", 5), std::pair("else_branch", 7)}) {
      auto& inside = add_subgraph(node, branch);
      add_constant(inside, "number", TensorProto::FLOAT, {}, {static_cast<double>(value)});
      inside.add_output()->set_name("number");
    }
  });
  EXPECT_THAT(computed(model, {1, 2, 3}, 1), ElementsAre(5));
  EXPECT_THAT(computed(model, {1, 2, 3}, 0), ElementsAre(7));
  const auto graph = read(model);
  EXPECT_EQ(to_text((*graph)[graph->outputs[0]].type), "float32[]");
}

// A branch inside of a branch reads what both graphs around it make, also behind it, and calls its own values
// as others are called.
TEST(ControlFlowIf, NamesAreThoseOfTheInnermostGraph) {
  const auto model = model_of([&](onnx::GraphProto& graph) {
    add_constant(graph, "known", TensorProto::BOOL, {}, {1});
    auto& outer = add_node(graph, "If", {"known"}, {"y"});
    add_node(graph, "Neg", {"x"}, {"late"});  // stands behind the node that reads it
    auto& then = add_subgraph(outer, "then_branch");
    add_subgraph(outer, "else_branch");
    auto& inner = add_node(then, "If", {"known"}, {"chosen"});
    auto& innermost = add_subgraph(inner, "then_branch");
    add_subgraph(inner, "else_branch");
    add_node(innermost, "Add", {"late", "mine"}, {"sum"});
    add_node(innermost, "Mul", {"late", "late"}, {"mine"});  // of this graph, and read before
    innermost.add_output()->set_name("sum");
    add_node(then, "Abs", {"x"}, {"mine"});
    add_node(then, "Mul", {"mine", "chosen"}, {"both"});
    then.add_output()->set_name("both");
    for (auto* other : {outer.mutable_attribute(1)->mutable_g(), inner.mutable_attribute(1)->mutable_g()})
      other->add_output()->set_name("nobody makes it");
  });
  // late = -x, mine inside = x * x, outside |x|
  EXPECT_THAT(computed(model, {1, -2, 3}), ElementsAre(1 * (-1 + 1), 2 * (2 + 4), 3 * (-3 + 9)));
}

TEST(ControlFlowIf, ABranchMayGiveWhatItDidNotMake) {
  const auto model = model_of([&](onnx::GraphProto& graph) {
    auto& node = add_node(graph, "If", {"yes"}, {"y"});
    for (const char* branch : {"then_branch", "else_branch"}) add_subgraph(node, branch);
    node.mutable_attribute(0)->mutable_g()->add_output()->set_name("x");
    auto& other = *node.mutable_attribute(1)->mutable_g();
    add_node(other, "Neg", {"x"}, {"x2"});
    other.add_output()->set_name("x2");
  });
  EXPECT_THAT(computed(model, {1, -2, 3}, 1), ElementsAre(1, -2, 3));
  EXPECT_THAT(computed(model, {1, -2, 3}, 0), ElementsAre(-1, 2, -3));
}

TEST(ControlFlowIf, ShapesMayDifferIfTheConditionIsKnownOnly) {
  const auto with = [](const std::string& condition) {
    return model_of([&](onnx::GraphProto& graph) {
      add_constant(graph, "known", TensorProto::BOOL, {}, {0});
      auto& node = choice(graph, condition, "Neg", "Shape");
      auto& other = *node.mutable_attribute(1)->mutable_g();
      add_node(other, "Concat", {"x", "x"}, {"longer"}).add_attribute()->set_name("axis");
      other.mutable_node(1)->mutable_attribute(0)->set_type(onnx::AttributeProto::INT);
      other.mutable_node(1)->mutable_attribute(0)->set_i(0);
      other.mutable_output(0)->set_name("longer");
    });
  };
  EXPECT_THAT(computed(with("known"), {1, 2, 3}), ElementsAre(1, 2, 3, 1, 2, 3));
  EXPECT_EQ(refusal(with("yes")),
            "node node_y (If): output 0 is float32[3] in then_branch and float32[6] in else_branch, and its "
            "condition depends on data; expected one type and shape. If its condition is the same in every "
            "run: --constant yes=FILE");
}

TEST(ControlFlowIf, WhatDoesNotFitIsToldWithItsPlace) {
  const auto told = [](const std::function<void(onnx::NodeProto&)>& change) {
    return refusal(model_of([&](onnx::GraphProto& graph) { change(choice(graph, "yes", "Neg", "Abs")); }));
  };
  const std::string at = "node node_y (If): ";
  EXPECT_EQ(told([](auto& node) { node.mutable_attribute()->RemoveLast(); }),
            at + "attribute else_branch is missing, expected a graph");
  EXPECT_EQ(told([](auto& node) { node.mutable_attribute(0)->clear_g(); }),
            at + "attribute then_branch is none, expected a graph");
  EXPECT_EQ(told([](auto& node) { node.mutable_attribute(1)->set_name("then_branch"); }),
            at + "attribute then_branch stands twice");
  EXPECT_EQ(told([](auto& node) { add_integer(node, "axis", 1); }), at + "has no attribute axis");
  EXPECT_EQ(told([](auto& node) { node.add_input("yes"); }),
            at + "found 2 inputs, expected one with elements, the condition");
  EXPECT_EQ(told([](auto& node) { node.set_input(0, "x"); }),
            at + "input 0, the condition, is float32[3], expected one bool");
  EXPECT_EQ(told([](auto& node) { node.set_input(0, "none"); }),
            at + "reads \"none\", which nothing computes");
  const std::string hint = ". If its condition is the same in every run: --constant yes=FILE";
  EXPECT_EQ(told([](auto& node) { node.add_output("z"); }),
            at + "then_branch: found 1 outputs, expected 2, as the node has them" + hint);
  EXPECT_EQ(told([](auto& node) { node.mutable_attribute(1)->mutable_g()->add_input()->set_name("i"); }),
            at + "else_branch: found 1 inputs, expected 0, as the node has them" + hint);
  EXPECT_EQ(
      told([](auto& node) { node.mutable_attribute(1)->mutable_g()->mutable_output(0)->set_name("z"); }),
      at + "else_branch: output \"z\" is made by no node" + hint);
  EXPECT_EQ(
      told([](auto& node) { node.mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(0, "w"); }),
      at + "then_branch: node node_inner (Neg): reads \"w\", which nothing computes" + hint);
  EXPECT_EQ(
      told([](auto& node) { add_node(*node.mutable_attribute(0)->mutable_g(), "Abs", {"x"}, {"inner"}); }),
      at + "then_branch: node node_inner (Abs): \"inner\" is made twice" + hint);
  EXPECT_EQ(told([](auto& node) {
              describe(*node.mutable_attribute(0)->mutable_g()->mutable_output(0), "inner",
                       TensorProto::INT64);
            }),
            at +
                "then_branch: output \"inner\": found elements of type INT64 in the model, expected float32, "
                "which follows from its inputs" +
                hint);
  EXPECT_EQ(told([](auto& node) { node.mutable_attribute(0)->mutable_g()->add_sparse_initializer(""); }),
            at + "then_branch: sparse initializers are not served" + hint);
}

// Files made to harm: no recursion deeper than we chose.
TEST(ControlFlowIf, DepthIsBounded) {
  const auto nested = [](int depth) {
    return model_of([&](onnx::GraphProto& graph) {
      onnx::GraphProto* at = &graph;
      for (int d = 0; d < depth; ++d) {
        auto& node = add_node(*at, "If", {"yes"}, {d == 0 ? "y" : "inner"});
        auto& other = add_subgraph(node, "else_branch");
        other.add_output()->set_name("x");
        at = &add_subgraph(node, "then_branch");
        at->add_output()->set_name(d + 1 < depth ? "inner" : "x");
      }
    });
  };
  EXPECT_THAT(computed(nested(kMostDepth), {1, 2, 3}, 1), ElementsAre(1, 2, 3));
  EXPECT_EQ(
      refusal(nested(kMostDepth + 1)),
      "node node_inner (If): attribute else_branch is graph 17 of graphs within each other, expected at "
      "most 16");
  EXPECT_THAT(refusal(nested(60)), HasSubstr("no ONNX model, or a damaged one"));
}

}  // namespace
}  // namespace tuner
