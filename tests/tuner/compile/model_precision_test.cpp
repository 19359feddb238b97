// `tuner compile --precision bfloat16`: what it makes on a CPU that has a unit for it, and who is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "compiler_core/backend.h"
#include "compiler_core/runtime/kernel.h"
#include "tests/tuner/command_line.h"
#include "tests/tuner/model/network_model.h"
#include "tuner/model/compiled_model.h"
#include "tuner/model/narrow_products.h"
#include "tuner/model/plan_file.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using testing::NetworkModel;

constexpr char kName[] = "mlp";
constexpr int64_t kNarrower = 4;

class ModelPrecision : public ::testing::Test {
 protected:
  ModelPrecision() {
    const auto bytes = testing::network(kName, {.batch = 1, .narrower = kNarrower, .seed = first_seed(11)});
    CHECK(bytes.is_ok()) << bytes.message();
    shell_.write("net.onnx", *bytes);
  }
  CommandResult compile(const std::string& words, const std::string& to = "out") {
    return shell_.run(str("tuner compile net.onnx -o ", to, " --name net --db own.db --no-tune ", words));
  }
  std::string at(const std::string& name) const { return (shell_.folder() / name).string(); }
  // The outputs for the network's input.
  std::vector<float> run(const std::string& folder) const {
    const auto model = CompiledModel::open(at(folder));
    CHECK(model.is_ok()) << model.message();
    auto context = model->context();
    CHECK(context.is_ok()) << context.message();
    const AlignedBuffer in(static_cast<int64_t>(4 * network_.input().size())),
        out(static_cast<int64_t>(4 * network_.outputs()));
    std::ranges::copy(network_.input(), in.as<float>());
    CHECK(context->run({in.data()}, {out.data()}).is_ok());
    return {out.as<float>(), out.as<float>() + network_.outputs()};
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
  const NetworkModel network_{kName, kNarrower, 0};
};

TEST_F(ModelPrecision, WeightsAreRoundedOnceAndTheErrorIsTold) {
  const auto host = resolve_target("cpu");
  ASSERT_TRUE(host.is_ok()) << host.message();
  if (const Status unit = check_has_unit(*host, DType::kBFloat16); !unit) {
    const CommandResult refused = compile("--precision bfloat16");
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr(std::string(unit.message())));
    GTEST_SKIP() << "this CPU has no unit for bfloat16";
  }
  const CommandResult wide = compile("", "wide"), narrow = compile("--precision bfloat16", "narrow");
  ASSERT_EQ(wide.exit_code, 0) << wide.err;
  ASSERT_EQ(narrow.exit_code, 0) << narrow.err;
  EXPECT_THAT(narrow.out,
              ::testing::ContainsRegex("[1-9][0-9]* products in bfloat16: outputs are at most 0\\.0"));
  EXPECT_THAT(wide.out, ::testing::Not(HasSubstr("bfloat16")));
  const auto plan = read_plan(at("narrow")), before = read_plan(at("wide"));
  ASSERT_TRUE(plan.is_ok() && before.is_ok());
  EXPECT_LT(static_cast<double>(plan->weights.bytes), 0.6 * static_cast<double>(before->weights.bytes));
  EXPECT_EQ(plan->inputs, before->inputs);
  EXPECT_EQ(plan->outputs, before->outputs);
  const std::vector<float> expected = run("wide"), found = run("narrow");
  network_.expect_right(expected.data());
  double most = 0, off = 0;
  for (size_t k = 0; k < found.size(); ++k) {
    most = std::max(most, std::fabs(static_cast<double>(expected[k])));
    off = std::max(off, std::fabs(static_cast<double>(found[k]) - static_cast<double>(expected[k])));
  }
  EXPECT_LE(off, 0.05 * most);
  EXPECT_GE(off, 1e-4 * most);  // or products were of float32
}

TEST_F(ModelPrecision, IsRefusedInOneLineWhereThereIsNoUnit) {
  const auto expect_refused = [&](const std::string& words, const std::string& why) {
    const CommandResult refused = compile("--precision bfloat16 " + words);
    EXPECT_EQ(refused.exit_code, 2) << words;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("--precision bfloat16: "), HasSubstr(why))) << words;
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(at("out"))) << words;
  };
  expect_refused("--target 'llvm -mcpu=haswell'", "multiplies no bfloat16");
  expect_refused("--for avx512,avx2", "multiplies no bfloat16");
  expect_refused("--target 'cuda -arch=sm_80'", "is for CPUs, found \"cuda -arch=sm_80\"");
  const CommandResult other = compile("--precision float16");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("--precision"), HasSubstr("bfloat16")));
}

}  // namespace
}  // namespace tuner
