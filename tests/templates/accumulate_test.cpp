// "accumulate": every template of products adds to what out holds, in the order of the formula; interpreted,
// lowered and as machine code of this host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/compiled_template_check.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

struct Types {
  DType dtype = DType::kFloat32;
  std::optional<DType> out = {};
};
const Types kTypes[] = {{DType::kFloat32},
                        {DType::kBFloat16},
                        {DType::kBFloat16, DType::kBFloat16},
                        {DType::kFloat16},
                        {DType::kInt8}};

MatmulWorkload matmul(const Types& types, int64_t batch, int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w{.batch = batch, .m = m, .n = n, .k = k, .accumulate = true, .dtype = types.dtype};
  w.narrow_out = types.out;
  return w;
}

Conv2dWorkload conv(const Types& types, int64_t channels, int64_t size, int64_t out_channels,
                    int64_t kernel) {
  Conv2dWorkload w;
  w.in_channels = channels;
  w.in_height = size;
  w.in_width = size + 2;
  w.out_channels = out_channels;
  w.kernel_height = w.kernel_width = kernel;
  w.padding = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  w.accumulate = true;
  w.dtype = types.dtype;
  w.narrow_out = types.out;
  return w;
}

// All that serve it, here and on a CPU of tiles (interpreted there).
void expect_all_right(const Workload& w, int samples, uint32_t seed) {
  for (const Target& target :
       {cpu(256, 16), cpu(512, 32, /*threads=*/2), *parse_target("llvm -mcpu=graniterapids")}) {
    const auto serving = templates_for(w, target);
    ASSERT_TRUE(serving.is_ok()) << serving.message();
    for (const AnyTemplate* t : *serving) {
      SCOPED_TRACE(t->name());
      ASSERT_NO_FATAL_FAILURE(expect_configs_right(*t, w, target, samples, seed));
    }
  }
  for (const int threads : {1, 2})
    for (const Target& target : hosts(threads)) {
      const auto serving = templates_for(w, target);
      ASSERT_TRUE(serving.is_ok()) << serving.message();
      for (const AnyTemplate* t : *serving)
        if (t->name() != "matmul_tile_cpu") expect_code_right(*t, w, target, samples / 2, seed);
    }
}

TEST(Accumulate, Products) {
  for (const Types& types : kTypes) {
    expect_all_right(matmul(types, 1, 1, 1, 1), 2, 1);
    expect_all_right(matmul(types, 1, 7, 13, 29), 6, 2);
    expect_all_right(matmul(types, 3, 9, 37, 6), 6, 3);
    MatmulWorkload w = matmul(types, 1, 33, 50, 9);
    w.bias = true;
    w.activation = Activation::kRelu;
    w.transpose_a = w.transpose_b = true;
    w.constant = {"b"};
    expect_all_right(w, 6, 4);
  }
}

// Sums in blocks of k stay in a buffer of their own: out is read and written once.
TEST(Accumulate, ProductsInBlocksOfK) {
  MatmulWorkload w = matmul({}, 1, 20, 40, 2048);
  Target t = cpu(256, 16);
  t.l2_bytes = 64 << 10;
  const auto instance = matmul_cpu().apply(w, t);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  bool in_blocks = false;
  for (const KnobInfo& knob : (*instance)->space().knobs())
    in_blocks = in_blocks || (knob.name == "block_k" && knob.candidates.size() > 1);
  EXPECT_TRUE(in_blocks);
  expect_configs_right(matmul_cpu(), w, t, 6, 5);
}

TEST(Accumulate, Convolutions) {
  for (const Types& types : {Types{}, Types{DType::kBFloat16}, Types{DType::kInt8}}) {
    for (const int64_t kernel : {1, 3}) {
      Conv2dWorkload w = conv(types, 5, 7, 19, kernel);
      expect_all_right(w, 3, 6);
      w.bias = true;
      w.activation = Activation::kRelu;
      w.constant = {"weight"};
      expect_all_right(w, 3, 7);
      w.in_channels = 16;
      w.out_channels = 32;
      w.layout = w.out_layout = "NCHW16c";
      expect_all_right(w, 3, 8);
    }
    Conv2dWorkload depthwise = conv(types, 16, 7, 16, 3);
    depthwise.groups = 16;
    expect_all_right(depthwise, 3, 9);
  }
}

// An activation comes last: what is kept is never below zero, whatever was there.
TEST(Accumulate, TheActivationIsOfTheSumWithTheOldContent) {
  MatmulWorkload w = matmul({}, 1, 1, 3, 1);
  w.bias = true;
  w.activation = Activation::kRelu;
  std::vector<std::vector<double>> args = {{2}, {1, 1, 1}, {10, 10, 10}, {-5, -12, -13}};
  ASSERT_TRUE(interpret(Workload(w).compute(), args).is_ok());
  EXPECT_EQ(args.back(), (std::vector<double>{7, 0, 0}));
}

TEST(Accumulate, GpusDeclineInALine) {
  const auto serving = templates_for(matmul({}, 1, 64, 64, 64), *parse_target("cuda -arch=sm_90a"));
  EXPECT_THAT(
      serving.message(),
      HasSubstr(
          "matmul_cuda, matmul_tf32x3_cuda: has no accumulate yet: give the residual apart (\"residual\")"));
}

}  // namespace
}  // namespace tuner
