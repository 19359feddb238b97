// parallel, vectorize, vectorize_rows, unroll, bind: how loops run; and traces, which say it all again.
#include "tests/compiler_core/programs.h"

namespace tuner {
namespace {

using testing::Doubling;
using testing::loops;

TEST(ScheduleAnnotate, LoopsSayHowTheyRun) {
  Schedule s(testing::matmul(4, 8, 3));
  const Tensor c = s.tensor("C");
  const auto [m, n] = s.axes<2>(c);
  const auto [k] = s.reduce_axes<1>(c);
  s.reorder({m, k, n});
  s.parallel(m);
  s.unroll(k);
  s.vectorize(n);
  EXPECT_EQ(loops(s), R"(
parallel m in 0..4
  unrolled reduce k in 0..3
    vectorized n in 0..8
      C[m, n] += A[m, k] * B[k, n], from 0 when k == 0
)");
}

TEST(ScheduleAnnotate, LanesOfAReduction) {
  Schedule s(testing::matmul(4, 8, 3));
  const Tensor c = s.tensor("C");
  const auto [k] = s.reduce_axes<1>(c);
  s.decompose_reduction(c, k);
  s.vectorize(k);
  EXPECT_EQ(loops(s), R"(
for m in 0..4
  for n in 0..8
    C[m, n] = 0
    vectorized reduce k in 0..3
      C[m, n] += A[m, k] * B[k, n]
)");
}

TEST(ScheduleAnnotate, RowsOfATileOfVectors) {
  Doubling p(40);
  const auto [row, lane] = p.s.split(p.i, 16);
  p.s.vectorize(lane);
  p.s.vectorize_rows(row);
  EXPECT_EQ(loops(p.s), R"(
vector_rows i.outer in 0..3
  vectorized i.inner in 0..16
    if i.outer*16 + i.inner < 40
      y[i.outer*16 + i.inner] = x[i.outer*16 + i.inner] * 2
)");
}

TEST(ScheduleAnnotate, RefusesRowsThatMakeNoTile) {
  const auto refusal = [](void (*rewrite)(Schedule&, Axis m, Axis n, Axis k)) {
    Schedule s(testing::matmul(4, 17, 3));
    const Tensor c = s.tensor("C");
    const auto [m, n] = s.axes<2>(c);
    rewrite(s, m, n, s.reduce_axes<1>(c)[0]);
    return s.finish().message();
  };
  EXPECT_EQ(refusal([](Schedule& s, Axis m, Axis, Axis) { s.vectorize_rows(m); }),
            "vectorize_rows(m): not directly around a vectorized loop");
  EXPECT_EQ(refusal([](Schedule& s, Axis m, Axis n, Axis k) {
              s.reorder({m, k, n});
              s.vectorize(n);
              s.vectorize_rows(m);
            }),
            "vectorize_rows(m): not directly around a vectorized loop");
  EXPECT_EQ(refusal([](Schedule& s, Axis m, Axis n, Axis k) {
              s.reorder({m, k, n});
              s.vectorize(n);
              s.vectorize_rows(k);
            }),
            "vectorize_rows(k): a reduce axis; its iterations add to the same element");
  EXPECT_EQ(refusal([](Schedule& s, Axis m, Axis n, Axis k) {
              s.reorder({k, n, m});
              s.vectorize(m);
              s.vectorize_rows(n);
            }),
            "vectorize_rows(n): has 17 iterations; at most 16, split it");
  EXPECT_EQ(refusal([](Schedule& s, Axis m, Axis n, Axis k) {
              s.reorder({k, m, n});
              s.vectorize(n);
              s.vectorize_rows(m);
              s.reorder({m, k});
            }),
            "reorder({m, k}): m is vector_rows; reorder before");
}

TEST(ScheduleAnnotate, ThreadAxesOfAGpu) {
  Doubling p(64);
  const auto [block, thread] = p.s.split(p.i, 32);
  p.s.bind(block, LoopKind::kBlockX);
  p.s.bind(thread, LoopKind::kThreadX);
  EXPECT_EQ(loops(p.s), R"(
blockIdx.x i.outer in 0..2
  threadIdx.x i.inner in 0..32
    y[i.outer*32 + i.inner] = x[i.outer*32 + i.inner] * 2
)");
}

std::string refusal(void (*rewrite)(Schedule&, Axis m, Axis n, Axis k)) {
  Schedule s(testing::matmul(4, 8, 3));
  const Tensor c = s.tensor("C");
  const auto [m, n] = s.axes<2>(c);
  rewrite(s, m, n, s.reduce_axes<1>(c)[0]);
  return s.finish().message();
}

TEST(ScheduleAnnotate, RefusesWhatWouldRaceOrCannotBeDone) {
  EXPECT_EQ(refusal([](Schedule& s, Axis, Axis n, Axis) { s.vectorize(n); }),
            "vectorize(n): not innermost; reorder it inside first");
  EXPECT_EQ(refusal([](Schedule& s, Axis, Axis, Axis k) { s.vectorize(k); }),
            "vectorize(k): a reduce axis whose iterations may start C; decompose_reduction first");
  EXPECT_EQ(refusal([](Schedule& s, Axis, Axis n, Axis) { s.parallel(n); }),
            "parallel(n): inside loop m; only an outermost loop may be parallel");
  EXPECT_EQ(refusal([](Schedule& s, Axis m, Axis n, Axis k) {
              s.reorder({k, m, n});
              s.parallel(k);
            }),
            "parallel(k): a reduce axis; its iterations add to the same element");
  EXPECT_EQ(refusal([](Schedule& s, Axis m, Axis, Axis) {
              s.unroll(m);
              s.unroll(m);
            }),
            "unroll(m): is unrolled already");
  EXPECT_EQ(refusal([](Schedule& s, Axis m, Axis n, Axis) {
              s.bind(m, LoopKind::kThreadX);
              s.bind(n, LoopKind::kThreadX);
            }),
            "bind(n, threadIdx.x): m on the same path is bound to threadIdx.x already");
  EXPECT_EQ(refusal([](Schedule& s, Axis m, Axis, Axis) { s.bind(m, LoopKind::kUnrolled); }),
            "bind(m, unrolled): unrolled is not a thread axis");
  EXPECT_EQ(refusal([](Schedule& s, Axis, Axis, Axis) { s.unroll(Axis{}); }),
            "unroll((none)): the axis handle is empty");
}

TEST(ScheduleAnnotate, CountsAxesBeforeHandingThemOut) {
  Schedule s(testing::matmul(4, 8, 3));
  const auto [a, b, c] = s.axes<3>(s.tensor("C"));
  EXPECT_EQ(c.var, nullptr);
  EXPECT_EQ(s.finish().message(), "axes<3>(C): the stage has 2 spatial axes of its own; expected 3");
}

TEST(ScheduleAnnotate, RefusesABufferThatIsNotThere) {
  Schedule s(testing::matmul(4, 8, 3));
  s.tensor("D");
  EXPECT_EQ(s.finish().message(), "tensor(D): no buffer of the Program has this name");
}

// Every primitive once.
Schedule scheduled(const Program& program) {
  Schedule s(program);
  const Tensor out = s.tensor("out"), conv = s.tensor("conv"), pad = s.tensor("data_pad");
  s.pack(s.tensor("weight"), {{0, 4}, {1}, {2}, {3}, {0, 4, true}});
  s.cache_read(s.tensor("bias"), MemoryScope::kRegister, out);
  const auto [n, oc, oh, ow] = s.axes<4>(out);
  const auto [oc_outer, oc_inner] = s.split(oc, 4);
  const auto [ow_outer, ow_inner] = s.split(ow, 3);
  s.reorder({n, oc_outer, oh, ow_outer, ow_inner, oc_inner});
  const Axis outer = s.fuse({n, oc_outer, oh});
  const Tensor acc = s.cache_write(conv, MemoryScope::kRegister);
  s.inline_compute(conv);
  s.compute_at(acc, ow_outer);
  s.compute_at(pad, outer);
  const auto [an, aoc, aoh, aow] = s.inner_axes<4>(acc);
  const auto [ic, kh, kw] = s.reduce_axes<3>(acc);
  s.reorder({ic, kh, kw, an, aoh, aow, aoc});
  s.decompose_reduction(acc, ic);
  s.unroll(kw);
  s.unroll(aow);
  s.vectorize(aoc);
  s.parallel(outer);
  s.set_scope(pad, MemoryScope::kShared);
  return s;
}

TEST(ScheduleTrace, ReplaysToTheSameProgram) {
  const Program program =
      testing::conv2d({.ic = 3, .h = 7, .w = 9, .oc = 6, .kh = 3, .kw = 2, .stride = 2, .padding = 1});
  const Schedule s = scheduled(program);
  ASSERT_TRUE(s.finish().is_ok()) << s.finish().message();
  const Result<Program> again = replay(program, s.trace());
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(to_text(*again), to_text(s.program()));
}

TEST(ScheduleTrace, NamesTheCallsAndWhatTheyMade) {
  Doubling p(10);
  const auto [outer, inner] = p.s.split(p.i, 4);
  p.s.unroll(inner);
  p.s.fuse({outer});
  EXPECT_EQ(p.s.trace(),
            "split(i, 4) -> i.outer, i.inner\nunroll(i.inner)\nfuse({i.outer}) -> i.outer.fused\n");
}

TEST(ScheduleTrace, ABadLineIsNamed) {
  const Program p = Doubling::program(10);
  EXPECT_EQ(replay(p, "split(i, 4)\nspilt(i.inner, 2)").message(),
            "line 2 \"spilt(i.inner, 2)\": no primitive is called \"spilt\"");
  EXPECT_EQ(replay(p, "split(i)").message(), "line 1 \"split(i)\": split takes 2 arguments, found 1");
  EXPECT_EQ(replay(p, "split(i, x)").message(), "line 1 \"split(i, x)\": expected a number, found \"x\"");
  EXPECT_EQ(replay(p, "double_buffer(y, i, both)").message(),
            "line 1 \"double_buffer(y, i, both)\": expected registers or direct, found \"both\"");
  EXPECT_EQ(replay(p, "unroll(q)").message(),
            "line 1 \"unroll(q)\": axis(q): no axis, or more than one, has this name; tensor:axis tells them "
            "apart");
  EXPECT_EQ(replay(p, "split(i, 0)").message(),
            "line 1 \"split(i, 0)\": split(i, 0): factor must be at least 1");
}

}  // namespace
}  // namespace tuner
