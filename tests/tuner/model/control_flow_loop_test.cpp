// Loop and Scan in models: what is left of them in a graph, and what is refused.
#include "tests/random_seed.h"
#include "tests/tuner/model/control_flow_model.h"

namespace tuner {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using onnx::TensorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = Loop(count, condition, x): s = s + s, and its scan output 1 is s before that.
onnx::NodeProto& doubling(onnx::GraphProto& graph, const std::string& count, const std::string& condition,
                          int output) {
  auto& node = add_node(graph, "Loop", {count, condition, "x"}, {});
  node.set_name("loop");
  for (int o = 0; o < 2; ++o) node.add_output(o == output ? "y" : "other");
  auto& body = add_subgraph(node, "body");
  describe(*body.add_input(), "i", TensorProto::INT64, {});
  describe(*body.add_input(), "goes_on", TensorProto::BOOL, {});
  describe(*body.add_input(), "s", TensorProto::FLOAT);
  add_node(body, "Add", {"s", "s"}, {"twice"});
  add_node(body, "Identity", {"goes_on"}, {"still"});
  for (const char* name : {"still", "twice", "s"}) body.add_output()->set_name(name);
  return node;
}

TEST(ControlFlowLoop, AKnownCountIsUnrolled) {
  const auto with = [](double count, int output) {
    return model_of([&](onnx::GraphProto& graph) {
      add_constant(graph, "count", TensorProto::INT64, {1}, {count});
      doubling(graph, "count", "", output);
    });
  };
  EXPECT_THAT(computed(with(3, 0), {1, 2, 3}), ElementsAre(8, 16, 24));
  EXPECT_THAT(computed(with(0, 0), {1, 2, 3}), ElementsAre(1, 2, 3));
  EXPECT_THAT(computed(with(-5, 0), {1, 2, 3}), ElementsAre(1, 2, 3));
  EXPECT_THAT(computed(with(3, 1), {1, 2, 3}), ElementsAre(1, 2, 3, 2, 4, 6, 4, 8, 12));
  EXPECT_EQ(refusal(with(0, 1)), "output \"y\" has no elements");
  EXPECT_THAT(read(with(2, 0)).value().nodes[1].name, "node_twice#1");
}

TEST(ControlFlowLoop, AStateMayBeginWithoutElements) {
  const auto model = model_of([](onnx::GraphProto& graph) {
    add_constant(graph, "count", TensorProto::INT64, {}, {2});
    add_constant(graph, "nothing", TensorProto::FLOAT, {0}, {});
    auto& node = add_node(graph, "Loop", {"count", "", "nothing"}, {"y"});
    auto& body = add_subgraph(node, "body");
    describe(*body.add_input(), "i", TensorProto::INT64, {});
    describe(*body.add_input(), "goes_on", TensorProto::BOOL, {});
    describe(*body.add_input(), "s", TensorProto::FLOAT);
    add_integer(add_node(body, "Concat", {"s", "x"}, {"longer"}), "axis", 0);
    add_node(body, "Identity", {"goes_on"}, {"still"});
    for (const char* name : {"still", "longer"}) body.add_output()->set_name(name);
  });
  EXPECT_THAT(computed(model, {1, 2, 3}), ElementsAre(1, 2, 3, 1, 2, 3));
}

TEST(ControlFlowLoop, AScanOfNothingPassesItsStateOn) {
  const auto with = [](int output) {
    return model_of([&](onnx::GraphProto& graph) {
      add_constant(graph, "nothing", TensorProto::FLOAT, {0, 3}, {});
      auto& node =
          add_node(graph, "Scan", {"x", "nothing"}, {output == 0 ? "y" : "", output == 1 ? "y" : ""});
      add_integer(node, "num_scan_inputs", 1);
      auto& body = add_subgraph(node, "body");
      describe(*body.add_input(), "s", TensorProto::FLOAT);
      describe(*body.add_input(), "e", TensorProto::FLOAT);
      add_node(body, "Add", {"s", "e"}, {"sum"});
      add_node(body, "Identity", {"e"}, {"same"});
      for (const char* name : {"sum", "same"}) body.add_output()->set_name(name);
    });
  };
  EXPECT_THAT(computed(with(0), {1, 2, 3}), ElementsAre(1, 2, 3));
  EXPECT_THAT(refusal(with(1)), HasSubstr("scan output 0 of a sequence without elements is not served"));
}

// More parts than one Concat takes.
TEST(ControlFlowLoop, ManyScanOutputsAreStackedInOrder) {
  const auto found = computed(model_of([&](onnx::GraphProto& graph) {
                                add_constant(graph, "count", TensorProto::INT64, {}, {300});
                                auto& node = add_node(graph, "Loop", {"count"}, {"y"});
                                auto& body = add_subgraph(node, "body");
                                describe(*body.add_input(), "i", TensorProto::INT64);
                                describe(*body.add_input(), "goes_on", TensorProto::BOOL);
                                auto& cast = add_node(body, "Cast", {"i"}, {"number"});
                                add_integer(cast, "to", TensorProto::FLOAT);
                                add_node(body, "Add", {"number", "x"}, {"sum"});
                                body.add_output()->set_name("goes_on");
                                body.add_output()->set_name("sum");
                              }),
                              {0, 0.25, 0.5});
  ASSERT_EQ(found.size(), 900);
  for (size_t i = 0; i < 300; ++i)
    for (size_t k = 0; k < 3; ++k)
      EXPECT_EQ(found[3 * i + k], static_cast<double>(i) + 0.25 * static_cast<double>(k));
}

TEST(ControlFlowLoop, AConditionThatIsComputedEndsIt) {
  // Goes on while i < 3: four iterations.
  const auto model = model_of([&](onnx::GraphProto& graph) {
    add_constant(graph, "true", TensorProto::BOOL, {}, {1});
    auto& node = doubling(graph, "", "true", 0);
    auto& body = *node.mutable_attribute(0)->mutable_g();
    add_constant(body, "three", TensorProto::INT64, {}, {3});
    add_node(body, "Less", {"i", "three"}, {"less"});
    body.mutable_output(0)->set_name("less");
  });
  EXPECT_THAT(computed(model, {1, 2, 3}), ElementsAre(16, 32, 48));
}

TEST(ControlFlowLoop, WhatStandsBehindTheLastIterationDecidesNothing) {
  const auto model = model_of([&](onnx::GraphProto& graph) {
    add_constant(graph, "one", TensorProto::INT64, {}, {1});
    auto& node = doubling(graph, "one", "", 0);
    node.mutable_attribute(0)->mutable_g()->mutable_output(0)->set_name("yes");
  });
  EXPECT_THAT(computed(model, {1, 2, 3}), ElementsAre(2, 4, 6));
}

TEST(ControlFlowLoop, ShapesMayGrow) {
  const auto model = model_of([&](onnx::GraphProto& graph) {
    add_constant(graph, "count", TensorProto::INT64, {}, {2});
    auto& node = doubling(graph, "count", "", 0);
    auto& body = *node.mutable_attribute(0)->mutable_g();
    body.mutable_node(0)->set_op_type("Concat");
    add_integer(*body.mutable_node(0), "axis", 0);
    node.mutable_output()->RemoveLast();
    body.mutable_output()->RemoveLast();
  });
  EXPECT_EQ(computed(model, {1, 2, 3}).size(), 12);
}

TEST(ControlFlowLoop, WhatDependsOnDataOrDoesNotFitIsRefused) {
  const auto told = [](const std::string& count, const std::string& condition, const auto& change) {
    return refusal(model_of([&](onnx::GraphProto& graph) {
      add_constant(graph, "four", TensorProto::INT64, {}, {4});
      add_constant(graph, "endless", TensorProto::INT64, {}, {9e18});
      add_node(graph, "Size", {"x"}, {"three"});
      auto& sum = add_node(graph, "ReduceSum", {"x"}, {"sum"});
      add_integer(sum, "keepdims", 0);
      add_integer(add_node(graph, "Cast", {"sum"}, {"of_data"}), "to", TensorProto::INT64);
      change(doubling(graph, count, condition, 0));
    }));
  };
  const auto nothing = [](onnx::NodeProto& /*node*/) {};
  const auto body = [](onnx::NodeProto& node) -> onnx::GraphProto& {
    return *node.mutable_attribute(0)->mutable_g();
  };
  const std::string at = "node loop (Loop): ", in = at + "body, iteration ";
  EXPECT_EQ(told("three", "", nothing), "");
  EXPECT_EQ(
      told("of_data", "", nothing),
      at + "input 0, the count (of_data) is computed from data, the input x; expected a constant. If it is "
           "the same in every run: --constant x=FILE");
  EXPECT_EQ(
      told("four", "yes", nothing),
      at + "input 1, the condition (yes) is an input of the model; expected a constant. If it is the same "
           "in every run: --constant yes=FILE");
  EXPECT_EQ(
      told("four", "", [&](auto& node) { body(node).mutable_output(0)->set_name("yes"); }),
      in + "0: output 0, whether the loop goes on, (yes) is an input of the model; expected a constant. If "
           "it is the same in every run: --constant yes=FILE");
  EXPECT_EQ(told("x", "", nothing), at + "input 0, the count is float32[3], expected one int64");
  for (const char* endless : {"endless", ""})
    EXPECT_THAT(told(endless, "", nothing),
                HasSubstr("unrolled, the loops of the model have more than 10000 nodes; expected fewer"));
  EXPECT_EQ(told("four", "", [&](auto& node) { body(node).mutable_output()->RemoveLast(); }),
            in + "0: found 2 outputs, expected 3, as the node has them");
  EXPECT_EQ(told("four", "", [&](auto& node) { body(node).mutable_input()->RemoveLast(); }),
            in + "0: found 2 inputs, expected 3, as the node has them");
  EXPECT_EQ(
      told("four", "", [&](auto& node) { describe(*body(node).mutable_input(2), "s", TensorProto::INT64); }),
      in + "0: input \"s\": found elements of type INT64 in the model, expected float32, which follows "
           "from its inputs");
  EXPECT_EQ(told("four", "", [&](auto& node) { body(node).mutable_output(1)->set_name("i"); }),
            in + "0: output 1 is int64[], expected float32 as input 2 has");
  EXPECT_EQ(told("four", "", [&](auto& node) { node.mutable_output()->Clear(); }),
            at + "found 0 outputs, expected at least 1, one for each input behind the second");
  EXPECT_EQ(told("four", "", [&](auto& node) { body(node).mutable_node(0)->set_op_type("Multinomial"); }),
            in + "0: node node_twice#0 (Multinomial): this operator is not served");
  EXPECT_EQ(told("four", "",
                 [&](auto& node) {
                   body(node).mutable_node(0)->set_op_type("Concat");
                   add_integer(*body(node).mutable_node(0), "axis", 0);
                 }),
            at + "output 1 is float32[3] in iteration 0 and float32[6] in iteration 1, expected one type");
  EXPECT_EQ(told("four", "", [&](auto& node) { node.clear_attribute(); }),
            at + "attribute body is missing, expected a graph");
}

// A node that is as large as many counts as many.
TEST(ControlFlowLoop, OperandsCountTowardTheBound) {
  const auto sums = [](int operands) {
    return refusal(model_of([&](onnx::GraphProto& graph) {
      add_constant(graph, "ten", TensorProto::INT64, {}, {10});
      auto& node = doubling(graph, "ten", "", 0);
      auto& sum = *node.mutable_attribute(0)->mutable_g()->mutable_node(0);
      sum.set_op_type("Sum");
      while (sum.input_size() < operands) sum.add_input("s");
    }));
  };
  EXPECT_EQ(sums(2'000), "");
  EXPECT_THAT(sums(32'000), HasSubstr("more than 10000 nodes"));
}

// A loop in a loop that multiply: the bound is for all of them, and reached soon.
TEST(ControlFlowLoop, NestedLoopsShareTheBound) {
  const auto nested = [](double count) {
    return model_of([&](onnx::GraphProto& graph) {
      add_constant(graph, "count", TensorProto::INT64, {}, {count});
      auto& outer = doubling(graph, "count", "", 0);
      auto& body = *outer.mutable_attribute(0)->mutable_g();
      body.clear_node();
      add_node(body, "Identity", {"goes_on"}, {"still"});
      auto& inner = add_node(body, "Loop", {"count", "", "s"}, {"twice"});
      auto& innermost = add_subgraph(inner, "body");
      describe(*innermost.add_input(), "j", TensorProto::INT64);
      describe(*innermost.add_input(), "on", TensorProto::BOOL);
      describe(*innermost.add_input(), "s", TensorProto::FLOAT);  // hides the one outside
      add_node(innermost, "Add", {"s", "x"}, {"more"});
      innermost.add_output()->set_name("on");
      innermost.add_output()->set_name("more");
    });
  };
  EXPECT_THAT(computed(nested(4), {1, 2, 3}), ElementsAre(17, 34, 51));
  EXPECT_THAT(refusal(nested(1000)), HasSubstr("more than 10000 nodes"));
}

// Running sums along an axis of x2 [2, 3], from a state of as many elements as are left, beside x2 itself.
onnx::ModelProto sums(int64_t axis, const std::vector<int64_t>& directions, int64_t output_axis) {
  return model_of(
      [&](onnx::GraphProto& graph) {
        add_constant(graph, "shape", TensorProto::INT64, {2}, {1, 3});
        add_node(graph, "Reshape", {"x", "shape"}, {"row"});
        add_constant(graph, "ten", TensorProto::FLOAT, {1, 1}, {10});
        add_node(graph, "Mul", {"row", "ten"}, {"tens"});
        add_integer(add_node(graph, "Concat", {"row", "tens"}, {"x2"}), "axis", 0);
        const int64_t left = axis == 0 || axis == -2 ? 3 : 2;
        add_constant(graph, "start", TensorProto::FLOAT, {left}, Numbers(static_cast<size_t>(left), 0.5));
        auto& node = add_node(graph, "Scan", {"start", "x2"}, {"last", "y"});
        add_integer(node, "num_scan_inputs", 1);
        add_integers(node, "scan_input_axes", {axis});
        add_integers(node, "scan_input_directions", {directions[0]});
        add_integers(node, "scan_output_axes", {output_axis});
        add_integers(node, "scan_output_directions", {directions[1]});
        auto& body = add_subgraph(node, "body");
        describe(*body.add_input(), "sum", TensorProto::FLOAT);
        describe(*body.add_input(), "part", TensorProto::FLOAT);
        add_node(body, "Add", {"sum", "part"}, {"next"});
        body.add_output()->set_name("next");
        body.add_output()->set_name("next");
      },
      11);
}
TEST(ControlFlowScan, AxesAndDirections) {
  const Numbers x{1, 2, 3};  // x2: 1 2 3 / 10 20 30
  EXPECT_THAT(computed(sums(0, {0, 0}, 0), x), ElementsAre(1.5, 2.5, 3.5, 11.5, 22.5, 33.5));
  EXPECT_THAT(computed(sums(0, {1, 0}, 0), x), ElementsAre(10.5, 20.5, 30.5, 11.5, 22.5, 33.5));
  EXPECT_THAT(computed(sums(0, {0, 1}, 0), x), ElementsAre(11.5, 22.5, 33.5, 1.5, 2.5, 3.5));
  EXPECT_THAT(computed(sums(-2, {0, 0}, -1), x), ElementsAre(1.5, 11.5, 2.5, 22.5, 3.5, 33.5));
  EXPECT_THAT(computed(sums(1, {0, 0}, 1), x), ElementsAre(1.5, 3.5, 6.5, 10.5, 30.5, 60.5));
  EXPECT_THAT(computed(sums(-1, {1, 1}, 1), x), ElementsAre(6.5, 5.5, 3.5, 60.5, 50.5, 30.5));
  EXPECT_EQ(refusal(sums(2, {0, 0}, 0)),
            "node node_last (Scan): scan input 0, float32[2, 3], has 2 dimensions, and its axis is 2");
  EXPECT_EQ(refusal(sums(0, {0, 0}, 2)),
            "node node_last (Scan): scan output 0 has 2 dimensions, and its axis is 2");
  EXPECT_EQ(refusal(sums(0, {0, 3}, 0)),
            "node node_last (Scan): attribute scan_output_directions has 3, expected 0 or 1");
}

// Operator set 8: batches of sequences, of which one ends early.
onnx::ModelProto batches(const Numbers& lengths) {
  return model_of(
      [&](onnx::GraphProto& graph) {
        add_constant(graph, "shape", TensorProto::INT64, {3}, {1, 3, 1});
        add_node(graph, "Reshape", {"x", "shape"}, {"row"});
        add_node(graph, "Neg", {"row"}, {"minus"});
        add_integer(add_node(graph, "Concat", {"row", "minus"}, {"x2"}), "axis", 0);  // [2, 3, 1]
        add_constant(graph, "start", TensorProto::FLOAT, {2, 1}, {100, 200});
        if (!lengths.empty())
          add_constant(graph, "lengths", TensorProto::INT64, {std::ssize(lengths)}, lengths);
        auto& node =
            add_node(graph, "Scan", {lengths.empty() ? "" : "lengths", "start", "x2"}, {"last", "sums"});
        add_integer(node, "num_scan_inputs", 1);
        add_integers(node, "directions", {1});
        auto& body = add_subgraph(node, "body");
        describe(*body.add_input(), "sum", TensorProto::FLOAT);
        describe(*body.add_input(), "part", TensorProto::FLOAT);
        add_node(body, "Add", {"sum", "part"}, {"next"});
        body.add_output()->set_name("next");
        body.add_output()->set_name("next");
        add_constant(graph, "flat", TensorProto::INT64, {1}, {-1});
        add_node(graph, "Reshape", {"last", "flat"}, {"last_flat"});
        add_node(graph, "Reshape", {"sums", "flat"}, {"sums_flat"});
        add_integer(add_node(graph, "Concat", {"last_flat", "sums_flat"}, {"y"}), "axis", 0);
      },
      8);
}
TEST(ControlFlowScan, BatchesOfOperatorSet8) {
  EXPECT_THAT(computed(batches({}), {1, 2, 3}), ElementsAre(106, 194, 103, 105, 106, 197, 195, 194));
  EXPECT_THAT(computed(batches({3, 2}), {1, 2, 3}), ElementsAre(106, 197, 103, 105, 106, 198, 197, 0));
  EXPECT_EQ(refusal(batches({4, 1})), "node node_last (Scan): input 0, the lengths, has 4, expected 1 to 3");
  EXPECT_EQ(refusal(batches({1})),
            "node node_last (Scan): input 0, the lengths, is int64[1], expected int64[2]");
}

TEST(ControlFlowScan, WhatDoesNotFitIsToldWithItsPlace) {
  const auto told = [](const auto& change) {
    auto model = sums(0, {0, 0}, 0);
    auto& graph = *model.mutable_graph();
    auto* scan = graph.mutable_node(graph.node_size() - 1);
    change(graph, *scan);
    return refusal(model);
  };
  const std::string at = "node node_last (Scan): ";
  EXPECT_EQ(told([](auto& /*graph*/, auto& scan) { scan.mutable_attribute(0)->set_i(3); }),
            at + "attribute num_scan_inputs is 3, expected 1 to 2");
  EXPECT_EQ(told([](auto& /*graph*/, auto& scan) { scan.mutable_attribute(0)->set_i(0); }),
            at + "attribute num_scan_inputs is 0, expected 1 to 2");
  EXPECT_EQ(told([](auto& /*graph*/, auto& scan) { scan.mutable_attribute(1)->add_ints(0); }),
            at + "attribute scan_input_axes has 2 numbers, expected 1");
  EXPECT_EQ(
      told([](auto& /*graph*/, auto& scan) { scan.set_input(0, "ten"); }),
      at + "body, iteration 0: output 0 is float32[1, 3], expected float32[1, 1] as its state has before it");
  EXPECT_EQ(told([](auto& /*graph*/, auto& scan) { add_integers(scan, "directions", {0}); }),
            at + "has no attribute directions");
}

}  // namespace
}  // namespace tuner
