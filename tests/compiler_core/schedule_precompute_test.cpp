// precompute: stages made of a constant alone go to the packing entry.
#include <gtest/gtest.h>

#include "compiler_core/oracle/oracle.h"
#include "tests/compiler_core/programs.h"

namespace tuner {
namespace {

using testing::loops;

// y[i] = x[i] * b[i], b[i] = a[i] + 1, a[i] = w[i] * w[i]; the second reader of a where wanted.
Program twice_derived(bool a_read_again = false) {
  te::Builder t("derived");
  const Buffer x = t.input("x", {3}), w = t.constant("w", {3});
  const Buffer a = t.compute("a", {3}, [&](const te::Indices& i) { return load(w, i) * load(w, i); });
  const Buffer b = t.compute("b", {3}, [&](const te::Indices& i) { return load(a, i) + 1; });
  t.compute("y", {3},
            [&](const te::Indices& i) {
              const Expr product = load(x, i) * load(b, i);
              return a_read_again ? product + load(a, i) : product;
            },
            BufferRole::kOutput, {"i"});
  return t.finish();
}

TEST(SchedulePrecompute, WhatIsMadeOfAConstantMovesToThePackingEntry) {
  Schedule s(twice_derived());
  s.precompute(s.tensor("b"));
  EXPECT_EQ("\n" + to_text(*s.finish()), R"(
kernel derived(input x float32[3], packed b float32[3], output y float32[3])
  for i in 0..3
    y[i] = x[i] * b[i]
packing derived_pack(constant w float32[3], packed b float32[3])
  allocate a float32[3]
  for i0 in 0..3
    a[i0] = w[i0] * w[i0]
  for i0 in 0..3
    b[i0] = a[i0] + 1
)");
  EXPECT_EQ(s.trace(), "precompute(b)\n");
  std::vector<std::vector<double>> args = {{1, 2, 3}, {4, 5, 6}, {}};
  ASSERT_TRUE(interpret(*s.finish(), args).is_ok());
  EXPECT_EQ(args[2], (std::vector<double>{17, 52, 111}));
}

TEST(SchedulePrecompute, AConstantThatIsReadElsewhereStaysAnArgument) {
  te::Builder t("twice");
  const Buffer x = t.input("x", {3}), w = t.constant("w", {3});
  const Buffer a = t.compute("a", {3}, [&](const te::Indices& i) { return load(w, i) * 2; });
  t.compute(
      "y", {3}, [&](const te::Indices& i) { return load(a, i) * load(w, i) + load(x, i); },
      BufferRole::kOutput);
  Schedule twice(t.finish());
  twice.precompute(twice.tensor("a"));
  const Result<Program> program = twice.finish();
  ASSERT_TRUE(program.is_ok()) << program.message();
  std::string names;
  for (const Buffer& arg : program->args) names += arg->name + " ";
  EXPECT_EQ(names, "x w a y ");
  std::vector<std::vector<double>> args = {{1, 2, 3}, {4, 5, 6}, {}};
  ASSERT_TRUE(interpret(*program, args).is_ok());
  EXPECT_EQ(args[2], (std::vector<double>{33, 52, 75}));
}

TEST(SchedulePrecompute, APackedCopyOfWhatWasComputedIsPrecomputedWhole) {
  Schedule s(twice_derived());
  const Tensor b = s.tensor("b");
  const Tensor packed = s.pack(b, {{0, 2}, {0, 2, true}});
  s.inline_compute(b);
  s.precompute(packed);
  EXPECT_EQ("\n" + to_text(s.program().packing->body), R"(
allocate a float32[3]
for i0 in 0..3
  a[i0] = w[i0] * w[i0]
for p0 in 0..2
  for p1 in 0..2
    b.packed[p0, p1] = select(p0*2 + p1 < 3, a[p0*2 + p1] + 1, 0)
)");
}

std::string refusal(const Program& program, const char* tensor) {
  Schedule s(program);
  s.precompute(s.tensor(tensor));
  return s.finish().message();
}

TEST(SchedulePrecompute, RefusesWhatIsNotMadeOfOneConstant) {
  EXPECT_EQ(refusal(twice_derived(true), "b"), "precompute(b): it reads a, which is read elsewhere too");
  EXPECT_EQ(refusal(twice_derived(), "y"), "precompute(y): y is an argument (output)");
  EXPECT_EQ(refusal(testing::dense(2, 3, 4), "C"),
            "precompute(C): it reads A, which is an argument (input), not a constant");
  EXPECT_EQ(refusal(testing::two_stages(4), "t"),
            "precompute(t): it reads x, which is an argument (input), not a constant");
  te::Builder none("none");
  const Buffer one = none.compute("one", {2}, [&](const te::Indices&) { return float_imm(1); });
  none.compute(
      "y", {2}, [&](const te::Indices& i) { return load(one, i); }, BufferRole::kOutput);
  EXPECT_EQ(refusal(none.finish(), "one"), "precompute(one): it reads no constant");
  te::Builder two("two");
  const Buffer v = two.constant("v", {2}), w = two.constant("w", {2});
  const Buffer sum = two.compute("sum", {2}, [&](const te::Indices& i) { return load(v, i) + load(w, i); });
  two.compute(
      "y", {2}, [&](const te::Indices& i) { return load(sum, i); }, BufferRole::kOutput);
  EXPECT_EQ(refusal(two.finish(), "sum"), "precompute(sum): it reads two constants, v and w");
}

TEST(SchedulePrecompute, RefusesAStageInsideTheLoopsOfItsReader) {
  Schedule s(twice_derived());
  s.compute_at(s.tensor("b"), s.axes(s.tensor("y"))[0]);
  s.precompute(s.tensor("b"));
  EXPECT_EQ(s.finish().message(),
            "precompute(b): b is computed inside the loops of its reader; precompute before compute_at");
}

}  // namespace
}  // namespace tuner
