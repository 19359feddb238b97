// The check that `tuner compile` ends with: a library that computes something else than its model is refused.
// The library is right here; the model it is held against is changed by a little, so that its error is known.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "compiler_core/backend.h"
#include "tests/models/onnx_model.h"
#include "tests/support/temporary_folder.h"
#include "tuner/compile/compile_model.h"

namespace tuner {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// first = x * 2, second = x * factor; float32[1, 64], or another type with factors of 1.
class CompileCheck : public ::testing::Test {
 protected:
  void save(DType dtype, float factor = 4) const {
    OnnxModel model;
    model.input("x", dtype, {1, 64});
    model.weights("two", dtype, {1}, element(dtype, dtype == DType::kFloat32 ? 2 : 1));
    model.weights("factor", dtype, {1}, element(dtype, dtype == DType::kFloat32 ? factor : 1));
    model.node("Mul", {"x", "two"}, {"first"});
    model.node("Mul", {"x", "factor"}, {"second"});
    model.output("first", dtype, {1, 64});
    model.output("second", dtype, {1, 64});
    std::ofstream(folder_.file("net.onnx"), std::ios::binary) << model.bytes();
  }
  static std::string element(DType dtype, double number) {
    const graph::Constant made = graph::Constant::of(std::vector<double>{number}, dtype);
    return {reinterpret_cast<const char*>(made.bytes().data()), made.bytes().size()};
  }

  // Builds the saved model's library and holds it against the model with another number in `constant`.
  Result<CompiledReport> build(const std::string& constant, double number, bool stopped = false) const {
    CompileRequest request;
    request.model = folder_.file("net.onnx");
    request.output = folder_.file("out");
    request.db = folder_.file("none.db");
    request.tune = false;
    request.target = *resolve_target("cpu");
    const auto never = [] { return false; };
    ASSIGN_OR_RETURN(PreparedModel model, prepare_model(request, never));
    for (graph::Value& value : model.graph.values)
      if (value.name == constant)
        value.constant = graph::Constant::of(std::vector<double>{number}, value.type.dtype);
    ASSIGN_OR_RETURN(const auto folder, open_model_folder(request, model));
    return build_model(request, model, *folder, [&] { return stopped; });
  }
  bool is_written() const { return std::filesystem::exists(folder_.file("out") + "/plan.json"); }

  void expect_refused(const std::string& constant, double number) const {
    SCOPED_TRACE(str(constant, " as ", number));
    const auto built = build(constant, number);
    EXPECT_EQ(built.status().code(), StatusCode::kFailed);
    EXPECT_NE(built.message().find("net.onnx: the library computes something else than the model: output \""),
              std::string::npos)
        << built.message();
    EXPECT_FALSE(is_written());
  }
  void expect_built(const std::string& constant, double number, double error) const {
    SCOPED_TRACE(str(constant, " as ", number));
    const auto built = build(constant, number);
    ASSERT_TRUE(built.is_ok()) << built.message();
    EXPECT_NEAR(built->error.value_or(1), error, 1e-6);
    EXPECT_TRUE(is_written());
  }

  TemporaryFolder folder_;
};

// The bound is an error of 1e-4 of the largest element. Both outputs count, the last as well as the first.
TEST_F(CompileCheck, EveryOutputIsWithinOneInTenThousand) {
  save(DType::kFloat32);
  for (const auto& [constant, number] : {std::pair("two", 2.0), std::pair("factor", 4.0)}) {
    expect_refused(constant, number / (1 + 1.03e-4));
    expect_refused(constant, number / (1 - 1.03e-4));
    expect_refused(constant, 0);
    expect_refused(constant, kNan);
  }
  expect_built("factor", 4 / (1 + 0.97e-4), 0.97e-4);
  expect_built("two", 2 / (1 - 0.97e-4), 0.97e-4);
}

TEST_F(CompileCheck, AnOutputThatIsNoNumberIsWrongUnlessTheModelsIsNone) {
  save(DType::kFloat32, kNan);
  expect_refused("factor", 4);
  expect_built("factor", kNan, 0);
}

// Eight roundings, of 2^-11 and 2^-8: a factor of 1 - k / 2048 is off by k / (2048 - k).
TEST_F(CompileCheck, SixteenBitsHaveRoomForTheirRoundings) {
  save(DType::kFloat16);
  expect_refused("factor", 1 - 9.0 / 2048);
  expect_built("factor", 1 - 8.0 / 2048, 8.0 / 2040);
  std::filesystem::remove_all(folder_.file("out"));
  save(DType::kBFloat16);
  expect_refused("two", 1 - 8.0 / 256);
  expect_built("two", 1 - 7.0 / 256, 7.0 / 249);
}

// Numbers that the type does not hold have a right answer, too: its nearest one.
TEST_F(CompileCheck, IntegersThatEndAtTheirTypeAreCompared) {
  OnnxModel model;
  model.input("x", DType::kFloat32, {1, 64});
  model.weights("factor", DType::kFloat32, {1}, element(DType::kFloat32, 1e12));
  model.node("Mul", {"x", "factor"}, {"large"});
  model.node("Cast", {"large"}, {"whole"}, {{"to", int64_t{onnx_type(DType::kInt32)}}});
  model.node("Pow", {"whole", "whole"}, {"power"});
  model.output("whole", DType::kInt32, {1, 64});
  model.output("power", DType::kInt32, {1, 64});
  std::ofstream(folder_.file("net.onnx"), std::ios::binary) << model.bytes();
  EXPECT_EQ(build("factor", -1e12).status().code(), StatusCode::kFailed);
  expect_built("factor", 1e12, 0);
}

TEST_F(CompileCheck, AnInterruptedBuildWritesNothing) {
  save(DType::kFloat32);
  EXPECT_EQ(build("", 0, /*stopped=*/true).status().code(), StatusCode::kAborted);
  EXPECT_FALSE(is_written());
}

// x * a, then the same product twice over: what is asked for goes into the job, and the product that runs
// twice counts twice.
TEST_F(CompileCheck, TheJobWeighsKernelsByTheStepsThatRunThem) {
  OnnxModel model;
  model.input("x", DType::kFloat32, {8, 32});
  model.input("y", DType::kFloat32, {32, 16});
  const std::string weights(size_t{4} * 32 * 32, '\0');
  model.weights("w", DType::kFloat32, {32, 32}, weights);
  model.node("MatMul", {"x", "w"}, {"once"});
  model.node("MatMul", {"once", "w"}, {"again"});
  model.node("MatMul", {"again", "y"}, {"z"});
  model.output("z", DType::kFloat32, {8, 16});
  std::ofstream(folder_.file("net.onnx"), std::ios::binary) << model.bytes();
  CompileRequest request;
  request.model = folder_.file("net.onnx");
  request.target = *parse_target("llvm -mcpu=haswell -threads=3");
  request.algorithms = "direct";
  request.trials = 77;
  request.time_limit_s = 41.5;
  const auto prepared = prepare_model(request, [] { return false; });
  ASSERT_TRUE(prepared.is_ok()) << prepared.message();
  const JobRow job = model_job(request, prepared->kernels);
  EXPECT_EQ(job.trials, 77);
  EXPECT_EQ(job.stop.time_limit_s, 41.5);
  ASSERT_EQ(job.tasks.size(), 2U);
  EXPECT_EQ(job.tasks[0].uses, 2);
  EXPECT_EQ(job.tasks[1].uses, 1);
  EXPECT_EQ(job.tasks[0].constants, Constants::kCold);
  EXPECT_EQ(job.tasks[1].constants, Constants::kWarm) << "it has none";
  for (const JobRow::Task& task : job.tasks) {
    EXPECT_EQ(task.target, "llvm -mcpu=haswell -threads=3");
    EXPECT_EQ(task.algorithms, "direct");
  }
  EXPECT_EQ(CompileRequest().trials, 128) << "docs/models_reference.md";
  EXPECT_EQ(CompileRequest().time_limit_s, 600);
}

// A step is found by its own name and by those of its nodes, if only one step has it.
TEST(UsedFunctions, AStepIsOneThatOnlyOneStepIsCalled) {
  ModelSteps model;
  model.graph.nodes = {{.name = "inner"}, {.name = "twin"}};
  model.steps.resize(3);
  model.steps[0].name = "twin";
  model.steps[1].name = "own=name";
  model.steps[1].nodes = {0};
  model.steps[2].name = "last";
  model.steps[2].nodes = {1};
  const auto told = [&](const std::string& word) {
    return find_uses({word}, model, *parse_target("llvm -mcpu=haswell")).message();
  };
  EXPECT_EQ(told("twin=none.so:f"), "--use twin=none.so:f: 2 steps are called \"twin\"");
  for (const char* name : {"own=name", "inner", "last"})
    EXPECT_EQ(told(str(name, "=none.so:f")).find(str("--use ", name, "=none.so:f: none.so: cannot be read")),
              0U)
        << told(str(name, "=none.so:f"));
  EXPECT_EQ(told("lost=none.so:f").find("--use lost=none.so:f: no step of the model is called \"lost\""), 0U);
}

}  // namespace
}  // namespace tuner
