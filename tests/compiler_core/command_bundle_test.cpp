// What a program prints, read as a time; a program with its files as bytes, and back.
#include "compiler_core/artifact/command_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace tuner {
namespace {

using ::testing::HasSubstr;

TEST(PrintedResult, APatternHasOnePlaceForTheNumber) {
  const struct {
    const char *line, *pattern, *number;
  } cases[] = {
      {"time: 12.5 ms", "time: {number} ms", "12.5"},
      {"time:   12.5\tms", "time: {number} ms", "12.5"},
      {"  the time: 3e-2 ms, all told", "time: {number} ms", "3e-2"},
      {"time: +4 ms", "time: {number} ms", "+4"},
      {"time: 12.5 us", "time: {number} ms", ""},
      {"time: soon ms", "time: {number} ms", ""},
      {"time: none, time: 8 ms", "time: {number} ms", "8"},
      {"gpu 0 took 7 ms", "gpu * took {number} ms", "7"},
      {"gpu 0 took 7 ms (median)", "took {number} ms*median", "7"},
      {"gpu 0 took 7 ms (mean)", "took {number} ms*median", ""},
      {"42", "{number}", "42"},
      {"x86: 42 items", "{number} items", "42"},
      {"nan", "{number}", "nan"},
      {"", "{number}", ""},
      {"1.5.2 s", "{number} s", ""},
      {"12,345 s", "took {number} s", ""},
  };
  for (const auto& c : cases) EXPECT_EQ(number_in_line(c.line, c.pattern), c.number) << c.line;
}

TEST(PrintedResult, ALongLineTakesNoLongerThanItsLengthAllows) {
  const std::string line(size_t{60} << 10, 'a');
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(number_in_line(line, "a{number}"), "");
  EXPECT_EQ(number_in_line(line, "a*a*a*a*a*a*{number}b"), "");
  EXPECT_EQ(number_in_line(line + "b", "a*a*b{number}"), "");
  EXPECT_EQ(number_in_line(line.substr(0, 4090) + "b", "a*a*b{number}"), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(PrintedResult, TheLastLineCountsAndUnitsAreTimesOrRates) {
  const PrintedResult ms{.pattern = "t {number}", .scale_ns = 1e6, .unit = "ms"};
  EXPECT_EQ(printed_ns("t 1\nt 2\nbye\n", ms).value(), 2e6);
  const PrintedResult rate{.pattern = "t {number}", .scale_ns = 4e9, .is_rate = true, .unit = "GFLOP/s"};
  EXPECT_EQ(printed_ns("t 2", rate).value(), 2e9);
  for (const char* bad : {"t nan", "t inf", "t -1", "t 0", "t 1e400", "t 1e30", "t -0"}) {
    const Result<double> read = printed_ns(bad, ms);
    ASSERT_FALSE(read.is_ok()) << bad;
    EXPECT_THAT(read.message(), HasSubstr("ms, expected a number above 0")) << bad;
  }
  EXPECT_THAT(printed_ns("t \x1b[31m", ms).message(), HasSubstr("no line with \"t {number}\""));
}

TEST(CommandBundle, BytesAndBack) {
  CommandBundle bundle{.files = {{"a/b.txt", false, std::string("x\0y\n", 4)}, {"prog", true, ""}},
                       .run = {"./prog", "a b", "\xff"},
                       .environment = {"A=1"}};
  bundle.result = {.pattern = "t {number}", .scale_ns = 1e3, .is_rate = true, .unit = "1/s"};
  const Result<CommandBundle> read = parse_command_bundle(bundle.to_bytes());
  ASSERT_TRUE(read.is_ok()) << read.message();
  EXPECT_EQ(read->files[0].bytes, bundle.files[0].bytes);
  EXPECT_EQ(read->files[0].name, "a/b.txt");
  EXPECT_TRUE(read->files[1].executable);
  EXPECT_FALSE(read->files[0].executable);
  EXPECT_EQ(read->run[1], "a b");
  EXPECT_EQ(read->environment, bundle.environment);
  EXPECT_EQ(read->result.pattern, bundle.result.pattern);
  EXPECT_EQ(read->result.scale_ns, 1e3);
  EXPECT_TRUE(read->result.is_rate);
}

TEST(CommandBundle, WhatIsDamagedOrLeadsOutIsRefused) {
  CommandBundle bundle{.files = {{"prog", true, "abc"}}, .run = {"./prog"}};
  const std::string good = bundle.to_bytes();
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(parse_command_bundle(good.substr(0, n)).is_ok()) << n;
  EXPECT_FALSE(parse_command_bundle(good + "x").is_ok());
  for (const char* name : {"../x", "/x", "a/../../x", "", "a//b", ".", "a/."}) {
    bundle.files[0].name = name;
    EXPECT_FALSE(parse_command_bundle(bundle.to_bytes()).is_ok()) << name;
  }
}

}  // namespace
}  // namespace tuner
