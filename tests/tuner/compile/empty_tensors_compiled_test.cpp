// Models of tensors with an extent of 0 (random_empty.h), compiled as `tuner compile --no-tune` does, with
// its check of the library: they compute what ONNX says, and take null pointers where there is nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "compiler_core/backend.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/graph/graph.h"
#include "compiler_core/runtime/kernel.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/model/random_empty.h"
#include "tuner/compile/compile_model.h"
#include "tuner/model/compiled_model.h"
#include "tuner/model/tensor_file.h"

namespace tuner {
namespace {

using testing::RandomEmpty;

bool never() { return false; }

Status compile(const std::string& bytes, const TemporaryFolder& folder,
               std::vector<std::string> states = {}) {
  CompileRequest request;
  request.model = folder.file("net.onnx");
  request.db = folder.file("none.db");
  request.output = folder.file("out");
  request.target = *resolve_target("cpu");
  request.states = std::move(states);
  request.tune = false;
  std::ofstream(request.model, std::ios::binary) << bytes;
  ASSIGN_OR_RETURN(PreparedModel prepared, prepare_model(request, never));
  ASSIGN_OR_RETURN(const auto out, open_model_folder(request, prepared));
  return build_model(request, prepared, *out, never).status();
}

// Empty: the library computes the outputs, and touches nothing else.
std::string wrong(const std::string& folder, const RandomEmpty& made) {
  const auto opened = CompiledModel::open(folder);
  if (!opened) return opened.message();
  auto context = opened->context();
  if (!context) return context.message();
  std::vector<AlignedBuffer> memory;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (int32_t i = 0; i < opened->table().num_inputs; ++i) {
    const auto& given =
        *std::ranges::find(made.inputs(), opened->table().inputs[i].name, &RandomEmpty::Tensor::name);
    const auto elements =
        graph::Constant::of(given.numbers, given.is_float ? DType::kFloat32 : DType::kInt64);
    if (std::ssize(elements.bytes()) != opened->table().inputs[i].bytes) return "an input of another size";
    memory.emplace_back(std::ssize(elements.bytes()));
    std::ranges::copy(elements.bytes(), memory.back().as<std::byte>());
    in.push_back(elements.bytes().empty() ? nullptr : memory.back().data());
  }
  for (int32_t o = 0; o < opened->table().num_outputs; ++o) {
    memory.emplace_back(opened->table().outputs[o].bytes);
    out.push_back(opened->table().outputs[o].bytes == 0 ? nullptr : memory.back().data());
  }
  for (int run = 0; run < 2; ++run)
    if (const Status ran = context->run(in, out); !ran) return ran.message();
  for (size_t o = 0; o < made.outputs().size(); ++o) {
    const RandomEmpty::Tensor& expected = made.outputs()[o];
    const tuner_arg& found = opened->table().outputs[o];
    if (testing::Dims(found.shape, found.shape + found.rank) != expected.shape)
      return str("output ", expected.name, " has another shape");
    const auto numbers = load_elements(out[o], std::ssize(expected.numbers), DType::kFloat32);
    for (size_t e = 0; e < numbers.size(); ++e) {
      const double x = numbers[e], y = expected.numbers[e];
      const bool same = std::isnan(y)   ? std::isnan(x)
                        : std::isinf(y) ? x == y
                                        : std::fabs(x - y) <= 1e-4 * (1 + std::fabs(y));
      if (!same) return str("output ", expected.name, ", element ", e, " is ", x, ", expected ", y);
    }
  }
  return "";
}

TEST(EmptyTensorsCompiled, LibrariesComputeWhatOnnxSays) {
  for (const uint32_t seed : Seeds(5610, 25)) {
    const RandomEmpty made(seed);
    const TemporaryFolder folder;
    const Status compiled = compile(made.bytes(), folder);
    ASSERT_TRUE(compiled) << compiled.message();
    ASSERT_EQ(wrong(folder.file("out"), made), "");
  }
}

// A model that has nothing to compute, and a state of nothing.
TEST(EmptyTensorsCompiled, AModelMayHaveNoStep) {
  onnx::ModelProto model;
  model.add_opset_import()->set_version(18);
  auto& graph = *model.mutable_graph();
  testing::describe(*graph.add_input(), "x", onnx::TensorProto::FLOAT, {2, 0});
  testing::add_node(graph, "Relu", {"x"}, {"y"});
  testing::describe(*graph.add_output(), "y", onnx::TensorProto::FLOAT, {2, 0});
  const TemporaryFolder folder;
  const Status compiled = compile("\x08\x07" + model.SerializeAsString(), folder, {"x=y"});
  ASSERT_TRUE(compiled) << compiled.message();
  const auto opened = CompiledModel::open(folder.file("out"));
  ASSERT_TRUE(opened.is_ok()) << opened.message();
  EXPECT_EQ(opened->table().num_steps, 0);
  EXPECT_EQ(opened->table().outputs[0].bytes, 0);
  auto context = opened->context();
  ASSERT_TRUE(context.is_ok()) << context.message();
  const Status ran = context->run({nullptr}, {nullptr});
  EXPECT_TRUE(ran) << ran.message();
}

TEST(EmptyTensorsCompiled, TheirFilesHaveNoElements) {
  const tuner_arg tensor{
      .name = "x", .role = "input", .dtype = "float32", .layout = "", .rank = 2, .shape = {2, 0}, .bytes = 0};
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder.file(name), std::ios::binary) << bytes;
    return read_tensor_file(folder.file(name), tensor).status().message();
  };
  // As numpy.save() writes them.
  const auto npy = [](const std::string& shape) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize(117, ' ');
    return std::string("\x93NUMPY\x01\x00v\x00", 10) + header + "\n";
  };
  EXPECT_EQ(refusal("x.npy", npy("(2, 0)")), "");
  EXPECT_EQ(refusal("x.npy", npy("(0, 2)")), folder.file("x.npy") + ": has shape [0, 2], expected [2, 0]");
  EXPECT_EQ(refusal("x.raw", ""), "");
  EXPECT_EQ(refusal("x.raw", "1234"),
            folder.file("x.raw") + ": has 4 bytes of elements, expected 0 for float32[2, 0]");
  EXPECT_EQ(refusal("x.pb", testing::tensor("x", onnx::TensorProto::FLOAT, {2, 0}, {}).SerializeAsString()),
            "");
  EXPECT_EQ(npy_bytes(tensor, nullptr), npy("(2, 0,)"));
}

}  // namespace
}  // namespace tuner
