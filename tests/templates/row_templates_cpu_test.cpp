// Templates on rows for CPUs: the loops of one config each, and random configs on odd shapes.
#include <gmock/gmock.h>

#include "templates/registry/registry.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

struct Case {
  const AnyTemplate& (*of)();
  Workload (*workload)(int64_t rows, int64_t columns);
};

const Case kCases[] = {
    {softmax_cpu,
     [](int64_t r, int64_t c) -> Workload {
       return SoftmaxWorkload{r, c};
     }},
    {layer_norm_cpu,
     [](int64_t r, int64_t c) -> Workload {
       return LayerNormWorkload{r, c};
     }},
    {rms_norm_cpu,
     [](int64_t r, int64_t c) -> Workload {
       return RmsNormWorkload{r, c};
     }},
    {reduce_cpu,
     [](int64_t r, int64_t c) -> Workload {
       return ReduceWorkload{r, c, RowReduction::kMean};
     }},
    {reduce_cpu,
     [](int64_t r, int64_t c) -> Workload {
       return ReduceWorkload{r, c, RowReduction::kMax};
     }},
    {reduce_cpu,
     [](int64_t r, int64_t c) -> Workload {
       return ReduceWorkload{r, c, RowReduction::kMin};
     }},
    {transpose_cpu,
     [](int64_t r, int64_t c) -> Workload {
       return TransposeWorkload{r, c};
     }},
    {elementwise_cpu,
     [](int64_t r, int64_t c) -> Workload {
       return ElementwiseWorkload{r, c, true, true, true, Activation::kRelu};
     }},
    {elementwise_cpu,
     [](int64_t r, int64_t c) -> Workload {
       return ElementwiseWorkload{r, c, false, true};
     }},
};

TEST(RowTemplatesCpu, RandomConfigsOnOddShapes) {
  uint64_t seed = 1;
  for (const Case& c : kCases)
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {1, 17}, {3, 33}, {5, 1}, {19, 70}, {2, 300}, {1, 1000}, {37, 5}})
      for (const Target& target : {cpu(512, 32), cpu(256, 16, 2), cpu(128, 16, 3)})
        ASSERT_NO_FATAL_FAILURE(expect_configs_right(c.of(), c.workload(rows, columns), target, 2, seed++));
}

std::string loops_of(const AnyTemplate& t, const Workload& w, const char* config) {
  const auto instance = t.apply(w, cpu(512, 32, 2));
  if (!instance) return instance.message();
  const Result<Program> program = (*instance)->instantiate(config_from_text(config).value());
  return program ? "\n" + to_text(*program) : program.message();
}

// Long rows of which the next ones are asked for: right, also where nothing follows; short rows have no such
// config.
TEST(RowTemplatesCpu, SoftmaxAsksForTheNextRows) {
  const Target target = cpu(512, 32);
  const auto instance = softmax_cpu().apply(SoftmaxWorkload{5, 1500}, target);
  const Config config = config_from_text("vectors=2 rows=2 in_registers=0 prefetch_rows=1").value();
  const Result<Program> program = (*instance)->instantiate(config);
  ASSERT_TRUE(program.is_ok()) << program.message();
  // 2 rows of 1500 columns are 93 steps of 32.
  EXPECT_THAT(to_text(*program),
              ::testing::HasSubstr("prefetch(x[i.outer*2 + i, j.outer*32 + j.inner.outer.ahead*16 + 2976])"));
  expect_configs_right(softmax_cpu(), SoftmaxWorkload{5, 1500}, target, 12, 1);
  const auto rows_are_short = softmax_cpu().apply(SoftmaxWorkload{5, 1000}, target);
  EXPECT_FALSE((*rows_are_short)->instantiate(config).is_ok());
}

TEST(RowTemplatesCpu, SoftmaxLoops) {
  EXPECT_EQ(
      loops_of(softmax_cpu(), SoftmaxWorkload{6, 100}, "vectors=2 rows=2 in_registers=0 prefetch_rows=0"), R"(
kernel softmax(input x float32[6, 100], output out float32[6, 100])
  parallel i.outer in 0..3
    allocate row_scale float32[2] register
    allocate row_sum float32[2] register
    allocate exps float32[2, 100]
    allocate row_max float32[2] register
    for i in 0..2
      allocate row_max.partial float32[32, 1] register
      row_max[i] = -inf
      for i.init in 0..1
        vectorized j.inner.init in 0..32
          row_max.partial[j.inner.init, 0] = -inf
      reduce j.outer in 0..4
        for i_1 in 0..1
          vectorized j.inner in 0..32
            if j.outer*32 + j.inner < 100
              row_max.partial[j.inner, 0] max= x[i.outer*2 + i, j.outer*32 + j.inner]
      vectorized reduce j.inner in 0..32
        row_max[i] max= row_max.partial[j.inner, 0]
    for i in 0..2
      for j.outer in 0..4
        vectorized j.inner in 0..32
          if j.outer*32 + j.inner < 100
            exps[i, j.outer*32 + j.inner] = exp(x[i.outer*2 + i, j.outer*32 + j.inner] - row_max[i])
    for i in 0..2
      allocate row_sum.partial float32[32, 1] register
      row_sum[i] = 0
      for i.init in 0..1
        vectorized j.inner.init in 0..32
          row_sum.partial[j.inner.init, 0] = 0
      reduce j.outer in 0..4
        for i_1 in 0..1
          vectorized j.inner in 0..32
            if j.outer*32 + j.inner < 100
              row_sum.partial[j.inner, 0] += exps[i, j.outer*32 + j.inner]
      vectorized reduce j.inner in 0..32
        row_sum[i] += row_sum.partial[j.inner, 0]
    for i in 0..2
      row_scale[i] = 1 / row_sum[i]
    for i.inner in 0..2
      for j.outer in 0..4
        vectorized j.inner in 0..32
          if j.outer*32 + j.inner < 100
            out[i.outer*2 + i.inner, j.outer*32 + j.inner] = exps[i.inner, j.outer*32 + j.inner] * row_scale[i.inner]
)");
}
TEST(RowTemplatesCpu, RmsNormLoops) {
  EXPECT_EQ(loops_of(rms_norm_cpu(), RmsNormWorkload{4, 64}, "vectors=2 rows=2"), R"(
kernel rms_norm(input x float32[4, 64], input gamma float32[64], output out float32[4, 64])
  parallel i.outer in 0..2
    allocate inverse_root float32[2] register
    allocate squares float32[2] register
    for i in 0..2
      allocate squares.partial float32[32, 1] register
      squares[i] = 0
      for i.init in 0..1
        vectorized j.inner.init in 0..32
          squares.partial[j.inner.init, 0] = 0
      reduce j.outer in 0..2
        for i_1 in 0..1
          vectorized j.inner in 0..32
            squares.partial[j.inner, 0] += x[i.outer*2 + i, j.outer*32 + j.inner] * x[i.outer*2 + i, j.outer*32 + j.inner]
      vectorized reduce j.inner in 0..32
        squares[i] += squares.partial[j.inner, 0]
    for i in 0..2
      inverse_root[i] = 1 / sqrt(squares[i] / 64 + 1e-05)
    for i.inner in 0..2
      for j.outer in 0..2
        vectorized j.inner in 0..32
          out[i.outer*2 + i.inner, j.outer*32 + j.inner] = x[i.outer*2 + i.inner, j.outer*32 + j.inner] * inverse_root[i.inner] * gamma[j.outer*32 + j.inner]
)");
}
TEST(RowTemplatesCpu, ReduceLoops) {
  EXPECT_EQ(loops_of(reduce_cpu(), ReduceWorkload{2, 1000}, "vectors=2 rows=1 blocks=2 ahead=0"), R"(
kernel reduce(input x float32[2, 1000], output out float32[2])
  allocate acc.partial float32[2, 2]
  parallel j.outer.i.fused in 0..4
    allocate acc.partial.partial float32[32, 1, 1] register
    acc.partial[j.outer.i.fused//2, j.outer.i.fused%2] = 0
    for i.init in 0..1
      for j.outer.init in 0..1
        vectorized j.inner.inner.init in 0..32
          acc.partial.partial[j.inner.inner.init, 0, 0] = 0
    reduce j.inner.outer in 0..16
      for i in 0..1
        for j.outer in 0..1
          vectorized j.inner.inner in 0..32
            if j.inner.outer*32 + j.inner.inner < 500
              acc.partial.partial[j.inner.inner, 0, 0] += x[j.outer.i.fused%2, j.outer.i.fused//2*500 + j.inner.outer*32 + j.inner.inner]
    vectorized reduce j.inner.inner in 0..32
      acc.partial[j.outer.i.fused//2, j.outer.i.fused%2] += acc.partial.partial[j.inner.inner, 0, 0]
  for i in 0..2
    allocate acc float32[1] register
    for i_1 in 0..1
      reduce j.outer in 0..2
        acc[0] += acc.partial[j.outer, i], from 0 when j.outer == 0
    out[i] = acc[0]
)");
}
// A step is two lines; 1 KiB lies eight steps ahead, in the next row at a row's end.
TEST(RowTemplatesCpu, ReduceLoopsThatAskAhead) {
  EXPECT_EQ(loops_of(reduce_cpu(), ReduceWorkload{1030, 256}, "vectors=2 rows=1 blocks=1 ahead=1"), R"(
kernel reduce(input x float32[1030, 256], output out float32[1030])
  parallel i.outer in 0..1030
    allocate acc float32[1] register
    for i in 0..1
      allocate acc.partial float32[32, 1] register
      acc[0] = 0
      for i.init in 0..1
        unrolled j.inner.init.outer in 0..2
          vectorized j.inner.init.inner in 0..16
            acc.partial[j.inner.init.outer*16 + j.inner.init.inner, 0] = 0
      reduce j.outer in 0..8
        unrolled j.inner.outer.ahead in 0..2
          prefetch(x[i.outer, (j.outer + 8)*32 + j.inner.outer.ahead*16])
        for i_1 in 0..1
          unrolled j.inner.outer in 0..2
            vectorized j.inner.inner in 0..16
              acc.partial[j.inner.outer*16 + j.inner.inner, 0] += x[i.outer, j.outer*32 + j.inner.outer*16 + j.inner.inner]
      vectorized reduce j.inner in 0..32
        acc[0] += acc.partial[j.inner, 0]
    for i.inner in 0..1
      out[i.outer] = acc[0]
)");
}
TEST(RowTemplatesCpu, OnlyWholeRowsOfLargeMatricesAskAhead) {
  const auto most_ahead = [](const ReduceWorkload& w, bool in_blocks) {
    const auto instance = reduce_cpu().apply(w, cpu(512, 32, 2));
    EXPECT_TRUE(instance.is_ok()) << instance.message();
    int64_t most = -1;
    for (uint64_t i = 0; instance.is_ok() && i < (*instance)->space().size(); ++i) {
      const Config c = (*instance)->space().at(i);
      if ((c.at("blocks") > 1) == in_blocks) most = std::max(most, c.at("ahead"));
    }
    return most;
  };
  EXPECT_EQ(most_ahead({2, 1 << 18}, false), 16);
  EXPECT_EQ(most_ahead({2, 1 << 18}, true), 0);
  EXPECT_EQ(most_ahead({1024, 256}, false), 0) << "1 MiB is near";
}
TEST(RowTemplatesCpu, TransposeLoops) {
  EXPECT_EQ(loops_of(transpose_cpu(), TransposeWorkload{100, 64},
                     "block_rows=2 block_columns=1 order=1 order_in_block=0"),
            R"(
kernel transpose(input x float32[100, 64], output out float32[64, 100])
  parallel j.outer.i.outer.fused in 0..16
    for i.inner.outer in 0..2
      for j.inner.outer in 0..1
        vector_rows j.inner.inner in 0..16
          vectorized i.inner.inner in 0..16
            if j.outer.i.outer.fused%4*32 + i.inner.outer*16 + i.inner.inner < 100
              out[j.outer.i.outer.fused//4*16 + j.inner.inner, j.outer.i.outer.fused%4*32 + i.inner.outer*16 + i.inner.inner] = x[j.outer.i.outer.fused%4*32 + i.inner.outer*16 + i.inner.inner, j.outer.i.outer.fused//4*16 + j.inner.inner]
)");
}
TEST(RowTemplatesCpu, ElementwiseLoops) {
  EXPECT_EQ(loops_of(elementwise_cpu(), ElementwiseWorkload{2, 1000, false, true}, "vectors=4"), R"(
kernel elementwise(input x float32[2, 1000], input bias float32[1000], output out float32[2, 1000])
  parallel i.j.outer.outer.fused in 0..16
    for j.outer.inner in 0..2
      vectorized j.inner in 0..64
        if i.j.outer.outer.fused%8*128 + j.outer.inner*64 + j.inner < 1000
          out[i.j.outer.outer.fused//8, i.j.outer.outer.fused%8*128 + j.outer.inner*64 + j.inner] = x[i.j.outer.outer.fused//8, i.j.outer.outer.fused%8*128 + j.outer.inner*64 + j.inner] + bias[i.j.outer.outer.fused%8*128 + j.outer.inner*64 + j.inner]
)");
}

TEST(RowTemplatesCpu, DeclineWhatTheyDoNotServe) {
  const Target gpu = parse_target("cuda -arch=sm_80").value();
  for (const Case& c : kCases) {
    EXPECT_EQ(c.of().supports(c.workload(2, 2), gpu).reason, "needs a CPU target, got cuda -arch=sm_80");
  }
  SoftmaxWorkload half{2, 2};
  half.dtype = DType::kFloat16;
  EXPECT_EQ(softmax_cpu().supports(Workload(half), cpu(512, 32)).reason, "needs float32, got float16");
}

}  // namespace
}  // namespace tuner
