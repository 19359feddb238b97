// Skewing: over what windows read, in place of over their taps.
#include "compiler_core/lower/lower.h"
#include "tests/compiler_core/programs.h"

namespace tuner {
namespace {

using testing::loops;

// y[o] = sum over k of x[o*stride + k*dilation] * w[k]
Program windows(int64_t outputs, int64_t taps, int64_t stride, int64_t dilation) {
  te::Builder b("windows");
  const Buffer x = b.input("x", {(outputs - 1) * stride + (taps - 1) * dilation + 1}),
               w = b.input("w", {taps});
  b.reduce("y", {outputs}, {{"k", taps}}, ReduceOp::kSum,
           [&](const te::Indices& i, const te::Indices& r) {
             return load(x, {i[0] * stride + r[0] * dilation}) * load(w, {r[0]});
           },
           BufferRole::kOutput, {"o"});
  return b.finish();
}

// The schedule of `windows` with both axes skewed, and what is asked for behind it.
struct Skewed {
  Skewed(int64_t outputs, int64_t taps, int64_t stride, int64_t dilation)
      : s(windows(outputs, taps, stride, dilation)), y(s.tensor("y")), o(s.axes<1>(y)[0]) {
    const Axis k = s.reduce_axes<1>(y)[0];
    s.reorder({k, o});
    s.decompose_reduction(y, k);
    r = s.skew(k, o, stride, dilation);
  }
  Schedule s;
  Tensor y;
  Axis o, r;
};

TEST(ScheduleSkew, GoesOverWhatIsRead) {
  Skewed p(3, 4, 1, 1);
  EXPECT_EQ(p.s.extent(p.r), 6);
  EXPECT_EQ(loops(p.s), R"(
for o.init in 0..3
  y[o.init] = 0
reduce k.o.skewed in 0..6
  for o in 0..3
    if k.o.skewed >= o && k.o.skewed <= o + 3
      y[o] += x[k.o.skewed] * w[k.o.skewed - o]
)");
}

TEST(ScheduleSkew, AStrideSkipsAndADilationDivides) {
  Skewed p(3, 2, 2, 3);
  EXPECT_EQ(p.s.extent(p.r), 8);
  p.s.unroll(p.r);
  p.s.unroll(p.o);
  const Result<Program> lowered = lower(p.s.program(), 1000);
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  // Element 3 is the second tap of output 0, 4 the first of output 2, 5 the second of output 1.
  EXPECT_EQ("\n" + to_text(lowered->body), R"(
y[0] = 0
y[1] = 0
y[2] = 0
y[0] = y[0] + x[0] * w[0]
y[1] = y[1] + x[2] * w[0]
y[0] = y[0] + x[3] * w[1]
y[2] = y[2] + x[4] * w[0]
y[1] = y[1] + x[5] * w[1]
y[2] = y[2] + x[7] * w[1]
)");
}

// Padding that is read through a select is asked about once a row, not once a tap.
TEST(ScheduleSkew, AGuardOfARowStandsOutsideTheOutputs) {
  Schedule s(testing::conv2d({.h = 4, .w = 5, .kh = 3, .kw = 3, .padding = 1}));
  s.inline_compute(s.tensor("data_pad"));
  const Tensor conv = s.tensor("conv");
  const auto [n, oc, oh, ow] = s.axes<4>(conv);
  const auto [ic, kh, kw] = s.reduce_axes<3>(conv);
  s.reorder({n, oc, ic, kw, kh, oh, ow});
  s.decompose_reduction(conv, ic);
  s.skew(kh, oh, 1, 1);
  s.skip_zeros(conv);
  const std::string text = loops(s);
  EXPECT_NE(text.find(R"(
      reduce kw in 0..3
        reduce kh.oh.skewed in 0..6
          if kh.oh.skewed >= 1 && kh.oh.skewed < 5
            for oh in 0..4
              if kh.oh.skewed >= oh && kh.oh.skewed <= oh + 2
                for ow in 0..5
                  if ow + kw >= 1 && ow + kw < 6
                    conv[0, 0, oh, ow] += data[0, 0, kh.oh.skewed - 1, ow + kw - 1] * weight[0, 0, kh.oh.skewed - oh, kw]
)"),
            std::string::npos)
      << text;
}

TEST(ScheduleSkew, RefusesWhatItCannotWalk) {
  const auto refusal = [](auto call) {
    Schedule s(windows(3, 4, 1, 1));
    const Tensor y = s.tensor("y");
    const Axis o = s.axes<1>(y)[0], k = s.reduce_axes<1>(y)[0];
    call(s, o, k);
    return s.finish().message();
  };
  EXPECT_EQ(refusal([](Schedule& s, Axis o, Axis k) { s.skew(k, o, 1, 1); }),
            "skew(k, o, 1, 1): k must be around o");
  EXPECT_EQ(refusal([](Schedule& s, Axis o, Axis k) {
              s.reorder({k, o});
              s.decompose_reduction(s.tensor("y"), k);
              s.skew(k, o, 0, 1);
            }),
            "skew(k, o, 0, 1): stride and dilation must be at least 1");
  EXPECT_EQ(refusal([](Schedule& s, Axis o, Axis k) { s.skew(o, k, 1, 1); }),
            "skew(o, k, 1, 1): needs a reduce axis around a spatial one");
  EXPECT_EQ(refusal([](Schedule& s, Axis o, Axis k) {
              s.reorder({k, o});
              s.skew(k, o, 1, 1);
            }),
            "skew(k, o, 1, 1): the first term also initialises a sum inside; decompose_reduction first");
  EXPECT_EQ(refusal([](Schedule& s, Axis o, Axis k) {
              s.reorder({k, o});
              s.unroll(o);
              s.skew(k, o, 1, 1);
            }),
            "skew(k, o, 1, 1): o is unrolled; do this before");
  EXPECT_EQ(refusal([](Schedule& s, Axis o, Axis k) {
              const auto [outer, inner] = s.split(o, 2);
              s.reorder({k, outer, inner});
              s.skew(k, inner, 1, 1);
            }),
            "skew(k, o.inner, 1, 1): the axes must be directly nested; other loops stand between them");
  EXPECT_EQ(
      refusal([](Schedule& s, Axis o, Axis k) {
        s.reorder({k, o});
        s.decompose_reduction(s.tensor("y"), k);
        s.skew(k, o, int64_t{1} << 60, 1);
      }),
      "skew(k, o, 1152921504606846976, 1): its nest would have more than 2^60 iterations, which indices "
      "cannot count");
}

}  // namespace
}  // namespace tuner
