// Formulas as people write them. What they are worth is told by Python itself, on formulas drawn at random;
// what is refused, and with which words, by a table.
#include "templates/space/formula.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include "templates/space/config_space.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using Names = std::map<std::string, Formula::Value>;

Formula::Values lookup(const Names& names) {
  return [&names](const std::string& name) -> std::optional<Formula::Value> {
    const auto found = names.find(name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  };
}

Result<int64_t> value(std::string_view text, const Names& names = {}) {
  const Result<Formula> formula = Formula::parse(text);
  if (!formula) return formula.status();
  return formula->value(lookup(names));
}

TEST(Formula, MeansWhatItsTextSays) {
  const Names names = {
      {"n", int64_t{100}}, {"tile", int64_t{8}}, {"zero", int64_t{0}}, {"layout", std::string("nhwc")}};
  const struct {
    const char* text;
    int64_t expected;
  } cases[] = {
      {"1 + 2 * 3", 7},
      {"(1 + 2) * 3", 9},
      {"10 - 3 - 2", 5},
      {"-7 // 2", -4},
      {"-7 % 2", 1},
      {"7 % -2", -1},
      {"2 ** 3 ** 2", 512},
      {"-2 ** 2", -4},
      {"2 ** 10 // 3", 341},
      {"0x10 + 0XfF", 271},
      {"1 < 2 < 3", 1},
      {"3 > 2 > 2", 0},
      {"1 < 3 == 1", 0},  // 1 < 3 and 3 == 1
      {"(1 < 3) == 1", 1},
      {"not 1 == 2", 1},
      {"!1 == 0", 1},  // as in C: (!1) == 0
      {"n >= 100 && tile != 8 || 1", 1},
      {"1 or 0 and 0", 1},
      {"not zero and n", 1},
      {"min(n, tile, 3) + max(n, tile)", 103},
      {"min(5)", 5},
      {"(n + tile - 1) // tile", 13},
      {"zero != 0 and n % zero == 0", 0},
      {"zero == 0 or n % zero == 0", 1},
      {"layout == \"nhwc\"", 1},
      {"'nchw' != layout", 1},
      {"+ - -n", 100},
      {"9223372036854775807 - 1", INT64_MAX - 1},
      {"-9223372036854775807 - 1", INT64_MIN},
      {"(-1) ** 9223372036854775807", -1},
      {"\tn\n", 100},
      {"android + notch", 3},
  };
  Names with = names;
  with["android"] = int64_t{1};
  with["notch"] = int64_t{2};
  for (const auto& c : cases) {
    const Result<int64_t> found = value(c.text, with);
    ASSERT_TRUE(found.is_ok()) << c.text << ": " << found.message();
    EXPECT_EQ(*found, c.expected) << c.text;
  }
}

TEST(Formula, WhatIsWrongIsSaidInOneLineWithItsPlace) {
  const Names names = {{"n", int64_t{100}}, {"zero", int64_t{0}}, {"layout", std::string("nhwc")}};
  const struct {
    const char *text, *message;
  } cases[] = {
      {"", "column 1: expected a number, a name or (, found the end"},
      {"n +", "column 4: expected a number, a name or (, found the end"},
      {"n <= <= 3", "column 6: expected a number, a name or (, found <="},
      {"(n + 1", "column 7: expected an operator or the ) of column 1, found the end"},
      {"n 3", "column 3: expected an operator or the end, found 3"},
      {"n / 2", "column 3: expected // (a quotient rounded down), found /"},
      {"n << 2", "column 3: expected an operator or the end, found <<"},
      {"n & 2", "column 3: expected an operator or the end, found &"},
      {"1.5", "column 1: expected an integer such as 64 or 0x40, found 1"},
      {"12ab", "column 1: expected an integer such as 64 or 0x40, found 12ab"},
      {"010", "column 1: expected an integer such as 64 or 0x40, found 010"},
      {"0x", "column 1: expected an integer such as 64 or 0x40, found 0x"},
      {"0x-1", "column 1: expected an integer such as 64 or 0x40, found 0x"},
      {"9223372036854775808", "column 1: expected a number of 64 bits"},
      {"sqrt(n)", "column 1: expected min or max before (, found sqrt"},
      {"min(n, )", "column 8: expected a number, a name or (, found )"},
      {"1 + and", "column 5: expected a number, a name or (, found and"},
      {"1 + not 2", "column 5: expected a number, a name or (, found not"},
      {"m + 1", "column 1: unknown name m"},
      {"n // zero", "column 3: division by zero"},
      {"n % (n - 100)", "column 3: division by zero"},
      {"2 ** -1", "column 3: expected a power of at least 0, found -1"},
      {"2 ** 63", "column 3: the value does not fit 64 bits"},
      {"10 ** 1000000000000", "column 4: the value does not fit 64 bits"},
      {"9223372036854775807 + n", "column 21: the value does not fit 64 bits"},
      {"(-9223372036854775807 - 1) // -1", "column 28: the value does not fit 64 bits"},
      {"layout + 1", "column 1: expected a number, found the word \"nhwc\""},
      {"\"nhwc\"", "column 1: expected a number, found the word \"nhwc\""},
      {"n == \"nhwc\"", "column 3: a word is compared with a number"},
      {"\"open", "column 1: expected a word in quotes, found no second quote"},
  };
  for (const auto& c : cases) {
    const Result<int64_t> found = value(c.text, names);
    ASSERT_FALSE(found.is_ok()) << c.text << " is " << *found;
    EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(found.message(), c.message) << c.text;
  }
}

// Each of them doubles, nests or repeats something without end.
TEST(Formula, LargeTextsAreRefusedAtOnce) {
  std::string chains = "1";
  for (int i = 0; i < 40; ++i) chains.insert(0, "(0<").append("<2)");
  std::string parentheses(70, '('), signs(70, '-'), powers, nots, sums = "1";
  for (int i = 0; i < 70; ++i) powers += "1**", nots += "not ";
  for (int i = 0; i < 513; ++i) sums += "+1";
  for (const std::string& text : {chains, parentheses + "1" + std::string(70, ')'), signs + "1", powers + "1",
                                  nots + "1", sums, std::string(5000, ' ') + "1"}) {
    const Result<Formula> found = Formula::parse(text);
    ASSERT_FALSE(found.is_ok()) << text;
    EXPECT_NE(found.message().find("expected at most"), std::string::npos) << found.message();
  }
  std::string most = "1";
  for (int i = 0; i < 255; ++i) most += "+1";
  EXPECT_EQ(*value(most), 256);
}

// --- held against Python ---

class Drawn {
 public:
  explicit Drawn(std::mt19937_64& rng) : rng_(rng) {}
  std::string text(int depth) {
    if (depth == 0 || below(6) == 0) return below(2) == 0 ? std::to_string(below(12)) : str("abcd"[below(4)]);
    const auto inner = [&] { return below(3) == 0 ? text(depth - 1) : "(" + text(depth - 1) + ")"; };
    switch (below(16)) {
      case 0:
        return "not " + inner();
      case 1:
        return "-" + inner();
      case 2:
        return (below(2) == 0 ? "min(" : "max(") + text(depth - 1) + ", " + text(depth - 1) + ")";
      case 3:
        return inner() + "**" + std::to_string(below(4));
      case 4:
        return inner() + " < " + inner() + " <= " + inner();
      default:
        static constexpr const char* kSigns[] = {" + ", " - ",  " * ",  " // ", " % ",   " < ", " <= ",
                                                 " > ", " >= ", " == ", " != ", " and ", " or "};
        return inner() + kSigns[below(std::size(kSigns))] + inner();
    }
  }

 private:
  uint64_t below(uint64_t n) { return rng_() % n; }
  std::mt19937_64& rng_;
};

// What Python says of each text: its value, or "wrong". True and False are 1 and 0, and the operands that
// Python's `and` and `or` give are 0 or 1 here.
constexpr const char* kPython = R"(
import ast, sys
class Truth(ast.NodeTransformer):
    def visit_BoolOp(self, node):
        self.generic_visit(node)
        return ast.Call(ast.Name("bool", ast.Load()), [node], [])
names = dict(a=0, b=3, c=-5, d=64)
for line in open(sys.argv[1]):
    try:
        tree = ast.fix_missing_locations(Truth().visit(ast.parse(line.strip(), mode="eval")))
        value = int(eval(compile(tree, "", "eval"), {"min": min, "max": max, "bool": bool}, names))
        print(value if -2**63 <= value < 2**63 else "wrong")
    except (SyntaxError, ZeroDivisionError):
        print("wrong")
)";

TEST(Formula, IsWorthWhatPythonSays) {
  if (std::system("python3 -c pass 2>/dev/null") != 0) GTEST_SKIP() << "no python3";
  const RandomSeed seed(71);
  std::mt19937_64 rng(seed);
  const TemporaryFolder folder;
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i) texts.push_back(Drawn(rng).text(4));
  std::ofstream in(folder.path() / "in"), program(folder.path() / "evaluate.py");
  for (const std::string& text : texts) in << text << "\n";
  program << kPython;
  in.close();
  program.close();
  const std::string where = folder.path().string();
  ASSERT_EQ(
      std::system(str("python3 ", where, "/evaluate.py ", where, "/in > ", where, "/out 2>", where, "/errors")
                      .c_str()),
      0);
  std::ifstream out(folder.path() / "out");
  const Names names = {{"a", int64_t{0}}, {"b", int64_t{3}}, {"c", int64_t{-5}}, {"d", int64_t{64}}};
  size_t agreed = 0;
  for (const std::string& text : texts) {
    std::string expected;
    ASSERT_TRUE(std::getline(out, expected)) << text;
    const Result<int64_t> found = value(text, names);
    // Python has numbers of any size on the way; here 64 bits are too few for some.
    if (!found && found.message().find("64 bits") != std::string::npos) continue;
    EXPECT_EQ(found.is_ok() ? std::to_string(*found) : "wrong", expected)
        << text << (found.is_ok() ? "" : ": " + found.message());
    agreed += found.is_ok() ? 1 : 0;
  }
  EXPECT_GT(agreed, texts.size() / 2);
}

// --- over a space ---

TEST(Formula, InASpaceItIsWorthTheSame) {
  Seeds seeds(72, 400);
  const std::vector<int64_t> as = {0, 1, 2, 5}, bs = {-3, 2, 4}, cs = {1, 2, 3};
  size_t translated = 0;
  for (const uint32_t seed : seeds) {
    std::mt19937_64 rng(seed);
    const std::string text = Drawn(rng).text(4);
    const Result<Formula> formula = Formula::parse(text);
    if (!formula) continue;
    ConfigSpace space;
    const ChoiceKnob a = space.choice("a", as), b = space.choice("b", bs), c = space.choice("c", cs);
    const auto in_space = [&](const std::string& name) -> std::optional<Formula::InSpace> {
      if (name == "a") return Formula::InSpace{a, as, {}};
      if (name == "b") return Formula::InSpace{b, bs, {}};
      if (name == "c") return Formula::InSpace{c, cs, {}};
      return Formula::InSpace{IntExpr(64), {64}, {}};
    };
    const Result<IntExpr> expr = formula->over(in_space);
    if (!expr) continue;
    space.require(*expr);
    uint64_t valid = 0;
    bool exact = true;
    for (const int64_t x : as)
      for (const int64_t y : bs)
        for (const int64_t z : cs) {
          const Names names = {{"a", x}, {"b", y}, {"c", z}, {"d", int64_t{64}}};
          const Result<int64_t> found = formula->value(lookup(names));
          exact = exact && found.is_ok();
          valid += found.is_ok() && *found != 0 ? 1 : 0;
        }
    if (!exact) continue;  // a guarded division by zero, or more than 64 bits
    const Status sealed = space.seal();
    if (valid == 0) {
      EXPECT_FALSE(sealed.is_ok()) << text;
      continue;
    }
    if (!sealed.is_ok()) {
      EXPECT_NE(sealed.message().find("default"), std::string::npos) << text << ": " << sealed.message();
      continue;
    }
    EXPECT_EQ(space.size(), valid) << text;
    ++translated;
  }
  if (seeds.all()) {
    EXPECT_GT(translated, 50u);
  }
}

TEST(Formula, WhatASpaceCannotHaveIsRefused) {
  ConfigSpace space;
  const std::vector<int64_t> numbers = {0, 1, 4};
  const ChoiceKnob tile = space.choice("tile", numbers);
  const CategoryKnob layout = space.category("layout", {"nchw", "nhwc"});
  const auto in_space = [&](const std::string& name) -> std::optional<Formula::InSpace> {
    if (name == "tile") return Formula::InSpace{tile, numbers, {}};
    if (name == "layout") return Formula::InSpace{layout, {0, 1}, {"nchw", "nhwc"}};
    if (name == "n") return Formula::InSpace{IntExpr(12), {12}, {}};
    return std::nullopt;
  };
  const struct {
    const char *text, *message;
  } cases[] = {
      {"n % tile == 0", "column 3: the divisor may be 0; exclude that before, as in  d != 0 and n % d == 0"},
      {"tile != 0 and n % tile == 0", ""},
      {"n % max(tile, 1) == 0", ""},
      {"2 ** (tile - 1) < 3", "column 3: the power may be negative: it is -1 at least"},
      {"2 ** tile < 9", ""},
      {"layout == \"nhwc\"", ""},
      {"layout == \"NHWC\"",
       "column 11: expected a value of layout, one of \"nchw\", \"nhwc\"; found \"NHWC\""},
      {"layout == 1", "column 1: layout is a word: compare it with one of its values, layout == \"nchw\""},
      {"tile == \"nhwc\"", "column 9: the values of tile are numbers, found the word \"nhwc\""},
      {"\"a\" == \"a\"", "column 8: a word can only be compared with a name"},
      {"tiles > 1", "column 1: unknown name tiles"},
  };
  for (const auto& c : cases) {
    const Result<IntExpr> found = Formula::parse(c.text)->over(in_space);
    EXPECT_EQ(found.is_ok() ? "" : found.message(), c.message) << c.text;
  }
  space.require(*Formula::parse("layout == \"nhwc\" and tile != 0 and n % tile == 0 or 2 ** tile == 1")
                     ->over(in_space));
  ASSERT_TRUE(space.seal().is_ok());
  EXPECT_EQ(space.size(), 4u);  // nhwc with 1 and 4, both layouts with 0
}

TEST(Formula, ItsNamesAreTold) {
  const Result<Formula> formula = Formula::parse("b * a + min(c, b) == 'word' or a");
  ASSERT_TRUE(formula.is_ok());
  EXPECT_EQ(formula->names(), (std::vector<std::string>{"b", "a", "c"}));
}

}  // namespace
}  // namespace tuner
