// skip_zeros: guards in place of selects that make a term 0: where they stand, and what is refused.
#include <limits>

#include "tests/compiler_core/programs.h"

namespace tuner {
namespace {

using testing::loops;

// A 3x3 convolution of a 4x5 image, padded by 1, whose padding is read through a select.
struct PaddedConvolution {
  PaddedConvolution() : s(testing::conv2d({.h = 4, .w = 5, .kh = 3, .kw = 3, .padding = 1})) {
    s.inline_compute(s.tensor("data_pad"));
    conv = s.tensor("conv");
  }
  Schedule s;
  Tensor conv;
};

TEST(ScheduleSkipZeros, AGuardStandsAtTheInnermostLoopItTests) {
  PaddedConvolution p;
  const auto [n, oc, oh, ow] = p.s.axes<4>(p.conv);
  const auto [ic, kh, kw] = p.s.reduce_axes<3>(p.conv);
  p.s.reorder({n, oc, oh, kh, ic, ow, kw});
  p.s.decompose_reduction(p.conv, kh);
  p.s.skip_zeros(p.conv);
  EXPECT_EQ(loops(p.s), R"(
allocate conv float32[1, 1, 4, 5]
for n in 0..1
  for oc in 0..1
    for oh in 0..4
      for ow.init in 0..5
        conv[0, 0, oh, ow.init] = 0
      reduce kh in 0..3
        if oh + kh >= 1 && oh + kh < 5
          reduce ic in 0..1
            for ow in 0..5
              reduce kw in 0..3
                if ow + kw >= 1 && ow + kw < 6
                  conv[0, 0, oh, ow] += data[0, 0, oh + kh - 1, ow + kw - 1] * weight[0, 0, kh, kw]
for n in 0..1
  for oc in 0..1
    for oh in 0..4
      for ow in 0..5
        out[0, 0, oh, ow] = max(conv[0, 0, oh, ow] + bias[0], 0)
)");
}

TEST(ScheduleSkipZeros, JoinsTheGuardsThatAreThereAndDropsWhatTheyProve) {
  PaddedConvolution p;
  const auto [n, oc, oh, ow] = p.s.axes<4>(p.conv);
  const auto [ic, kh, kw] = p.s.reduce_axes<3>(p.conv);
  p.s.split(ow, 3);
  p.s.decompose_reduction(p.conv, ic);
  p.s.skip_zeros(p.conv);
  const std::string text = loops(p.s);
  EXPECT_NE(text.find("          if ow.outer*3 + ow.inner < 5\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("select"), std::string::npos) << text;
}

TEST(ScheduleSkipZeros, ASumWithoutSelectsStaysAsItIs) {
  Schedule s(testing::matmul(2, 3, 4));
  const Tensor c = s.tensor("C");
  s.decompose_reduction(c, s.reduce_axes<1>(c)[0]);
  const std::string before = loops(s);
  s.skip_zeros(c);
  EXPECT_EQ(loops(s), before);
}

// A maximum over what is inside: what is outside is where it starts.
TEST(ScheduleSkipZeros, AMaximumSkipsWhatItStartsWith) {
  te::Builder b("longest");
  const Buffer x = b.input("x", {8});
  b.reduce("out", {4}, {{"k", 3}}, ReduceOp::kMax,
           [&](const te::Indices& i, const te::Indices& k) {
             const Expr at = i[0] * 2 + k[0];
             return select(at < 8, load(x, {at}), float_imm(-std::numeric_limits<double>::infinity()));
           },
           BufferRole::kOutput, {"i"});
  Schedule s(b.finish());
  const Tensor out = s.tensor("out");
  s.decompose_reduction(out, s.reduce_axes<1>(out)[0]);
  s.skip_zeros(out);
  EXPECT_EQ(loops(s), R"(
for i in 0..4
  out[i] = -inf
  reduce k in 0..3
    if i*2 + k < 8
      out[i] max= x[i*2 + k]
)");
}

// inf is not nothing to a maximum, nor -inf to a minimum: such terms stay.
TEST(ScheduleSkipZeros, OfAMaximumOnlyMinusInfinityIsNothing) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto skipped = [](ReduceOp op, double otherwise) {
    te::Builder b("extreme");
    const Buffer x = b.input("x", {8});
    b.reduce("out", {4}, {{"k", 3}}, op,
             [&](const te::Indices& i, const te::Indices& k) {
               const Expr at = i[0] * 2 + k[0];
               return select(at < 8, load(x, {at}), float_imm(otherwise));
             },
             BufferRole::kOutput, {"i"});
    Schedule s(b.finish());
    const Tensor out = s.tensor("out");
    s.decompose_reduction(out, s.reduce_axes<1>(out)[0]);
    s.skip_zeros(out);
    return loops(s).find("select") == std::string::npos;
  };
  EXPECT_TRUE(skipped(ReduceOp::kMax, -kInfinity));
  EXPECT_TRUE(skipped(ReduceOp::kMin, kInfinity));
  EXPECT_FALSE(skipped(ReduceOp::kMax, kInfinity));
  EXPECT_FALSE(skipped(ReduceOp::kMin, -kInfinity));
  EXPECT_FALSE(skipped(ReduceOp::kMax, 0));
  EXPECT_TRUE(skipped(ReduceOp::kSum, 0));
  EXPECT_FALSE(skipped(ReduceOp::kSum, -kInfinity));
}

TEST(ScheduleSkipZeros, RefusesWhatIsNoSumOrStillInitialisesItself) {
  PaddedConvolution p;
  Schedule early = p.s, copy = p.s;
  early.skip_zeros(early.tensor("conv"));
  EXPECT_EQ(early.finish().message(),
            "skip_zeros(conv): the first term of conv also initialises it; decompose_reduction first");
  copy.skip_zeros(copy.tensor("out"));
  EXPECT_EQ(copy.finish().message(), "skip_zeros(out): out is not a reduction");
  p.s.skip_zeros(p.s.tensor("data"));
  EXPECT_EQ(p.s.finish().message(), "skip_zeros(data): data is not computed in this Program");
}

}  // namespace
}  // namespace tuner
