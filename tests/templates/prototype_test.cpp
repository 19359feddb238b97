// Prototypes, macros with defaults and %RANGE% comments, as people write them.
#include "templates/source_kernel/prototype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "templates/source_kernel/macro_defaults.h"
#include "templates/source_kernel/range_comments.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "void f(const float * x, long n)" in words of one form.
std::string shown(const Prototype& p) {
  std::string text = (p.is_template ? "template " : "") + p.returns + " " + p.name + "(";
  for (size_t i = 0; i < p.parameters.size(); ++i) {
    const Parameter& a = p.parameters[i];
    text += (i == 0 ? "" : ", ") + std::string(a.constant ? "const " : "") + a.type +
            std::string(static_cast<size_t>(a.pointers), '*') + (a.reference ? "&" : "") +
            (a.name.empty() ? "" : " " + a.name);
  }
  return text + ")";
}

std::vector<std::string> functions(std::string_view text) {
  std::vector<std::string> list;
  for (const Prototype& p : functions_in(text)) list.push_back(shown(p));
  return list;
}

TEST(Prototype, OfC) {
  EXPECT_THAT(functions("void scale(const float* restrict x, float *restrict y, long n) { y[0] = x[n]; }"),
              ElementsAre("void scale(const float* x, float* y, long n)"));
  EXPECT_THAT(
      functions(
          "static inline unsigned long long f(unsigned char c[static 4], const double m[][8], void)\n{}"),
      ElementsAre("unsigned long long f(unsigned char* c, const double** m, void)"));
  EXPECT_THAT(functions("int main(void) { return 0; }"), ElementsAre("int main()"));
  EXPECT_THAT(functions("void f() {} void g(int, float*, struct point *p, int * const q) {}"),
              ElementsAre("void f()", "void g(int, float*, point* p, int* q)"));
  EXPECT_THAT(functions("float *row(float *m, size_t n) { return m; }"),
              ElementsAre("float* row(float* m, size_t n)"));
}

TEST(Prototype, OfCxx) {
  EXPECT_THAT(
      functions(
          "#include <vector>\nnamespace a::b { namespace {\n"
          "void f(std::size_t n, const std::vector<std::pair<int, int>>& v, int k = g(1, 2)) noexcept {}\n"
          "} }\nextern \"C\" { void h(const ::std::int32_t* x) {} }\nextern \"C\" void i(float* y) {}"),
      ElementsAre("void a::b::f(std::size_t n, const std::vector<std::pair<int, int>>& v, int k)",
                  "void h(const ::std::int32_t* x)", "void i(float* y)"));
  EXPECT_THAT(functions("template <typename T, int N = (1 > 0)> void f(T* x) {} void g(float* x) {}"),
              ElementsAre("template void f(T* x)", "void g(float* x)"));
  EXPECT_THAT(functions("auto f(const float* x) -> float { return *x; } void C::method(int n) {}"),
              ElementsAre("auto f(const float* x)", "void C::method(int n)"));
}

TEST(Prototype, AttributesAndMacrosAreNoPartOfATypeAndBodiesOfOtherThingsAreNoFunctions) {
  EXPECT_THAT(
      functions("__attribute__((noinline, target(\"avx2\"))) [[gnu::hot]] void f([[maybe_unused]] int n,\n"
                "  float* __restrict__ y __attribute__((aligned(64)))) {}"),
      ElementsAre("void f(int n, float* y)"));
  EXPECT_THAT(functions("struct point { int x; void method(int k) {} } p; enum { A, B };\n"
                        "static const int table[] = {1, 2, 3}; typedef struct { float* v; } box;\n"
                        "BENCHMARK(name) { run(); }\nvoid f(float* x) {}"),
              ElementsAre("void f(float* x)"));
  EXPECT_THAT(functions("void declared(float* x);\nvoid f(float* x) { if (x) { for (;;) {} } }"),
              ElementsAre("void f(float* x)"));
}

TEST(Prototype, CommentsLiteralsAndDirectivesHoldNone) {
  EXPECT_THAT(functions("/* void a(float* x) {} */ // void b(float* x) {}\n"
                        "#define C void c(float* x) { \\\n }\nconst char* s = \"void d(float* x) {}\";\n"
                        "void /* e( */ f(float* /* in */ x, // the second:\n int n) {}"),
              ElementsAre("void f(float* x, int n)"));
}

TEST(Prototype, SaysTheLine) { EXPECT_EQ(functions_in("\n\nvoid\nf(float* x)\n{\n}\n").at(0).line, 4); }

TEST(Prototype, AnyTextHasAnAnswer) {
  const RandomSeed seed(54);
  std::mt19937_64 random(seed);
  const std::string_view parts[] = {"void ",       "f",
                                    "(",           ")",
                                    "{",           "}",
                                    "[",           "]",
                                    "<",           ">",
                                    ",",           "*",
                                    "::",          "const ",
                                    "=",           ";",
                                    "namespace ",  "extern \"C\" ",
                                    "template ",   "struct ",
                                    "/*",          "*/",
                                    "//",          "\n",
                                    "\"",          "'",
                                    "\\",          "#define ",
                                    "#ifndef X\n", "#endif\n",
                                    "float ",      "__attribute__",
                                    "%RANGE% ",    "1:2:3",
                                    "R\"(",        ">>",
                                    "&&"};
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (size_t n = random() % 40; n > 0; --n) text += parts[random() % std::size(parts)];
    SCOPED_TRACE(text);
    for (const Prototype& p : functions_in(text)) EXPECT_NE(p.name, "");
    for (const MacroDefault& m : macro_defaults(text)) EXPECT_NE(m.name, "");
    (void)range_comments(text);
  }
}

// What is never closed, and initialisers without end, cost their length and no more.
TEST(Prototype, LongTextsAreReadInTheirLength) {
  for (const char* part :
       {"a[]={1}", "(", "{", "namespace a {", "void f(int x", "<", "template<", "/*", "= {"}) {
    std::string text;
    while (text.size() < (1 << 18)) text += part;
    EXPECT_THAT(functions_in(text), IsEmpty()) << part;
  }
}

// --- macros with defaults ---

std::vector<std::string> defaults(std::string_view text) {
  std::vector<std::string> list;
  for (const MacroDefault& m : macro_defaults(text)) list.push_back(m.name + "=" + std::to_string(m.value));
  return list;
}

TEST(MacroDefaults, AreWhatAnIfndefDefines) {
  EXPECT_THAT(defaults("#ifndef MR\n#define MR 4\n#  define NR (16) // columns\n#define F(x) x\n#define KC "
                       "64 * 2\n#endif\n"
                       "#ifndef UNROLL\n#define UNROLL -1\n#endif\n#define OTHER 3\n"),
              ElementsAre("MR=4", "NR=16", "UNROLL=-1"));
  EXPECT_THAT(
      defaults(
          "#ifndef GUARD_H\n#define GUARD_H\n#define VERSION 3\n#ifndef T\n#define T 8\n#else\n#define E 1\n"
          "#endif\n#endif\n"),
      ElementsAre("T=8"));
  EXPECT_THAT(defaults("// #ifndef A\n#ifdef B\n#define B 2\n#endif\n#if 1\n#define C 2\n#endif\n"),
              IsEmpty());
}

// --- comments that declare knobs ---

std::string ranges(std::string_view text) {
  const Result<std::vector<RangeComment>> found = range_comments(text);
  if (!found) return found.message();
  std::string list;
  for (const RangeComment& r : *found) {
    EXPECT_EQ((r.to - r.from) % r.step, 0);
    list += str(list.empty() ? "" : "; ", r.line, " ", r.macro, " ", r.label, " ", r.from, "..", r.to, " by ",
                r.step);
  }
  return list;
}

TEST(RangeComments, AreReadAsTheFormsDocumentationSays) {
  EXPECT_EQ(ranges("// %RANGE% TUNE_ITEMS_PER_THREAD ipt 7:24:1\n// %RANGE% TUNE_THREADS tpb 128:1024:32\n"),
            "1 TUNE_ITEMS_PER_THREAD ipt 7..24 by 1; 2 TUNE_THREADS tpb 128..1024 by 32");
  EXPECT_EQ(ranges("// %RANGE% TUNE_BIAS bif -16:16:4\r\n"), "1 TUNE_BIAS bif -16..16 by 4");
  EXPECT_EQ(ranges("//%RANGE%\tA\ta\t0:10:4"), "1 A a 0..8 by 4")
      << "both ends, where a step reaches the second";
  EXPECT_EQ(ranges("/* knobs:\n * %RANGE% A a 1:1:1\n * %RANGE% B b 2:4:2 */ int x;"),
            "2 A a 1..1 by 1; 3 B b 2..4 by 2");
  EXPECT_EQ(ranges("/* %RANGE% A a 0:1:1*/"), "1 A a 0..1 by 1");
  EXPECT_EQ(ranges("const char* s = \"// %RANGE% A a broken\";\nint RANGE = 5 % 2; // RANGE A a 1:2:1\n"), "")
      << "in comments only";
  EXPECT_EQ(ranges("int f(); // %RANGE% A a 1:2:1"), "1 A a 1..2 by 1");
}

TEST(RangeComments, WhatIsWrongIsOneLineWithItsPlace) {
  const struct {
    const char *text, *message;
  } cases[] = {
      {"\n// %RANGE% A a 1:2\n", "line 2: %RANGE% A: expected START:END:STEP"},
      {"// %RANGE% A 1:2:1\n", "line 1: %RANGE%: expected MACRO LABEL START:END:STEP, found \" A 1:2:1\""},
      {"// %RANGE% A a 1:2:1 more\n", "expected MACRO LABEL START:END:STEP"},
      {"// %RANGE%\n", "expected MACRO LABEL START:END:STEP, found \"\""},
      {"// %RANGE% 3x a 1:2:1\n", "the name of a macro"},
      {"// %RANGE% A a 5:2:1\n", "an end that is not below the start"},
      {"// %RANGE% A a 1:2:0\n", "a step above 0"},
      {"// %RANGE% A a 1:2:-1\n", "a step above 0"},
      {"// %RANGE% A a 1:2.5:1\n", "expected START:END:STEP"},
      {"// %RANGE% A a 1:99999999999999999999:1\n", "expected START:END:STEP"},
      {"// %RANGE% A a 1:2:1:1\n", "expected START:END:STEP"},
      {"// %RANGE% A a 1:2:1\n\n// %RANGE% A b 1:4:1\n", "line 3: %RANGE% A: it stands in line 1 already"},
  };
  for (const auto& c : cases) {
    const Result<std::vector<RangeComment>> found = range_comments(c.text);
    EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(found.message(), HasSubstr(c.message));
    EXPECT_EQ(found.message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace tuner
