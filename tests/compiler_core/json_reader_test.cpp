// What a reader of a JSON object hands out, and the one line it says of what is wrong.
#include "compiler_core/base/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tuner::json_input {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Values {
  bool flag = true;
  int small = 7;
  int64_t large = 7;
  uint64_t seed = 7;
  double above = 7, within = 7, least = 7, any = 7;
  std::string text = "seven";
  std::vector<double> numbers = {7};
  std::vector<int> integers = {7};
};

Status read_values(const json& object, Values& v, bool required = false) {
  Reader in(object, "[3].");
  in.read("flag", v.flag, required);
  in.read("small", v.small, -5, 5, required);
  in.read("large", v.large, required);
  in.read("seed", v.seed, 0, ~uint64_t{0}, required);
  in.read("above", v.above, 0.0, 1.0, required);
  in.read_within("within", v.within, 0, 1, required);
  in.read_at_least("least", v.least, 0, required);
  in.read("any", v.any, required);
  in.read("text", v.text, required);
  in.read("numbers", v.numbers, required);
  in.read("integers", v.integers, 0, 9, required);
  return in.finish();
}

std::string refusal(std::string_view text) {
  Values v;
  return read_values(*parse(text), v).message();
}

TEST(JsonReader, HandsOutWhatIsThereAndLeavesTheRest) {
  Values v;
  ASSERT_TRUE(read_values(json::object(), v)) << "nothing is required";
  EXPECT_EQ(v.small, 7) << "what is not there stays as it is, whatever its range";
  const Result<json> all = parse(
      R"({"flag":false,"small":-5,"large":-9223372036854775808,"seed":18446744073709551615,"above":1,
          "within":0,"least":1e300,"any":-2.5,"text":"a","numbers":[1,2.5],"integers":[0,9]})");
  ASSERT_TRUE(all) << all.message();
  const Status status = read_values(*all, v, kRequired);
  ASSERT_TRUE(status) << status.message();
  EXPECT_FALSE(v.flag);
  EXPECT_EQ(v.small, -5);
  EXPECT_EQ(v.large, INT64_MIN);
  EXPECT_EQ(v.seed, UINT64_MAX);
  EXPECT_EQ(v.above, 1);
  EXPECT_EQ(v.within, 0);
  EXPECT_EQ(v.least, 1e300);
  EXPECT_EQ(v.any, -2.5);
  EXPECT_EQ(v.text, "a");
  EXPECT_THAT(v.numbers, ElementsAre(1, 2.5));
  EXPECT_THAT(v.integers, ElementsAre(0, 9));
}

// A key that is missing is often there under another name.
TEST(JsonReader, BesideAMissingKeyItNamesTheOnesItDoesNotKnow) {
  const auto refused = [](std::string_view text) {
    const json object = *parse(text);
    Reader in(object, "[3].");
    std::string a;
    int b = 0;
    in.read("a", a, kRequired);
    in.read("b", b, kRequired);  // asked for, whatever is wrong with a
    return in.finish().message();
  };
  EXPECT_EQ(refused(R"({"b":1})"), "[3].a: expected a value, found nothing.");
  EXPECT_EQ(refused(R"({"b":1,"A":"x"})"),
            "[3].a: expected a value, found nothing. \"A\": unknown key; did you mean a? Known here: a, b.");
  EXPECT_EQ(refused(R"({"M":4,"N":5})"),
            "[3].a: expected a value, found nothing. \"M\", \"N\": unknown keys. Known here: a, b.");
  EXPECT_EQ(refused(R"({"A":"x","B":5})"),
            "[3].a: expected a value, found nothing. \"A\", \"B\": unknown keys; did you mean a, b? Known "
            "here: a, b.");
  EXPECT_EQ(refused(R"({"a":1,"N":5})"), "[3].a: expected a text in quotes, found 1.")
      << "that is another mistake";
  EXPECT_EQ(refused(R"({"a":"x","b":1,"M":4,"N":5})"), "[3].\"M\", \"N\": unknown keys. Known here: a, b.");
}

TEST(JsonReader, WhatWasMissingMayDecideWhichKeysThereAre) {
  const json object = *parse(R"({"rows":4})");
  Reader in(object, "");
  std::string op;
  in.read("op", op, kRequired);
  in.know_no_keys();
  EXPECT_EQ(in.finish().message(), "op: expected a value, found nothing.");
}

TEST(JsonReader, SaysWhereWhatWasExpectedAndWhatWasFound) {
  EXPECT_EQ(refusal(R"({"flag":1})"), "[3].flag: expected true or false, found 1.");
  EXPECT_EQ(refusal(R"({"small":6})"), "[3].small: expected an integer from -5 to 5, found 6.");
  EXPECT_EQ(refusal(R"({"small":1.0})"), "[3].small: expected an integer from -5 to 5, found 1.0.");
  EXPECT_EQ(refusal(R"({"small":18446744073709551615})"),
            "[3].small: expected an integer from -5 to 5, found 18446744073709551615.");
  EXPECT_EQ(refusal(R"({"large":9223372036854775808})"),
            "[3].large: expected an integer, found 9223372036854775808.");
  EXPECT_EQ(refusal(R"({"seed":-1})"),
            "[3].seed: expected an integer from 0 to 18446744073709551615, found -1.");
  EXPECT_EQ(refusal(R"({"above":0})"), "[3].above: expected a number above 0 and at most 1, found 0.");
  EXPECT_EQ(refusal(R"({"within":1.5})"), "[3].within: expected a number from 0 to 1, found 1.5.");
  EXPECT_EQ(refusal(R"({"least":-1})"), "[3].least: expected a number >= 0, found -1.");
  EXPECT_EQ(refusal(R"({"any":"1"})"), "[3].any: expected a finite number, found \"1\".");
  EXPECT_EQ(refusal(R"({"text":null})"), "[3].text: expected a text in quotes, found null.");
  EXPECT_EQ(refusal(R"({"numbers":3})"), "[3].numbers: expected a list, found 3.");
  EXPECT_EQ(refusal(R"({"numbers":[3,"x"]})"),
            "[3].numbers: expected a list of finite numbers, found [3,\"x\"].");
  EXPECT_EQ(refusal(R"({"integers":[3,10]})"), "[3].integers: expected integers from 0 to 9, found [3, 10].");
  EXPECT_EQ(refusal("[1]"), "[3]: expected an object { ... }, found [1].");
  EXPECT_THAT(refusal(R"({"smal":1})"),
              HasSubstr("[3].\"smal\": unknown key; did you mean small? Known here: "));
}

TEST(JsonReader, KeepsTheFirstErrorAndChangesNothingAfterIt) {
  const json object = {{"a", 1}, {"b", "x"}, {"c", 3}};
  Reader in(object, "");
  int a = 0, b = 0, c = 0;
  in.read("a", a, kRequired);
  in.read("b", b, kRequired);
  in.read("c", c, kRequired);
  in.read("d", c, kRequired);
  EXPECT_TRUE(in.failed());
  EXPECT_EQ(in.status().message(), "b: expected an integer, found \"x\".");
  EXPECT_EQ(in.finish().message(), in.status().message());
  EXPECT_EQ(a, 1);
  EXPECT_EQ(c, 0);
  Reader again(object, "message: ");
  again.read("d", c, kRequired);
  EXPECT_EQ(again.status().message(), "message: d: expected a value, found nothing.");
}

TEST(JsonReader, NamesTheWholePathOfWhatLiesWithin) {
  const Result<json> object = parse(R"({"rows":[{"x":1},{"x":-1}],"one":{"x":2}})");
  ASSERT_TRUE(object) << object.message();
  const auto read = [&](int low) {
    Reader in(*object, "");
    std::vector<int> seen;
    in.read_object("one", [&](Reader& one) { one.read("x", seen.emplace_back(), low, 9, kRequired); });
    in.read_objects("rows", [&](Reader& row) { row.read("x", seen.emplace_back(), low, 9, kRequired); });
    in.read_objects("none", [&](Reader& row) { row.read("x", seen.emplace_back(), low, 9, kRequired); });
    return std::pair(in.status().message(), seen);
  };
  EXPECT_THAT(read(-1).second, ElementsAre(2, 1, -1));
  EXPECT_EQ(read(0).first, "rows[1].x: expected an integer from 0 to 9, found -1.");
  EXPECT_EQ(read(3).first, "one.x: expected an integer from 3 to 9, found 2.");
}

TEST(JsonReader, ParsesWhatIsUnambiguousAndNotTooDeep) {
  EXPECT_THAT(parse("{\n \"a\" 1}").message(), HasSubstr("line 2, column 6: not JSON: "));
  EXPECT_EQ(parse(R"({"a":1,"b":{"a":2},"a":3})").message(), "\"a\": the key is given twice in one object.");
  EXPECT_TRUE(parse(std::string(16, '[') + "1" + std::string(16, ']')));
  EXPECT_EQ(parse(std::string(17, '[') + "1" + std::string(17, ']')).message(),
            "expected at most 16 levels of brackets, found more.");
  EXPECT_FALSE(parse(std::string(1 << 20, '[')));
  // Half a million values, the bracket among them.
  std::string many = "[0";
  for (int i = 2; i < 500'000; ++i) many += ",0";
  EXPECT_TRUE(parse(many + "]"));
  EXPECT_THAT(parse(many + ",0]").message(), HasSubstr("500"));
  EXPECT_EQ(parse(many + ",0]").status().code(), StatusCode::kInvalidArgument);
}

TEST(JsonReader, QuotesOneShortLineOfWhatItFound) {
  // 58 bytes behind the quote, and then a character of two bytes, which is not cut in half.
  const std::string text = std::string(58, 'x') + "ö" + std::string(1'000, 'y');
  EXPECT_EQ(refusal("{\"flag\":\"" + text + "\"}"),
            "[3].flag: expected true or false, found \"" + std::string(58, 'x') + "....");
  EXPECT_EQ(refusal(R"({"flag":"a\nb\u001b[2J"})"),
            R"([3].flag: expected true or false, found "a\nb\u001b[2J".)");
  EXPECT_EQ(one_line("a\nb\x1b[2J\x7f"), "a?b?[2J?");
  EXPECT_EQ(one_line("größer"), "größer");
}

}  // namespace
}  // namespace tuner::json_input
