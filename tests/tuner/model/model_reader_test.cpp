// Models read from files: what options close, where weights may lie, and that whatever is wrong with a file
// ends in one line.
#include "tuner/model/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/random_seed.h"
#include "tests/tuner/model/onnx_models.h"
#include "tuner/model/onnx.pb.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = x * w + b: x float32[N, 4], w as raw bytes, b as a list of floats.
onnx::ModelProto small() {
  onnx::ModelProto model;
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  graph.set_name("small");
  auto& x = *graph.add_input();
  x.set_name("x");
  x.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  auto& shape = *x.mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.add_dim()->set_dim_param("N");
  shape.add_dim()->set_dim_value(4);
  auto& w = *graph.add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(4);
  const float numbers[] = {1, 2, 3, 4};
  w.set_raw_data(std::string(reinterpret_cast<const char*>(numbers), sizeof numbers));
  auto& b = *graph.add_initializer();
  b.set_name("b");
  b.set_data_type(onnx::TensorProto::FLOAT);
  b.add_dims(1);
  b.add_float_data(0.5F);
  const auto node = [&](const std::string& op, std::vector<std::string> inputs, const std::string& output) {
    auto& n = *graph.add_node();
    n.set_op_type(op);
    n.set_name("node_" + output);
    for (const std::string& in : inputs) n.add_input(in);
    n.add_output(output);
  };
  node("Mul", {"x", "w"}, "xw");
  node("Add", {"xw", "b"}, "y");
  graph.add_output()->set_name("y");
  return model;
}

Result<graph::Graph> read(const std::string& bytes, ModelOptions options = {}) {
  if (!options.extents.batch && options.extents.named.empty()) options.extents.batch = 2;
  return read_model(bytes, nullptr, options, interpret);
}
std::string refusal(const std::function<void(onnx::ModelProto&)>& change, const ModelOptions& options = {}) {
  onnx::ModelProto model = small();
  change(model);
  const std::string bytes = model.SerializeAsString();
  const auto graph = read(bytes, options);
  EXPECT_TRUE(graph.is_ok() || graph.status().code() == StatusCode::kInvalidArgument);
  return graph.message();
}

TEST(ModelReader, ReadsAModelWhoseConstantsViewItsBytes) {
  const std::string bytes = small().SerializeAsString();
  const auto graph = read(bytes);
  ASSERT_TRUE(graph.is_ok()) << graph.message();
  const auto answers = graph::run_reference(*graph, {{1, 1, 1, 1, 2, 2, 2, 2}}, interpret);
  ASSERT_TRUE(answers.is_ok()) << answers.message();
  EXPECT_THAT((*answers)[0], ElementsAre(1.5, 2.5, 3.5, 4.5, 2.5, 4.5, 6.5, 8.5));
  const auto* data =
      reinterpret_cast<const char*>((*graph)[graph->nodes[0].inputs[1]].constant->bytes().data());
  EXPECT_TRUE(data > bytes.data() && data < bytes.data() + bytes.size());
}

TEST(ModelReader, OpenExtentsAreClosedByOptions) {
  const auto nothing = [](onnx::ModelProto& /*m*/) {};
  EXPECT_EQ(refusal(nothing), "");
  EXPECT_EQ(refusal(nothing, {.extents = {.named = {{"N", 3}}}}), "");
  EXPECT_EQ(refusal(nothing, {.extents = {.batch = 1, .named = {{"M", 3}}}}),
            "--dim M: no input of the model has an extent of that name");
  const auto open = read_model(small().SerializeAsString(), nullptr, {}, interpret);
  EXPECT_EQ(open.message(), "input \"x\": extent 0 (N) is open. Give it: --batch N, or --dim N=N");
}

// By input and place, where an extent has no name; all that are open, and all operators that are not served,
// are told at once, as options for a shell.
TEST(ModelReader, AllThatIsOpenOrNotServedIsToldAtOnce) {
  onnx::ModelProto model = small();
  auto& shape =
      *model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.mutable_dim(0)->clear_dim_param();
  shape.mutable_dim(0)->clear_dim_value();
  const auto told = [&](const ModelOptions& options) {
    return read_model(model.SerializeAsString(), nullptr, options, interpret).message();
  };
  EXPECT_EQ(told({}), "input \"x\": extent 0 is open. Give it: --batch N, or --dim x:0=N");
  EXPECT_EQ(told({.extents = {.batch = {}, .named = {{"x:0", 2}}}}), "");
  shape.mutable_dim(0)->set_dim_param("floor(n/2) + 1");
  EXPECT_EQ(
      told({}),
      "input \"x\": extent 0 (floor(n/2) + 1) is open. Give it: --batch N, or --dim 'floor(n/2) + 1=N'");
  shape.mutable_dim(1)->clear_dim_value();
  EXPECT_EQ(told({}),
            "input \"x\": extent 0 (floor(n/2) + 1), input \"x\": extent 1 are open. Give them: --dim "
            "'floor(n/2) + "
            "1=N' --dim x:1=N");
  model.mutable_graph()->mutable_node(0)->set_op_type("Bernoulli");
  model.mutable_graph()->mutable_node(1)->set_domain("other");
  EXPECT_THAT(told({}), HasSubstr("; operators that are not served: Bernoulli (node node_xw), other."));
}

// A result whose rows depend on data takes a bound by the same option.
TEST(ModelReader, RowsOfSelectedBoxesTakeABound) {
  testing::ModelBuilder b;
  const std::string boxes = b.input("boxes", {1, 6, 4}), scores = b.input("scores", {1, 1, 6});
  const std::string chosen = b.add("NonMaxSuppression", {boxes, scores, b.integers({5})});
  b.output(chosen);
  const auto with = [&](const ModelOptions& options) {
    return read_model(b.bytes(), nullptr, options, interpret);
  };
  EXPECT_THAT(with({}).message(),
              HasSubstr(str("; or a bound, beyond which rows are -1: --dim ", chosen, ":0=N")));
  const auto graph = with({.extents = {.batch = {}, .named = {{chosen + ":0", 3}}}});
  ASSERT_TRUE(graph.is_ok()) << graph.message();
  EXPECT_EQ(to_text((*graph)[graph->outputs[0]].type), "int64[3, 3]");
  EXPECT_THAT(with({.extents = {.batch = {}, .named = {{chosen + ":0", 6}}}}).message(),
              HasSubstr("6 rows of result, expected 1 to 5"));
}

TEST(ModelReader, NodesStandInAnyOrder) {
  onnx::ModelProto model = small();
  const auto forwards = read(model.SerializeAsString());
  ASSERT_TRUE(forwards.is_ok()) << forwards.message();
  auto& nodes = *model.mutable_graph()->mutable_node();
  std::reverse(nodes.begin(), nodes.end());
  const auto backwards = read(model.SerializeAsString());
  ASSERT_TRUE(backwards.is_ok()) << backwards.message();
  EXPECT_EQ(to_text(*backwards), to_text(*forwards));
}

// A size that no tensor has is told with its place; the largest one is not refused for its extent.
TEST(ModelReader, ExtentsOfInputsHaveLimits) {
  const auto with = [](int64_t extent) {
    return refusal([&](onnx::ModelProto& m) {
      auto& tensor = *m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
      tensor.mutable_shape()->mutable_dim(1)->set_dim_value(extent);
    });
  };
  for (const int64_t extent : {int64_t{-1}, (int64_t{1} << 31) + 1})
    EXPECT_EQ(with(extent), str("input \"x\": extent 1 is ", extent, ", expected 0 to 2147483648"));
  EXPECT_EQ(with(0), "node node_xw (Mul): shapes [2, 0] and [4] do not broadcast");
  EXPECT_EQ(with(int64_t{1} << 31).find("input \"x\": extent"), std::string::npos);
}

TEST(ModelReader, ANodeHasOutputs) {
  EXPECT_EQ(refusal([](onnx::ModelProto& m) {
              auto& node = *m.mutable_graph()->add_node();
              node.set_op_type("Relu");
              node.set_name("useless");
              node.add_input("x");
            }),
            "node useless (Relu): has no outputs, expected one or more");
}

// Exporters write a constant without elements for an input that is not given.
TEST(ModelReader, AConstantWithoutElementsIsNone) {
  EXPECT_EQ(refusal([](onnx::ModelProto& m) {
              auto& graph = *m.mutable_graph();
              auto& constant = *graph.add_node();
              constant.set_op_type("Constant");
              constant.add_output("none");
              auto& value = *constant.add_attribute();
              value.set_name("value");
              value.set_type(onnx::AttributeProto::TENSOR);
              value.mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
              value.mutable_t()->add_dims(0);
              graph.mutable_node(1)->set_op_type("Clip");
              graph.mutable_node(1)->set_input(1, "none");
              graph.mutable_node()->SwapElements(1, 2);
            }),
            "");
}

TEST(ModelReader, AnInputMayBeAConstant) {
  ModelOptions options{.extents = {}};
  options.constants["x"] = {
      "x", {DType::kFloat32, {1, 4}}, graph::Constant::of(std::vector<double>{1, 2, 3, 4}, DType::kFloat32)};
  const auto graph = read_model(small().SerializeAsString(), nullptr, options, interpret);
  ASSERT_TRUE(graph.is_ok()) << graph.message();
  EXPECT_TRUE(graph->nodes.empty());
  EXPECT_THAT((*graph)[graph->outputs[0]].constant->numbers(DType::kFloat32),
              ElementsAre(1.5, 4.5, 9.5, 16.5));
  options.constants["z"] = options.constants["x"];
  EXPECT_EQ(read_model(small().SerializeAsString(), nullptr, options, interpret).message(),
            "--constant z: the model has no input of that name");
}

// It is held against what the model says of the input: another one would end in a message of some node.
TEST(ModelReader, AConstantOfAnotherTypeOrShapeIsRefused) {
  const auto refusal = [](DType dtype, std::vector<int64_t> shape, ModelOptions options = {}) {
    const graph::TensorType type{dtype, std::move(shape)};
    const std::vector<double> ones(static_cast<size_t>(type.elements()), 1);
    options.constants["x"] = {"x", type, graph::Constant::of(ones, dtype)};
    return read_model(small().SerializeAsString(), nullptr, options, interpret).message();
  };
  const auto expected = [](const char* found, const char* wanted) {
    return str("--constant x: found ", found, ", expected float32[", wanted,
               ", 4]; numpy's astype() and reshape() make it fit");
  };
  EXPECT_EQ(refusal(DType::kInt64, {1, 4}), expected("int64[1, 4]", "N"));
  EXPECT_EQ(refusal(DType::kFloat32, {1, 3}), expected("float32[1, 3]", "N"));
  EXPECT_EQ(refusal(DType::kFloat32, {4}), expected("float32[4]", "N"));
  EXPECT_EQ(refusal(DType::kFloat32, {}), expected("float32[]", "N"));
  EXPECT_EQ(refusal(DType::kFloat32, {1, 1, 4}), expected("float32[1, 1, 4]", "N"));
  EXPECT_EQ(refusal(DType::kFloat32, {2, 4}, {.extents = {.batch = {}, .named = {{"N", 3}}}}),
            expected("float32[2, 4]", "3"));
  EXPECT_EQ(refusal(DType::kFloat32, {7, 4}), "");
}

TEST(ModelReader, WhatIsWrongEndsInOneLine) {
  const auto node = [](onnx::ModelProto& m, int n) -> onnx::NodeProto& {
    return *m.mutable_graph()->mutable_node(n);
  };
  EXPECT_THAT(refusal([](auto& m) { m.clear_graph(); }), HasSubstr("no graph"));
  EXPECT_THAT(refusal([](auto& m) { m.mutable_opset_import(0)->set_version(6); }),
              HasSubstr("operator set 6 of ONNX, expected 7 to 23"));
  EXPECT_THAT(refusal([](auto& m) { m.mutable_opset_import(0)->set_version(24); }),
              HasSubstr("operator set 24"));
  EXPECT_EQ(refusal([&](auto& m) { node(m, 0).set_input(1, "y"); }),
            "node node_xw (Mul): reads its own result, by other nodes; expected nodes without a cycle");
  EXPECT_EQ(refusal([&](auto& m) { node(m, 0).set_input(1, "none"); }),
            "node node_xw (Mul): reads \"none\", which nothing computes");
  EXPECT_THAT(refusal([&](auto& m) { node(m, 1).set_output(0, "xw"); }), HasSubstr("\"xw\" is made twice"));
  EXPECT_THAT(refusal([&](auto& m) { node(m, 0).set_op_type("Bernoulli"); }),
              HasSubstr("this operator is not served"));
  EXPECT_THAT(refusal([&](auto& m) { node(m, 0).set_domain("other"); }),
              HasSubstr("(other.Mul): this operator is not served"));
  EXPECT_THAT(refusal([](auto& m) { m.mutable_graph()->mutable_output(0)->set_name("z"); }),
              HasSubstr("output \"z\" is made by no node"));
  EXPECT_THAT(
      refusal([](auto& m) { m.mutable_graph()->mutable_initializer(0)->mutable_raw_data()->pop_back(); }),
      HasSubstr("initializer \"w\": has 15 bytes, its shape 16"));
  EXPECT_THAT(refusal([](auto& m) { m.mutable_graph()->mutable_initializer(1)->add_float_data(1); }),
              HasSubstr("has 2 elements, its shape 1"));
  EXPECT_THAT(refusal([](auto& m) { m.mutable_graph()->mutable_initializer(0)->set_dims(0, -4); }),
              HasSubstr("an extent of -4"));
  EXPECT_THAT(refusal([](auto& m) { m.mutable_graph()->mutable_initializer(0)->set_dims(0, INT64_MAX); }),
              HasSubstr("an extent of 9223372036854775807"));
  EXPECT_THAT(refusal([](auto& m) {
                m.mutable_graph()->mutable_initializer(0)->set_data_type(onnx::TensorProto::COMPLEX64);
              }),
              HasSubstr("elements of type COMPLEX64 are not served"));
  EXPECT_THAT(
      refusal([](auto& m) { m.mutable_graph()->mutable_input(0)->mutable_type()->clear_tensor_type(); }),
      HasSubstr("is no tensor"));
  const std::string bytes = small().SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {  // cut anywhere
    const auto graph = read(bytes.substr(0, size));
    EXPECT_FALSE(graph.is_ok() && size + 4 < bytes.size()) << size;
    EXPECT_EQ(graph.message().find('\n'), std::string::npos);
  }
}

// Extents that the model declares are those that its operators compute; names and missing ones say nothing.
TEST(ModelReader, ContradictoryExtentsAreRefused) {
  using Dims = std::vector<int64_t>;  // 0: no number, -1: a name
  const auto declare = [](onnx::ValueInfoProto& value, const Dims& dims) {
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(onnx::TensorProto::FLOAT);
    tensor.mutable_shape();
    for (const int64_t d : dims) {
      auto& dim = *tensor.mutable_shape()->add_dim();
      if (d < 0) dim.set_dim_param("rows");
      if (d > 0) dim.set_dim_value(d);
    }
  };
  const auto output = [&](const Dims& dims) {
    return refusal([&](auto& m) { declare(*m.mutable_graph()->mutable_output(0), dims); });
  };
  const auto inner = [&](const Dims& dims) {
    return refusal([&](auto& m) {
      auto& value = *m.mutable_graph()->add_value_info();
      value.set_name("xw");
      declare(value, dims);
    });
  };
  for (const Dims& right : {Dims{2, 4}, Dims{0, 4}, Dims{-1, 0}}) {
    EXPECT_EQ(output(right), "");
    EXPECT_EQ(inner(right), "");
  }
  EXPECT_EQ(output({-1, 5}),
            "output \"y\": found shape [rows, 5] in the model, expected that of float32[2, 4], which follows "
            "from its "
            "inputs. Export the model anew, or infer its shapes again");
  EXPECT_THAT(output({2, 4, 1}), HasSubstr("output \"y\": found shape [2, 4, 1]"));
  EXPECT_THAT(output({}), HasSubstr("output \"y\": found shape []"));
  EXPECT_THAT(inner({0, 3}),
              HasSubstr("value \"xw\": found shape [?, 3] in the model, expected that of float32[2, 4]"));
  // Old models list initializers as inputs.
  EXPECT_THAT(refusal([&](auto& m) {
                auto& value = *m.mutable_graph()->add_input();
                value.set_name("w");
                declare(value, {5});
              }),
              HasSubstr("input \"w\": found shape [5] in the model, expected that of float32[4]"));
  // A value that no node makes is nobody's.
  EXPECT_EQ(refusal([&](auto& m) {
              auto& value = *m.mutable_graph()->add_value_info();
              value.set_name("gone");
              declare(value, {7});
            }),
            "");
}

TEST(ModelReader, AnotherBatchThanExportedContradictsNothing) {
  const auto change = [](onnx::ModelProto& m) {
    m.mutable_graph()
        ->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_value(1);
    auto& tensor = *m.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(onnx::TensorProto::FLOAT);
    tensor.mutable_shape()->add_dim()->set_dim_value(1);
    tensor.mutable_shape()->add_dim()->set_dim_value(4);
  };
  EXPECT_EQ(refusal(change, {.extents = {.batch = 1}}), "");
  EXPECT_EQ(refusal(change, {.extents = {.batch = 3}}), "");
}

// Bytes changed at random: whatever is read, nothing crashes, and refusals are one line.
TEST(ModelReader, DamagedBytesAreRefusedOrRead) {
  const std::string bytes = small().SerializeAsString();
  int refused = 0;
  Seeds seeds(77, 3000);
  for (const uint32_t seed : seeds) {
    std::mt19937 random(seed);
    std::string damaged = bytes;
    for (uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % damaged.size();
      if (random() % 3 == 0)
        damaged.erase(at, 1 + random() % 3);
      else
        damaged[at] = static_cast<char>(random());
    }
    const auto graph = read(damaged);
    if (graph) {
      EXPECT_TRUE(check(*graph)) << check(*graph).message();
    }
    EXPECT_EQ(graph.message().find('\n'), std::string::npos) << graph.message();
    refused += graph ? 0 : 1;
  }
  if (seeds.all()) {
    EXPECT_GT(refused, 1000);
  }
}

class ExternalData : public ::testing::Test {
 protected:
  // The model with w in a file beside it.
  std::string read_with(const std::map<std::string, std::string>& entries) {
    onnx::ModelProto model = small();
    auto& w = *model.mutable_graph()->mutable_initializer(0);
    w.clear_raw_data();
    w.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      auto& entry = *w.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    std::ofstream(path_) << model.SerializeAsString();
    const auto graph = read_model_file(path_, {.extents = {.batch = 1}});
    if (!graph) return graph.message();
    const auto answers = graph::run_reference(*graph, {{1, 1, 1, 1}}, interpret);
    return answers ? str("y[1] = ", (*answers)[0][1]) : answers.message();
  }
  std::unique_ptr<ScratchFolder> folder_ = *ScratchFolder::make("model_reader");
  std::string path_ = folder_->path() + "/model.onnx";
};

TEST_F(ExternalData, LiesBesideTheModelAndNowhereElse) {
  const float numbers[] = {9, 9, 1, 2, 3, 4};
  std::ofstream(folder_->path() + "/weights.bin")
      .write(reinterpret_cast<const char*>(numbers), sizeof numbers);
  EXPECT_EQ(read_with({{"location", "weights.bin"}, {"offset", "8"}, {"length", "16"}}), "y[1] = 2.5");
  EXPECT_EQ(read_with({{"location", "weights.bin"}}), "y[1] = 9.5");
  EXPECT_THAT(read_with({{"location", "weights.bin"}, {"offset", "12"}}),
              HasSubstr("initializer \"w\": needs bytes 12 to 28 of weights.bin, which has 24"));
  EXPECT_THAT(read_with({{"location", "weights.bin"}, {"offset", "-1"}}),
              HasSubstr("external offset: found \"-1\", expected a number of bytes"));
  for (const char* offset : {"x", "", "8x", "18446744073709551616", "99999999999999999999999"})
    EXPECT_THAT(read_with({{"location", "weights.bin"}, {"offset", offset}}),
                HasSubstr("external offset: found "))
        << offset;
  EXPECT_THAT(read_with({{"location", "weights.bin"}, {"length", "12"}}),
              HasSubstr("has 12 bytes outside, its shape 16"));
  EXPECT_THAT(read_with({{"location", "none.bin"}}), HasSubstr("cannot be found"));
  EXPECT_THAT(read_with({{"location", "../../../../../../../../etc/passwd"}}),
              HasSubstr("lies outside of the model's folder"));
  std::filesystem::create_symlink("/etc/passwd", folder_->path() + "/link.bin");
  EXPECT_THAT(read_with({{"location", "link.bin"}}), HasSubstr("lies outside of the model's folder"));
  EXPECT_THAT(read_with({{"location", "."}}), HasSubstr("expected external data of a model"));
}

}  // namespace
}  // namespace tuner
