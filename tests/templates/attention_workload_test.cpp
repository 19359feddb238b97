// The operator attention: its key, what it refuses, what it counts, and its math against the formula written
// out and against the operator of a network. workload_json_test has its job file.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler_core/oracle/oracle.h"
#include "templates/workload/tolerance.h"
#include "tests/random_seed.h"
#include "tests/templates/attention_workloads.h"

namespace tuner {
namespace {

AttentionWorkload bert() {
  return {.heads = 12, .kv_heads = 12, .queries = 128, .keys = 128, .size = 64, .v_size = 64, .scale = 0.125};
}

TEST(AttentionWorkload, HasAKey) {
  AttentionWorkload w = bert();
  EXPECT_EQ(Workload(w).key(), "v1 attention b=1 h=12 g=12 i=128 s=128 d=64 e=64 scale=0.125 dtype=float32");
  w.causal = true;
  w.mask = "1x1x128";
  w.q_layout = "BSHD:36:12";
  EXPECT_EQ(Workload(w).key(),
            "v1 attention b=1 h=12 g=12 i=128 s=128 d=64 e=64 scale=0.125 causal=1 "
            "hidden=-3.4028234663852886e+38 mask=1x1x128 q_layout=BSHD:36:12 dtype=float32");
  const Result<Workload> read = workload_from_key(Workload(w).key());
  ASSERT_TRUE(read.is_ok()) << read.message();
  EXPECT_EQ(read->key(), Workload(w).key());
}

TEST(AttentionWorkload, RefusesWhatHasNoMeaning) {
  const auto refusal = [](const std::function<void(AttentionWorkload&)>& change) {
    AttentionWorkload w = bert();
    change(w);
    return validate(w).message();
  };
  EXPECT_EQ(refusal([](auto& w) { w.kv_heads = 5; }), "kv_heads: expected a divisor of heads = 12, found 5");
  EXPECT_EQ(refusal([](auto& w) { w.causal = true, w.keys = 127; }),
            "causal: expected at least as many keys as queries, found 127 and 128");
  EXPECT_EQ(
      refusal([](auto& w) { w.q_layout = "BSHD:12:0"; }),
      "q_layout: expected BHSD, BSHD, or BSHD:ROW:FIRST with 12 heads from FIRST on in a row of more, found "
      "BSHD:12:0");
  EXPECT_NE(refusal([](auto& w) { w.k_layout = "BSHD:36:25"; }), "");
  EXPECT_EQ(refusal([](auto& w) { w.out_layout = "BSHD:36:12"; }),
            "out_layout: expected BHSD or BSHD, found BSHD:36:12");
  EXPECT_EQ(refusal([](auto& w) { w.mask = "1x1"; }),
            "mask: expected none, or extents of batch, heads and queries such as 1x12x1, found 1x1");
  EXPECT_EQ(refusal([](auto& w) { w.bias = "1x3x1"; }),
            "bias: expected a divisor of 1, then 1 or 12, then 1 or 128, found 1x3x1");
  EXPECT_EQ(refusal([](auto& w) { w.dtype = DType::kFloat16; }), "dtype: expected float32, found float16");
}

TEST(AttentionWorkload, CountsItsWork) {
  AttentionWorkload w{.batch = 2, .heads = 6, .kv_heads = 3, .queries = 5, .keys = 7, .size = 4, .v_size = 8};
  EXPECT_EQ(Workload(w).flops(), 2 * 6 * 5 * 7 * (2 * (4 + 8) + 5));
  w.v_layout = "BSHD:12:2";  // of which three heads are read
  w.mask = "1x6x1";
  EXPECT_EQ(Workload(w).least_bytes(), 4.0 * (2 * 6 * 5 * (4 + 8) + 2 * 3 * 7 * (4 + 8) + 6 * 7));
  EXPECT_FALSE(Workload(w).memory_bound());
  EXPECT_EQ(Workload(w).shape_name(), "2x6x5x7x4");
}

// Places of elements, by hand.
struct Heads {
  const std::vector<double>& numbers;
  HeadLayout layout;
  int64_t heads, sequence, size;

  double at(int64_t b, int64_t h, int64_t s, int64_t d) const {
    const int64_t place = layout.row == 0 ? ((b * heads + h) * sequence + s) * size + d
                                          : ((b * sequence + s) * layout.row + layout.first + h) * size + d;
    return numbers[static_cast<size_t>(place)];
  }
};
double summand(const std::string& text, const std::vector<double>& numbers, const AttentionWorkload& w,
               int64_t b, int64_t h, int64_t i, int64_t s) {
  const auto [batch, heads, queries] = **score_summand(text);
  const int64_t row = ((b % batch) * heads + h % heads) * queries + i % queries;
  return numbers[static_cast<size_t>(row * w.keys + s)];
}

// One row of the result: of image b, head h, query i.
std::vector<double> plain_row(const AttentionWorkload& w, const std::vector<std::vector<double>>& args,
                              int64_t b, int64_t h, int64_t i) {
  const int64_t g = h / (w.heads / w.kv_heads);
  const Heads q{args[0], *head_layout_from_text(w.q_layout, w.heads), w.heads, w.queries, w.size},
      k{args[1], *head_layout_from_text(w.k_layout, w.kv_heads), w.kv_heads, w.keys, w.size},
      v{args[2], *head_layout_from_text(w.v_layout, w.kv_heads), w.kv_heads, w.keys, w.v_size};
  std::vector<double> weights, out(static_cast<size_t>(w.v_size));
  double sum = 0;
  for (int64_t s = 0; s < w.keys; ++s) {
    double x = 0;
    for (int64_t d = 0; d < w.size; ++d) x += q.at(b, h, i, d) * k.at(b, g, s, d);
    x *= w.scale;
    if (w.causal && s > i + w.keys - w.queries) x = double{w.hidden};
    size_t next = 3;
    if (w.mask != "none") x += summand(w.mask, args[next++], w, b, h, i, s);
    if (w.bias != "none") x += summand(w.bias, args[next++], w, b, h, i, s);
    weights.push_back(std::exp(x));
    sum += weights.back();
  }
  for (int64_t s = 0; s < w.keys; ++s)
    for (int64_t e = 0; e < w.v_size; ++e)
      out[static_cast<size_t>(e)] += weights[static_cast<size_t>(s)] / sum * v.at(b, g, s, e);
  return out;
}

TEST(AttentionWorkload, IsTheFormula) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/100)) {
    const AttentionWorkload w = testing::AttentionDraws(seed).workload(9, 7);
    SCOPED_TRACE(Workload(w).key());
    ASSERT_TRUE(validate(w).is_ok()) << validate(w).message();
    const Program math = Workload(w).compute();
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> value(-1, 1);
    std::vector<std::vector<double>> args(math.args.size());
    for (size_t a = 0; a + 1 < args.size(); ++a) {
      int64_t n = 1;
      for (const int64_t extent : math.args[a]->shape) n *= extent;
      for (int64_t k = 0; k < n; ++k) args[a].push_back(value(random));
    }
    ASSERT_TRUE(interpret(math, args).is_ok());
    const Heads out{args.back(), *head_layout_from_text(w.out_layout, w.heads), w.heads, w.queries, w.v_size};
    for (int64_t b = 0; b < w.batch; ++b)
      for (int64_t h = 0; h < w.heads; ++h)
        for (int64_t i = 0; i < w.queries; ++i) {
          const std::vector<double> expected = plain_row(w, args, b, h, i);
          for (int64_t e = 0; e < w.v_size; ++e)
            ASSERT_NEAR(out.at(b, h, i, e), expected[static_cast<size_t>(e)], 1e-12)
                << "out[" << b << ", " << h << ", " << i << ", " << e << "]";
        }
  }
}

// The operator of ONNX: heads that share keys, causal, a mask for all heads.
TEST(AttentionWorkload, IsTheOperatorOfANetwork) {
  AttentionWorkload w{.batch = 2, .heads = 6, .kv_heads = 3, .queries = 5, .keys = 5, .size = 4, .v_size = 3};
  w.scale = 0.5;
  w.causal = true;
  w.mask = "1x1x5";
  const auto network = program_from_text(
      "in=float32[2,6,5,4],float32[2,3,5,4],float32[2,3,5,3],float32[5,5] "
      "Attention(0,1,2,3){is_causal=1,scale=0.5f}");
  ASSERT_TRUE(network.is_ok()) << network.message();
  std::mt19937_64 random(first_seed(3));
  std::uniform_real_distribution<double> value(-1, 1);
  std::vector<std::vector<double>> args{std::vector<double>(240),
                                        std::vector<double>(120),
                                        std::vector<double>(90),
                                        std::vector<double>(25),
                                        {}};
  for (std::vector<double>& each : args)
    for (double& x : each) x = value(random);
  std::vector<std::vector<double>> others = args;
  ASSERT_TRUE(interpret(Workload(w).compute(), args).is_ok());
  ASSERT_TRUE(interpret(network->compute(), others).is_ok());
  ASSERT_EQ(args.back().size(), others.back().size());
  for (size_t k = 0; k < args.back().size(); ++k) ASSERT_NEAR(args.back()[k], others.back()[k], 1e-12) << k;
}

}  // namespace
}  // namespace tuner
