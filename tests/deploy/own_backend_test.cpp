// examples/my_backend, copied out of the tree and built on an installation in a temporary folder: a device
// that this repository does not have is verified, tuned, raced, queried, shown and shipped.
#include <gmock/gmock.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/deploy/installed_example.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::InstalledExample;
using Outcome = InstalledExample::Outcome;
using ::testing::HasSubstr;

class OwnBackendTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
#ifndef TUNER_SANITIZED
    example_ = std::make_unique<InstalledExample>("my_backend");
#endif
  }
  static void TearDownTestSuite() { example_.reset(); }
  void SetUp() override {
#ifdef TUNER_SANITIZED
    GTEST_SKIP() << "built with sanitizers, which the programs built here have not";
#endif
    ASSERT_EQ(example_->built().exit_code, 0) << example_->built().out << example_->built().err;
  }
  static Outcome mine(const std::string& arguments) { return example_->tuner(arguments); }

  static std::unique_ptr<InstalledExample> example_;
};
std::unique_ptr<InstalledExample> OwnBackendTest::example_;

constexpr char kSmall[] =
    R"({"op":"matmul","a":[12,20],"b":[20,32],"bias":true,"activation":"relu","target":"abacus -lanes=8",)"
    R"("name":"small","measure":{"min_repeat_ms":0.05}})";

TEST_F(OwnBackendTest, AHundredSchedulesAreRight) {
  const Outcome verified = mine("verify my_backend/matmul.json --samples 100 --oracle");
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("matmul_abacus"));
  EXPECT_THAT(verified.out, HasSubstr("100 configs compared, 0 wrong")) << verified.out;
}

TEST_F(OwnBackendTest, ATaskIsTunedRacedAskedForAndShown) {
  example_->write("small.json", kSmall);
  setenv("TUNER_RACE_LIMIT_S", "0.001", 1);  // one heat: it is asked whether they race, not who wins
  const Outcome tuned = mine("submit small.json --trials 24");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.out << tuned.err;
  const Outcome query = mine("query small.json --json");
  ASSERT_EQ(query.exit_code, 0) << query.err;
  const json answer = json::parse(query.out);
  const json& first = answer.is_array() ? answer.at(0) : answer;
  EXPECT_EQ(first.at("target"), "abacus -lanes=8") << query.out;
  EXPECT_EQ(first.at("answer"), "exact") << query.out;
  EXPECT_FALSE(first.at("stale").get<bool>()) << query.out;

  const Outcome exported = mine("records export");
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("\"toolchain\":\"abacus 1\"")) << "what compiled it is on record";
  EXPECT_THAT(exported.out, HasSubstr("\"finalists\"")) << "its finalists were raced";
  std::istringstream lines(exported.out);
  int right = 0;
  for (std::string line; std::getline(lines, line);)
    if (const json row = json::parse(line, nullptr, false); row.is_object() && row.contains("outcome")) {
      EXPECT_EQ(row["outcome"], "ok") << line;
      ++right;
    }
  EXPECT_GE(right, 24);

  const Outcome code = mine("show small.json --as abacus");
  EXPECT_EQ(code.exit_code, 0) << code.err;
  EXPECT_THAT(code.out, HasSubstr("abacus 1 lanes 8 args 4"));
  EXPECT_THAT(code.out, HasSubstr("fma r"));
  const Outcome wrong = mine("show small.json --as llvm");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("expected schedule, loops, abacus"));

  // Every process writes the same code, wherever its objects lie.
  for (int process = 0; process < 8; ++process) {
    const Outcome built = mine("build small.json -o again");
    ASSERT_EQ(built.exit_code, 0) << built.err;
    const json manifest = json::parse(InstalledExample::contents(example_->path("again/manifest.json")));
    EXPECT_EQ(manifest.at("kernels").at(0).at("same_code_as_measured"), true) << built.err;
  }
}

// Runs the shipped kernel beside a plain loop.
constexpr char kApplication[] = R"(
#include "small.h"
#include <math.h>
static float a[12 * 20], b[20 * 32], bias[32], out[12 * 32];
int main(void) {
  for (int i = 0; i < 12 * 20; ++i) a[i] = (float)(i % 7 - 3) / 4;
  for (int i = 0; i < 20 * 32; ++i) b[i] = (float)(i % 5 - 2) / 4;
  for (int i = 0; i < 32; ++i) bias[i] = (float)i / 32;
  void* args[] = {a, b, bias, out};
  if (small(args) != 0) return 2;
  for (int i = 0; i < 12; ++i)
    for (int j = 0; j < 32; ++j) {
      float sum = bias[j];
      for (int k = 0; k < 20; ++k) sum += a[20 * i + k] * b[32 * k + j];
      if (fabsf(out[32 * i + j] - (sum > 0 ? sum : 0)) > 1e-5f) return 1;
    }
  return 0;
}
)";

TEST_F(OwnBackendTest, AKernelIsShippedAsFilesOfItsOwn) {
  example_->write("small.json", kSmall);
  const Outcome built = mine("build small.json -o out --emit schedule");
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const json manifest = json::parse(InstalledExample::contents(example_->path("out/manifest.json")));
  EXPECT_EQ(manifest.at("kernels").at(0).at("program"), "abacus/small.abacus");
  EXPECT_EQ(manifest.at("kernels").at(0).at("kind"), "abacus");
  example_->write("app.c", kApplication);
  const Outcome ran =
      example_->shell("cc -std=c99 -Wall -Wextra -Werror -I out/abacus app.c -lm -o app && ./app");
  EXPECT_EQ(ran.exit_code, 0) << ran.err << InstalledExample::contents(example_->path("out/abacus/small.h"));
}

TEST_F(OwnBackendTest, WhatTheDeviceCannotDoIsRefused) {
  const auto refused = [](int exit_code, const std::string& target, const std::string& rest = "") {
    example_->write("refused.json",
                    str(R"({"op":"matmul","a":[3,5],"b":[5,16],"target":")", target, "\"", rest, "}"));
    const Outcome outcome = mine("submit refused.json --trials 4");
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.out;
    return outcome.err;
  };
  EXPECT_THAT(refused(2, "abacus"), HasSubstr("abacus needs -lanes=N"));
  EXPECT_THAT(refused(2, "abacus -lanes=100"), HasSubstr("expected a number in 1..64"));
  EXPECT_THAT(refused(2, "abacus -lanes=16"), HasSubstr("the device here has 8 lanes"));
  EXPECT_THAT(refused(1, "abacus -lanes=8", R"(,"dtype":"int8")"),
              HasSubstr("matmul_abacus: needs float32, got int8"));
  // tuner's own programs do not know the device.
  const Outcome stranger = example_->shell(str(TUNER_BINARY, " query refused.json --db none.db"));
  EXPECT_EQ(stranger.exit_code, 2);
  EXPECT_THAT(stranger.err, HasSubstr("unknown kind \"abacus\""));
}

}  // namespace
}  // namespace tuner
