// The ONNX models of cases, field by field; what is said where the library is not there or not what it
// should be; and, where BENCH_LIBONNXRUNTIME names the library, its answers for each operator.
#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/bench/cpu/bench_case.h"
#include "tests/bench/cpu/library.h"
#include "tests/bench/cpu/onnx_graph.h"
#include "tests/bench/cpu/onnxruntime.h"

namespace tuner {
namespace {

using google::protobuf::UnknownFieldSet;
using testing::ElementsAre;
using testing::HasSubstr;

// A message read without its schema.
struct Message {
  UnknownFieldSet fields;

  explicit Message(const std::string& bytes) { EXPECT_TRUE(fields.ParseFromString(bytes)); }
  std::vector<std::string> texts(int field) const {
    std::vector<std::string> found;
    for (int i = 0; i < fields.field_count(); ++i)
      if (fields.field(i).number() == field) found.push_back(fields.field(i).length_delimited());
    return found;
  }
  std::vector<int64_t> numbers(int field) const {
    std::vector<int64_t> found;
    for (int i = 0; i < fields.field_count(); ++i)
      if (fields.field(i).number() == field) found.push_back(static_cast<int64_t>(fields.field(i).varint()));
    return found;
  }
  Message one(int field) const {
    const std::vector<std::string> found = texts(field);
    EXPECT_EQ(found.size(), 1u) << "field " << field;
    return Message(found.empty() ? "" : found[0]);
  }
};

// {extents} of a ValueInfoProto.
std::vector<int64_t> extents(const Message& value) {
  std::vector<int64_t> found;
  for (const std::string& dimension : value.one(2).one(1).one(2).texts(1))
    found.push_back(Message(dimension).numbers(1).at(0));
  return found;
}

BenchCase case_of(const Workload& workload) {
  Result<BenchCase> made = BenchCase::make(workload, 5);
  CHECK(made.is_ok()) << made.message();
  return *std::move(made);
}

Conv2dWorkload conv() {
  Conv2dWorkload w;
  w.in_channels = 16, w.in_height = 9, w.in_width = 11, w.out_channels = 32;
  w.kernel_height = w.kernel_width = 3;
  w.stride = {2, 1};
  w.padding = {1, 0, 1, 2};
  w.bias = true;
  w.activation = Activation::kRelu;
  w.constant = {"weight"};
  return w;
}

TEST(OnnxGraph, AConvolutionIsANodeWithItsEpilogueAndHoldsItsWeights) {
  const BenchCase bench_case = case_of(Workload(conv()));
  const Result<SingleNodeGraph> made = onnx_graph(bench_case);
  ASSERT_TRUE(made.is_ok()) << made.message();
  EXPECT_EQ(made->operators, "Conv, Relu");
  EXPECT_THAT(made->inputs, ElementsAre("data"));
  EXPECT_TRUE(made->has_weights);

  const Message model(made->model);
  EXPECT_THAT(model.numbers(1), ElementsAre(8));          // IR version
  EXPECT_THAT(model.one(8).numbers(2), ElementsAre(17));  // operator set
  const Message graph = model.one(7);
  const std::vector<std::string> nodes = graph.texts(1), weights = graph.texts(5);
  ASSERT_EQ(nodes.size(), 2u);
  const Message first(nodes[0]), second(nodes[1]);
  EXPECT_THAT(first.texts(4), ElementsAre("Conv"));
  EXPECT_THAT(first.texts(1), ElementsAre("data", "weight", "bias"));
  EXPECT_THAT(second.texts(4), ElementsAre("Relu"));
  EXPECT_EQ(second.texts(1), first.texts(2));
  EXPECT_THAT(second.texts(2), ElementsAre("out"));
  std::map<std::string, std::vector<int64_t>> attributes;
  for (const std::string& bytes : first.texts(5)) {
    const Message a(bytes);
    const bool is_list = a.numbers(20) == std::vector<int64_t>{7};
    attributes[a.texts(1).at(0)] = a.numbers(is_list ? 8 : 3);
  }
  EXPECT_THAT(attributes["pads"], ElementsAre(1, 0, 1, 2));
  EXPECT_THAT(attributes["strides"], ElementsAre(2, 1));
  EXPECT_THAT(attributes["kernel_shape"], ElementsAre(3, 3));
  EXPECT_THAT(attributes["group"], ElementsAre(1));

  ASSERT_EQ(weights.size(), 2u);
  const Message weight(weights[0]);
  EXPECT_THAT(weight.numbers(1), ElementsAre(32, 16, 3, 3));
  EXPECT_THAT(weight.numbers(2), ElementsAre(1));  // float32
  const std::string raw = weight.texts(9).at(0);
  const std::vector<float>& values = bench_case.operand("weight").values;
  ASSERT_EQ(raw.size(), values.size() * 4);
  EXPECT_EQ(std::memcmp(raw.data(), values.data(), raw.size()), 0);
  EXPECT_THAT(extents(graph.one(11)), ElementsAre(1, 16, 9, 11));
  EXPECT_THAT(extents(graph.one(12)), ElementsAre(1, 32, 5, 11));
}

TEST(OnnxGraph, ARequantisedConvolutionIsOneNode) {
  Conv2dWorkload w = conv();
  w.dtype = DType::kInt8;
  w.narrow_out = DType::kUInt8;
  EXPECT_THAT(onnx_graph(case_of(Workload(w))).message(), HasSubstr("no relu but saturation"));
  w.activation = Activation::kNone;
  const BenchCase bench_case = case_of(Workload(w));
  const Result<SingleNodeGraph> made = onnx_graph(bench_case);
  ASSERT_TRUE(made.is_ok()) << made.message();
  EXPECT_EQ(made->operators, "QLinearConv");
  const Message graph = Message(made->model).one(7);
  EXPECT_THAT(
      Message(graph.texts(1).at(0)).texts(1),
      ElementsAre("data", "one", "zero_u8", "weight", "scale", "zero_s8", "one", "out_zero_point", "bias"));
  for (const std::string& bytes : graph.texts(5)) {
    const Message tensor(bytes);
    if (tensor.texts(8).at(0) != "out_zero_point") continue;
    EXPECT_THAT(tensor.numbers(1), ElementsAre());
    EXPECT_THAT(tensor.numbers(2), ElementsAre(2));  // uint8
    EXPECT_EQ(static_cast<unsigned char>(tensor.texts(9).at(0).at(0)),
              bench_case.operand("zero_point").values.front());
  }
}

TEST(OnnxGraph, RealAttributesAreFloats) {
  LayerNormWorkload w;
  w.rows = 3, w.columns = 40, w.epsilon = 0.5;
  const Result<SingleNodeGraph> made = onnx_graph(case_of(Workload(w)));
  ASSERT_TRUE(made.is_ok()) << made.message();
  bool seen = false;
  for (const std::string& bytes : Message(Message(made->model).one(7).texts(1).at(0)).texts(5)) {
    const Message a(bytes);
    if (a.texts(1).at(0) != "epsilon") continue;
    seen = true;
    EXPECT_THAT(a.numbers(20), ElementsAre(1));
    for (int i = 0; i < a.fields.field_count(); ++i) {
      if (a.fields.field(i).number() == 2) {
        EXPECT_EQ(a.fields.field(i).fixed32(), 0x3f000000u);
      }
    }
  }
  EXPECT_TRUE(seen);
}

TEST(OnnxGraph, WhatTheOperatorSetHasNotIsSaid) {
  MatmulWorkload w;
  w.m = w.n = w.k = 8;
  w.dtype = DType::kBFloat16;
  const Result<SingleNodeGraph> made = onnx_graph(case_of(Workload(w)));
  ASSERT_FALSE(made.is_ok());
  EXPECT_THAT(made.message(), HasSubstr("bfloat16"));
}

using Values = std::vector<std::pair<std::string, std::string>>;

TEST(OnnxRuntime, ALibraryThatIsNotThereIsNamedWithTheVariable) {
  const Values values{{"BENCH_LIBONNXRUNTIME", "/nowhere/libonnxruntime.so.1"}};
  const Settings settings(values);
  const auto opened = OnnxRuntime::open(1);
  ASSERT_FALSE(opened.is_ok());
  EXPECT_THAT(opened.message(), HasSubstr("/nowhere/libonnxruntime.so.1"));
  EXPECT_THAT(opened.message(), HasSubstr("BENCH_LIBONNXRUNTIME=/path"));
}

TEST(OnnxRuntime, AnotherVersionIsRefused) {
  const Values values{{"BENCH_LIBONNXRUNTIME", TUNER_FAKE_ONNXRUNTIME},
                      {"FAKE_ONNXRUNTIME_VERSION", "2.1.0"}};
  const Settings settings(values);
  const auto opened = OnnxRuntime::open(1);
  ASSERT_FALSE(opened.is_ok());
  EXPECT_THAT(opened.message(), HasSubstr("found version 2.1.0, expected 1.5 or a later 1.x"));
}

TEST(OnnxRuntime, ATableThatIsNotThePublishedOneIsRefused) {
  const Values values{{"BENCH_LIBONNXRUNTIME", TUNER_FAKE_ONNXRUNTIME},
                      {"FAKE_ONNXRUNTIME_VERSION", "1.99.0"}};
  const Settings settings(values);
  const auto opened = OnnxRuntime::open(1);
  ASSERT_FALSE(opened.is_ok());
  EXPECT_THAT(opened.message(), HasSubstr("1.99.0: its table of functions is not as published"));
}

// One small case of each operator and of each way its graph is written.
std::vector<Workload> one_of_each() {
  std::vector<Workload> all{Workload(conv())};
  Conv2dWorkload depthwise = conv();
  depthwise.out_channels = depthwise.groups = depthwise.in_channels;
  depthwise.residual = true;
  all.emplace_back(depthwise);
  MatmulWorkload matmul;
  matmul.m = 5, matmul.n = 33, matmul.k = 17;
  matmul.bias = matmul.residual = true;
  matmul.constant = {"b"};
  all.emplace_back(matmul);
  matmul.dtype = DType::kInt8;
  all.emplace_back(matmul);
  matmul.bias = matmul.residual = false;
  matmul.narrow_out = DType::kUInt8;
  all.emplace_back(matmul);
  Conv2dWorkload quantised = conv();
  quantised.dtype = DType::kInt8;
  quantised.narrow_out = DType::kUInt8;
  quantised.activation = Activation::kNone;
  all.emplace_back(quantised);
  MatmulWorkload batched;
  batched.batch = 3, batched.m = 4, batched.n = 8, batched.k = 6;
  all.emplace_back(batched);
  Pool2dWorkload pool;
  pool.channels = 16, pool.in_height = 9, pool.in_width = 8;
  pool.kernel_height = pool.kernel_width = 3;
  pool.stride = {2, 1};
  pool.padding = {1, 1, 1, 1};
  all.emplace_back(pool);
  pool.pooling = Pooling::kAverage;
  all.emplace_back(pool);
  pool.count_include_pad = true;
  all.emplace_back(pool);
  Pool2dWorkload global;
  global.channels = 16, global.in_height = global.in_width = global.kernel_height = global.kernel_width = 7;
  global.pooling = Pooling::kAverage;
  all.emplace_back(global);
  all.emplace_back(SoftmaxWorkload{.rows = 4, .columns = 50});
  all.emplace_back(LayerNormWorkload{.rows = 4, .columns = 50});
  for (const RowReduction r :
       {RowReduction::kSum, RowReduction::kMax, RowReduction::kMin, RowReduction::kMean})
    all.emplace_back(ReduceWorkload{.rows = 4, .columns = 50, .reduction = r});
  all.emplace_back(TransposeWorkload{.rows = 4, .columns = 50});
  all.emplace_back(ElementwiseWorkload{.rows = 4, .columns = 50});
  all.emplace_back(ElementwiseWorkload{.rows = 4,
                                       .columns = 50,
                                       .scale = true,
                                       .bias = true,
                                       .residual = true,
                                       .activation = Activation::kRelu});
  return all;
}

TEST(OnnxRuntime, AnswersOfTheLibraryAreRight) {
  if (std::getenv("BENCH_LIBONNXRUNTIME") == nullptr)
    GTEST_SKIP() << "BENCH_LIBONNXRUNTIME does not name the library";
  for (const int threads : {1, 2}) {
    const auto runtime = OnnxRuntime::open(threads);
    ASSERT_TRUE(runtime.is_ok()) << runtime.message();
    for (const Workload& workload : one_of_each()) {
      SCOPED_TRACE(workload.key());
      const BenchCase bench_case = case_of(workload);
      std::vector<Contestant> contestants;
      std::vector<MissingPeer> missing;
      (*runtime)->add(bench_case, 2, contestants, missing);
      for (const MissingPeer& m : missing) ADD_FAILURE() << m.name << ": " << m.why;
      ASSERT_EQ(contestants.size(), static_cast<size_t>(threads));
      for (const Contestant& c : contestants) {
        const Result<double> error = bench_case.check(c);
        EXPECT_TRUE(error.is_ok()) << error.message();
        c.call(1);
      }
    }
  }
}

}  // namespace
}  // namespace tuner
