// The NPU from a job file to an answer: searched, raced, certified, queried, shown and built. Times are
// cycles, so whoever measures again gets the same.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;

class NpuCommands : public ::testing::Test {
 protected:
  NpuCommands() {
    shell_.write("job.json",
                 R"({"op": "matmul", "a": [96, 72], "b": [72, 80], "dtype": "int8", "out_dtype": "int8",
                                 "bias": true, "activation": "relu", "target": "npu", "trials": 12})");
  }
  CommandResult tuner(const std::string& words) const { return shell_.run("tuner " + words); }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

// The line of a query that begins with this word.
std::string line_of(const std::string& text, const std::string& word) {
  const size_t at = text.find("\n  " + word);
  return at == std::string::npos ? "no " + word : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

TEST_F(NpuCommands, AJobEndsInACertifiedAnswer) {
  const CommandResult submitted = tuner("submit job.json --db a.db");
  ASSERT_EQ(submitted.exit_code, 0) << submitted.out << submitted.err;
  EXPECT_THAT(submitted.out, HasSubstr("certified to"));
  EXPECT_THAT(submitted.out, HasSubstr("(12 ok)"));
  const CommandResult queried = tuner("query job.json --db a.db");
  ASSERT_EQ(queried.exit_code, 0) << queried.err;
  EXPECT_THAT(queried.out + queried.err, HasSubstr("simulated at 1 GHz"));
  EXPECT_THAT(queried.out, Not(HasSubstr("  stale ")));
  // Another search, in a database of its own, with the same seed.
  ASSERT_EQ(tuner("submit job.json --db b.db").exit_code, 0);
  const CommandResult again = tuner("query job.json --db b.db");
  EXPECT_EQ(line_of(again.out, "time"), line_of(queried.out, "time"));
  EXPECT_EQ(line_of(again.out, "config"), line_of(queried.out, "config"));

  const CommandResult built = tuner("build job.json --db a.db -o out");
  EXPECT_EQ(built.exit_code, 0) << built.err;
  EXPECT_EQ(shell_.run("head -c 7 out/npu/*.npu").out, "NPUKERN");
}

TEST_F(NpuCommands, InstructionsAndTimelineAreShown) {
  const CommandResult list = tuner("show job.json --as npu");
  ASSERT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr(" of the array's peak; simulated\n"));
  EXPECT_THAT(list.out, HasSubstr(": npu.rows.uint8.16x16("));
  EXPECT_THAT(list.out, HasSubstr("\nstore_sums "));
  const CommandResult trace = tuner("show job.json --as trace");
  ASSERT_EQ(trace.exit_code, 0) << trace.err;
  const auto events = nlohmann::json::parse(trace.out).at("traceEvents");
  size_t instructions = 0;
  for (const auto& event : events) instructions += event.at("ph") == "X" ? 1 : 0;
  EXPECT_GT(instructions, 20u);
  EXPECT_EQ(events.at(1).at("args").at("name"), "load");
}

TEST_F(NpuCommands, WhatItLacksIsNamed) {
  shell_.write("sums.json",
               R"({"op": "matmul", "a": [8, 8], "b": [8, 8], "dtype": "int8", "target": "npu"})");
  const CommandResult sums = tuner("show sums.json --as npu");
  EXPECT_EQ(sums.exit_code, 1);
  EXPECT_THAT(sums.err,
              HasSubstr("matmul_npu: needs int8 with out_dtype int8 or uint8, got int8 with int32"));
  const CommandResult banks = tuner("show job.json --as npu --target 'npu -banks=3'");
  EXPECT_EQ(banks.exit_code, 2);
  EXPECT_THAT(banks.err, HasSubstr("-banks: expected a power of two from 1 to 32, found 3"));
}

}  // namespace
}  // namespace tuner
