// Steps that run one after the other: how they read, and what schedules leave as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/oracle/oracle.h"
#include "compiler_core/schedule/schedule.h"
#include "compiler_core/te/te.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

// state[s, i] = x[s, i] + half of the state before; out = the last two states, one behind the other.
struct Filter {
  Program program() {
    te::Builder b("filter");
    const Buffer x = b.input("x", {5, 4});
    const Buffer state = b.declare("state", {5, 4});
    b.steps("s", 5, [&](const Expr& s) {
      const Buffer before = b.compute("before", {4}, [&](const auto& i) {
        return select(s < Expr(1), float_imm(0), load(state, {max(s - Expr(1), Expr(0)), i[0]}));
      });
      const Buffer half =
          b.compute("half", {4}, [&](const auto& i) { return load(before, i) * float_imm(0.5); });
      b.fill(state, {s}, [&](const auto& i) { return load(x, {s, i[0]}) + load(half, i); });
    });
    b.compute(
        "out", {2, 4},
        [&](const auto& i) {
          return load(state, {i[0] + Expr(3), i[1]});
        },
        BufferRole::kOutput);
    return b.finish();
  }
};

std::string refusal(Schedule s) { return s.finish().message(); }

TEST(ScheduleSteps, ReadAsALoopOfTheirOwn) {
  EXPECT_THAT(to_text(Filter().program()), HasSubstr("step s in 0..5\n"));
}

TEST(ScheduleSteps, RunInTheirOrder) {
  std::vector<std::vector<double>> args{{}, {}};
  for (const double step : {0, 1, 2, 3, 4}) args[0].insert(args[0].end(), 4, step);
  const Status ran = interpret(Filter().program(), args);
  ASSERT_TRUE(ran) << ran.message();
  // 0, 1, 2.5, 4.25, 6.125
  EXPECT_EQ(args[1], (std::vector<double>{4.25, 4.25, 4.25, 4.25, 6.125, 6.125, 6.125, 6.125}));
}

TEST(ScheduleSteps, TheirAxisStaysAsItIs) {
  const auto tried = [](const auto& call) {
    Schedule s(Filter().program());
    call(s, s.axis("s"));
    return refusal(std::move(s));
  };
  const std::string why = "s counts steps, which run one after the other";
  EXPECT_THAT(tried([](Schedule& s, Axis a) { s.parallel(a); }), HasSubstr(why));
  EXPECT_THAT(tried([](Schedule& s, Axis a) { s.unroll(a); }), HasSubstr(why));
  EXPECT_THAT(tried([](Schedule& s, Axis a) { s.split(a, 2); }), HasSubstr(why));
  EXPECT_THAT(tried([](Schedule& s, Axis a) { s.fuse({a}); }), HasSubstr(why));
}

// What a stage reads of the step before is gone where a later one is stored.
TEST(ScheduleSteps, WhatIsHandedOnIsNeitherInlinedNorMoved) {
  Schedule inlined(Filter().program());
  inlined.inline_compute(inlined.tensor("before"));
  EXPECT_THAT(refusal(std::move(inlined)), HasSubstr("before reads state of the last step of s"));
  Schedule moved(Filter().program());
  moved.compute_at(moved.tensor("before"), moved.axes<1>(moved.tensor("half"))[0]);
  EXPECT_THAT(refusal(std::move(moved)), HasSubstr("before reads state of the last step of s"));
}

// One that only reads its own step goes where it is read.
TEST(ScheduleSteps, OthersAreInlined) {
  Schedule s(Filter().program());
  s.inline_compute(s.tensor("half"));
  ASSERT_TRUE(s.finish()) << s.finish().message();
  EXPECT_EQ(to_text(s.program()).find("half"), std::string::npos);
  std::vector<std::vector<double>> args{std::vector<double>(20, 1), {}};
  ASSERT_TRUE(interpret(s.program(), args));
  EXPECT_EQ(args[1][7], 1.9375);
}

}  // namespace
}  // namespace tuner
