// Lists of values as T1 files write them. What Python makes of each expression was written down by hand.
#include "tuner/jobs/t1/value_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/damaged_text.h"

namespace tuner::t1 {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// "1, 2, rows"; the message where there is no list.
std::string values(const std::string& text) {
  const Result<std::vector<Value>> list = value_list(text);
  if (!list) return list.message();
  std::string out;
  for (const Value& value : *list) out += (out.empty() ? "" : ", ") + text_of(value);
  return out;
}

TEST(ValueList, IsWhatPythonMakesOfIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"[1, 2, 4]", "1, 2, 4"},
      {" [ 16 ] ", "16"},
      {"[1, 2, 4,]", "1, 2, 4"},
      {"(1, 2)", "1, 2"},
      {"([3, 4])", "3, 4"},
      {"[-1, +2, 0x10, 2*3, 2**3**2]", "-1, 2, 16, 6, 512"},
      {"[True, False]", "1, 0"},
      {"[0.5, 1e-3, -2.25]", "0.5, 0.001, -2.25"},
      {"['rows', \"columns\"]", "rows, columns"},
      {"['a, b]', 'for i in']", "a, b], for i in"},
      {"range(4)", "0, 1, 2, 3"},
      {"list(range(1, 4))", "1, 2, 3"},
      {"tuple(range(0, 9, 4))", "0, 4, 8"},
      {"range(6, 0, -2)", "6, 4, 2"},
      {"range(32, 64+1, 32)", "32, 64"},
      {"[i for i in range(1, 5)]", "1, 2, 3, 4"},
      {"[2**x for x in range(5)]", "1, 2, 4, 8, 16"},
      {"[32 * i for i in range(1, 4)]", "32, 64, 96"},
      {"[i for i in [1, 2, 3, 6] if 6 % i == 0 and i > 1]", "2, 3, 6"},
      {"[word for word in ['a', 'b'] if word != 'a']", "b"},
      {"[w == 'a' for w in ['a', 'b']]", "1, 0"},
      {"[i for i in [0.5, 1]]", "0.5, 1"},
      {"[for_i for for_i in range(2)]", "0, 1"},
      {"[1] + [2 * i for i in range(1, 4)]", "1, 2, 4, 6"},
      {"[1, 2] + list(range(16, 49, 16)) + [0.5]", "1, 2, 16, 32, 48, 0.5"},
      {"list([i for i in range(2)] + [7])", "0, 1, 7"},
      {"[7, 7]", "7, 7"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(values(text), expected) << text;
}

TEST(ValueList, WhatIsNoneIsOneLineWithItsColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "column 1: expected a list such as"},
      {"16", "column 1: expected a list such as"},
      {"[]", "column 1: expected at least one value, found none"},
      {"range(0)", "column 1: expected at least one value"},
      {"[i for i in range(9) if i > 9]", "column 1: expected at least one value"},
      {"[1, 2", "column 6: expected ], found the end"},
      {"[1, 2)", "column 6: a ) that closes nothing"},
      {"[1, 'two]", "column 5: expected a word in quotes, found no second quote"},
      {"[1,, 2]", "column 4: expected a number"},
      {"[1 2]", "column 4: expected an operator or the end, found 2"},
      {"[1, N]", "column 5: unknown name N"},
      {"[1, 2 / 2]", "column 7: expected // (a quotient rounded down), found /"},
      {"[1 // 0]", "column 4: division by zero"},
      {"[1, 010]", "column 5: expected an integer such as 64"},
      {"[1 << i for i in range(3)]", "column 4: expected an operator or the end, found <<"},
      {"[i * j for i in range(3) for j in range(3)]", "column 26: expected one for, found a second one"},
      {"[i for i of range(3)]", "column 10: expected in, found of range(3)"},
      {"[i for in range(3)]", "column 11: expected in, found range(3)"},
      {"[2 * i for i in [0.5]]", "column 6: unknown name i"},
      {"[2 * w for w in ['a']]", "column 6: expected a number, found the word"},
      {"[100 // i for i in range(3)]", "column 6: division by zero"},
      {"range(1, 2, 0)", "column 7: expected a step that is not 0"},
      {"range(1, 2, 3, 4)", "column 7: expected range(STOP)"},
      {"range(5000)", "column 7: expected at most 4096 values"},
      {"range(0, 9223372036854775807)", "column 7: expected at most 4096 values"},
      {"range(4000) + range(4000)", "column 1: expected at most 4096 values"},
      {"__import__('os')", "column 1: expected a list such as"},
      {"[open('x')]", "column 2: expected min or max before (, found open"},
      {"[1][0]", "column 3: a ] that closes nothing"},
      {"[1] * 3", "column 1: expected a list such as"},
      {"[[[[[[[[[[1]]]]]]]]]]", "column 2: expected a number"},
      {"list(list(list(list(list(list(list(list(list([1])))))))))", "expected at most 8 levels"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_THAT(values(text), HasSubstr(expected)) << text;
    EXPECT_TRUE(testing::one_line(values(text))) << text;
  }
  EXPECT_THAT(values("['" + std::string(70'000, 'x') + "']"), StartsWith("expected at most 65536 bytes"));
}

constexpr std::string_view kPieces[] = {"range(", "for ", " in ", " if ",  "list(", "**",
                                        "//",     "'",    "i",    "99999", "+ ["};

TEST(ValueListFuzz, AnyTextIsAListOrOneLine) {
  const std::string seeds[] = {"[1, 2, 4] + list(range(32, 1025, 32))", "[2**i for i in range(5) if i != 3]",
                               "['rows', \"columns\", True, 0.5]"};
  const int good = testing::check_damaged(seeds, kPieces, 61, [](const std::string& text) {
    const Result<std::vector<Value>> list = value_list(text);
    if (!list) {
      EXPECT_TRUE(testing::one_line(list.message())) << list.message();
      return false;
    }
    EXPECT_FALSE(list->empty());
    EXPECT_LE(list->size(), kMostValues);
    return true;
  });
  EXPECT_GT(good, testing::kDamagedRounds / 20);
  EXPECT_LT(good, testing::kDamagedRounds);
}

}  // namespace
}  // namespace tuner::t1
