// Random shapes, tiles and schedules: compiled code equals the oracle on the same Program, and the oracle on
// the unscheduled one.
#include "compiler_core/schedule/schedule.h"
#include "compiler_core/te/te.h"
#include "tests/compiler_core/kernel_testing.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using namespace tuner::testing;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  bool coin() { return between(0, 1) == 1; }

 private:
  std::mt19937_64 engine_;
};

// Equal answers of a schedule, compiled on one and on three threads, and of the math.
void check(const Program& unscheduled, const Schedule& s, uint32_t seed) {
  const Result<Program> scheduled = s.finish();
  ASSERT_TRUE(scheduled) << scheduled.message() << "\nseed " << seed << "\n" << s.trace();
  std::vector<std::vector<double>> truth = random_args(unscheduled, seed), oracle = truth;
  ASSERT_TRUE(interpret(unscheduled, truth));
  const Status interpreted = interpret(*scheduled, oracle);
  ASSERT_TRUE(interpreted) << interpreted.message() << "\nseed " << seed << "\n"
                           << s.trace() << to_text(*scheduled);
  for (const int threads : {1, 3}) {
    std::vector<std::vector<double>> found = random_args(unscheduled, seed);
    const Status ran = run_compiled(*scheduled, found, host_target(), threads);
    ASSERT_TRUE(ran) << ran.message() << "\nseed " << seed << "\n" << s.trace();
    for (size_t i = 0; i < truth.back().size(); ++i) {
      ASSERT_NEAR(oracle.back()[i], truth.back()[i], 1e-9) << "schedule, seed " << seed << "\n" << s.trace();
      ASSERT_NEAR(found.back()[i], truth.back()[i], 1e-4 * (1 + std::fabs(truth.back()[i])))
          << "code, element " << i << ", seed " << seed << "\n"
          << s.trace() << to_text(*scheduled);
    }
  }
}

Program matmul(int64_t m, int64_t n, int64_t k) {
  te::Builder b("matmul");
  const Buffer a = b.input("A", {m, k}), w = b.constant("B", {k, n}), bias = b.input("bias", {n});
  const Buffer c = b.reduce("C", {m, n}, {{"k", k}}, ReduceOp::kSum, [&](auto i, auto r) {
    return load(a, {i[0], r[0]}) * load(w, {r[0], i[1]});
  });
  b.compute(
      "out", {m, n}, [&](auto i) { return max(load(c, i) + load(bias, {i[1]}), float_imm(0)); },
      BufferRole::kOutput);
  return b.finish();
}

TEST(CodegenRandom, TiledMatmul) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/40)) {
    Random random(seed);
    const int64_t m = random.between(1, 30), n = random.between(1, 50), k = random.between(1, 12);
    const Program unscheduled = matmul(m, n, k);
    Schedule s(unscheduled);
    const Tensor c = s.tensor("C"), out = s.tensor("out");
    const int64_t nr = random.between(1, 40);
    if (random.coin()) s.pack(s.tensor("B"), {{1, nr}, {0}, {1, nr, true}});
    const auto [i, j] = s.axes<2>(out);
    const SplitAxes rows = s.split(i, random.between(1, 7)), columns = s.split(j, nr);
    s.reorder({rows.outer, columns.outer, rows.inner, columns.inner});
    if (random.coin()) s.parallel(random.coin() ? s.fuse({rows.outer, columns.outer}) : rows.outer);
    s.vectorize(columns.inner);
    // Where the tile loops stand now: the innermost outer loop is the one just outside rows.inner.
    const std::vector<Axis> now = s.axes(out);
    s.compute_at(c, now[now.size() - 3]);
    s.set_scope(c, MemoryScope::kRegister);
    const auto [ci, cj] = s.inner_axes<2>(c);
    const auto [ck] = s.reduce_axes<1>(c);
    Axis k_inner = ck, k_outer = ck;
    if (random.coin()) {
      const SplitAxes parts = s.split(ck, random.between(1, 5));
      k_outer = parts.outer;
      k_inner = parts.inner;
      s.reorder({k_outer, k_inner, ci, cj});
      if (random.coin()) s.unroll(k_inner);
    } else {
      s.reorder({ck, ci, cj});
    }
    s.decompose_reduction(c, k_outer);
    s.unroll(ci);
    s.vectorize(cj);
    check(unscheduled, s, seed);
  }
}

TEST(CodegenRandom, PaddedConvolution) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/40)) {
    Random random(seed);
    const int64_t channels = random.between(1, 4), h = random.between(3, 9), w = random.between(3, 9),
                  filters = random.between(1, 20), kernel = random.between(1, 3),
                  stride = random.between(1, 2), pad = random.between(0, 2);
    te::Builder b("conv");
    const Buffer x = b.input("x", {channels, h, w}), f = b.constant("f", {filters, channels, kernel, kernel});
    const Buffer padded = b.compute("padded", {channels, h + 2 * pad, w + 2 * pad}, [&](auto i) {
      const Expr inside = i[1] >= pad && i[1] < h + pad && i[2] >= pad && i[2] < w + pad;
      return select(inside, load(x, {i[0], i[1] - pad, i[2] - pad}), float_imm(0));
    });
    const int64_t oh = (h + 2 * pad - kernel) / stride + 1, ow = (w + 2 * pad - kernel) / stride + 1;
    const Buffer sum = b.reduce("sum", {filters, oh, ow}, {{"c", channels}, {"kh", kernel}, {"kw", kernel}},
                                ReduceOp::kSum, [&](auto i, auto r) {
                                  return load(padded, {r[0], i[1] * stride + r[1], i[2] * stride + r[2]}) *
                                         load(f, {i[0], r[0], r[1], r[2]});
                                });
    b.compute(
        "out", {filters, oh, ow}, [&](auto i) { return max(load(sum, i), float_imm(0)); },
        BufferRole::kOutput);
    const Program unscheduled = b.finish();

    Schedule s(unscheduled);
    const Tensor conv = s.tensor("sum"), out = s.tensor("out");
    if (random.coin()) s.inline_compute(s.tensor("padded"));
    const int64_t lanes = random.between(1, 20);
    if (random.coin()) s.pack(s.tensor("f"), {{0, lanes}, {1}, {2}, {3}, {0, lanes, true}});
    const auto [oc, y, z] = s.axes<3>(out);
    const SplitAxes c = s.split(oc, lanes), p = s.split(y, random.between(1, 3)),
                    q = s.split(z, random.between(1, 5));
    s.reorder({c.outer, p.outer, q.outer, p.inner, q.inner, c.inner});
    if (random.coin()) s.parallel(s.fuse({c.outer, p.outer}));
    s.vectorize(c.inner);
    s.compute_at(conv, q.outer);
    s.set_scope(conv, MemoryScope::kRegister);
    const auto [co, cy, cx] = s.inner_axes<3>(conv);
    const auto [rc, rh, rw] = s.reduce_axes<3>(conv);
    s.reorder({rc, rh, rw, cy, cx, co});
    s.decompose_reduction(conv, rc);
    if (random.coin()) s.unroll(rw);
    s.unroll(cy);
    s.unroll(cx);
    s.vectorize(co);
    check(unscheduled, s, seed);
  }
}

}  // namespace
}  // namespace tuner
