// matmul_tf32x3_cuda: when it applies; random configs on odd shapes, emulated, against the oracle; long sums,
// and sums of tensor cores that cut off, within the tolerance of float32.
#include <gtest/gtest.h>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/sass/sass.h"
#include "compiler_core/codegen_cuda/sass/sass_text.h"
#include "templates/registry/registry.h"
#include "tests/templates/gpu_template_check.h"
#include "tests/templates/tensor_core_model.h"

namespace tuner {
namespace {

MatmulWorkload matmul(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m, w.n = n, w.k = k;
  return w;
}

TEST(MatmulTf32x3Cuda, DeclinesWithTheReason) {
  const auto reason = [](const MatmulWorkload& w, const Target& t) {
    return matmul_tf32x3_cuda().supports(w, t).reason;
  };
  const Target cpu = *parse_target("llvm -mcpu=haswell");
  EXPECT_EQ(reason(matmul(4, 4, 4), cpu), "needs a CUDA target, got " + cpu.name());
  MatmulWorkload half = matmul(4, 4, 4);
  half.dtype = DType::kFloat16;
  EXPECT_EQ(reason(half, gpu()), "needs float32, got float16");
  EXPECT_EQ(reason(matmul(4, 4, 15), gpu()), "needs k >= 16, got 15");
  EXPECT_EQ(reason(matmul(4, 4, 16), gpu("sm_75")), "needs sm_80 or later, got sm_75");
  EXPECT_EQ(reason(matmul(4, 1, 40), gpu()), "needs n >= 2, got 1");
  EXPECT_TRUE(matmul_tf32x3_cuda().supports(matmul(2, 2, 16), gpu("sm_80")).yes);
}

// It is tried beside the direct one, whose config stays the default, unless a job allows direct sums only.
TEST(MatmulTf32x3Cuda, IsAnAlgorithmOfItsOwn) {
  const auto names = [](std::string_view algorithms) {
    std::string all;
    const auto serving = templates_for(matmul(64, 64, 64), gpu("sm_80"), algorithms);
    EXPECT_TRUE(serving.is_ok()) << serving.message();
    for (const AnyTemplate* t : *serving) all += str(t->name(), " ");
    return all;
  };
  EXPECT_EQ(names(""), "matmul_cuda matmul_tf32x3_cuda ");
  EXPECT_EQ(names("direct"), "matmul_cuda ");
  EXPECT_EQ(names("tf32x3"), "matmul_tf32x3_cuda ");
}

TEST(MatmulTf32x3Cuda, DefaultIsValidForAnyShape) {
  for (const char* arch : {"sm_80", "sm_86", "sm_90a"})
    for (const int64_t m : {2, 7, 127, 100000})
      for (const int64_t n : {2, 13, 255, 4096})
        for (const int64_t k : {16, 40, 65536}) {
          const auto instance = matmul_tf32x3_cuda().apply(matmul(m, n, k), gpu(arch));
          ASSERT_TRUE(instance.is_ok()) << m << " " << n << " " << k << ": " << instance.message();
          const ConfigSpace& space = (*instance)->space();
          const auto program = (*instance)->instantiate(space.at(space.default_index()));
          ASSERT_TRUE(program.is_ok()) << m << " " << n << " " << k << ": " << program.message();
          const auto lowered = lower_gpu(*program);
          ASSERT_TRUE(lowered.is_ok()) << m << " " << n << " " << k << ": " << lowered.message();
        }
}

TEST(MatmulTf32x3Cuda, RandomConfigsOnOddShapes) {
  for (const auto& w : {matmul(2, 2, 17), matmul(7, 13, 29), matmul(16, 8, 16), matmul(133, 5, 48),
                        matmul(3, 140, 19), matmul(120, 150, 40), matmul(65, 34, 100)}) {
    expect_gpu_configs_right(matmul_tf32x3_cuda(), w, gpu(), 4, 1);
    MatmulWorkload packed = w;
    packed.constant = {"a", "b"};
    expect_gpu_configs_right(matmul_tf32x3_cuda(), packed, gpu(), 4, 1);
  }
}

TEST(MatmulTf32x3Cuda, EveryOperandForm) {
  for (int form = 0; form < 32; ++form) {
    MatmulWorkload w = matmul(form % 5 == 0 ? 37 : 40, form % 7 == 0 ? 51 : 72, form % 3 == 0 ? 45 : 96);
    w.transpose_a = (form & 1) != 0;
    w.transpose_b = (form & 2) != 0;
    w.bias = (form & 4) != 0;
    w.activation = (form & 8) != 0 ? Activation::kRelu : Activation::kNone;
    if (form % 4 == 0) w.constant = {form % 8 == 0 ? "a" : "b"};
    w.residual = form % 5 == 0;
    w.batch = (form & 16) != 0 ? 3 : 1;
    expect_gpu_configs_right(matmul_tf32x3_cuda(), w, gpu("sm_80"), 2, static_cast<uint32_t>(form));
  }
}

// In the emulator sums round to the nearest: what is left is the error of numbers in 22 bits.
TEST(MatmulTf32x3Cuda, LongSumsAreWithinTheToleranceOfFloat32) {
  for (const int64_t k : {1000, 4096})
    expect_gpu_configs_right(matmul_tf32x3_cuda(), matmul(33, 40, k), gpu(), 1, 1);
}

// The text of mma.tf32x3 (ir/intrinsics/mma.cpp) for one sum: 16 terms from zero, small products first, then
// an addition that rounds. `in_core`: on top of the sum instead.
float product(const TensorCore& core, const std::vector<float>& a, const std::vector<float>& b,
              bool in_core) {
  float c = 0;
  for (size_t k = 0; k < a.size(); k += 16) {
    std::vector<float> rest_a(16), rest_b(16);
    for (size_t i = 0; i < 16; ++i)
      rest_a[i] = a[k + i] - TensorCore::high(a[k + i]), rest_b[i] = b[k + i] - TensorCore::high(b[k + i]);
    float step = in_core ? c : 0;
    for (size_t i = 0; i < 16; i += core.width) step = core.sum(step, &rest_a[i], &b[k + i]);
    for (size_t i = 0; i < 16; i += core.width) step = core.sum(step, &a[k + i], &rest_b[i]);
    for (size_t i = 0; i < 16; i += core.width) step = core.sum(step, &a[k + i], &b[k + i]);
    c = in_core ? step : c + step;
  }
  return c;
}

// The worst of `samples` sums of k products, in tolerances. `least`: numbers are drawn from [least, 1).
double worst_error(const TensorCore& core, size_t k, int samples, float least, bool in_core) {
  const Tolerance tolerance = tolerance_of(matmul(2, 2, static_cast<int64_t>(k)));
  std::mt19937_64 rng(k);
  const auto draw = [&] {
    return least + (1 - least) * static_cast<float>(rng() >> 40) / static_cast<float>(1 << 24);
  };
  double worst = 0;
  for (int s = 0; s < samples; ++s) {
    std::vector<float> a((k + 15) / 16 * 16), b(a.size());
    double exact = 0;
    for (size_t i = 0; i < k; ++i) {
      a[i] = draw(), b[i] = draw();
      exact += static_cast<double>(a[i]) * b[i];
    }
    const double error = std::abs(product(core, a, b, in_core) - exact);
    worst = std::max(worst, error / (tolerance.absolute + tolerance.relative * std::abs(exact)));
  }
  return worst;
}

TEST(MatmulTf32x3Cuda, TensorCoresThatCutOffStayWithinTheTolerance) {
  for (const TensorCore& core : kTensorCores)
    for (const size_t k : {16, 17, 23, 40, 64, 128, 300, 1024, 4096, 16384}) {
      const int samples = static_cast<int>(std::max<size_t>(200, 400'000 / k));
      SCOPED_TRACE(str(core.width, " products at once, k = ", k));
      EXPECT_LE(worst_error(core, k, samples, -1, /*in_core=*/false), 0.6);
      EXPECT_LE(worst_error(core, k, samples / 10, 0, /*in_core=*/false), 0.6) << "sums that only grow";
    }
  // Sums on top of sums would not: each addition loses up to a last place, always towards zero.
  for (const TensorCore& core : kTensorCores)
    EXPECT_GT(worst_error(core, 1024, 20, 0, /*in_core=*/true), 1.5);
}

TEST(MatmulTf32x3Cuda, SchedulesReplayFromTheirText) {
  MatmulWorkload w = matmul(70, 56, 200);
  w.transpose_b = w.bias = true;
  w.constant = {"b"};
  expect_gpu_schedules_replay(matmul_tf32x3_cuda(), w, gpu(), 10, 1);
}

TEST(MatmulTf32x3Cuda, LargeSpaceForALargeShape) {
  const auto instance = matmul_tf32x3_cuda().apply(matmul(1024, 1024, 1024), gpu("sm_80"));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  EXPECT_GE((*instance)->space().size(), 10'000u);
}

// The loop of the default of a large product, every way round. An HMMA of tf32 keeps tensor cores busy for 8
// clocks on sm_80, for 4 and more on sm_90a: with a quarter of the instructions they have most to do.
// Four schedulers have warps of their own wherever there is work for those of all multiprocessors; smaller
// outputs may have more blocks in place of that.
TEST(MatmulTf32x3Cuda, WarpsComeInFoursForManyElements) {
  const auto others = [](int64_t n) {
    const Workload w = MatmulWorkload{.m = n, .n = n, .k = 512};
    const auto instance = matmul_tf32x3_cuda().apply(w, gpu());
    EXPECT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    std::mt19937_64 rng(1);
    int count = 0;
    for (int i = 0; i < 100; ++i) {
      const auto values = space.at(space.sample(rng)).values();
      count += values.at("warps_m") * values.at("warps_n") % 4 != 0 ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(others(512), 0);
  EXPECT_GT(others(256), 10);
}

TEST(MatmulTf32x3Cuda, DefaultKeepsTensorCoresBusy) {
  if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
  for (const char* const arch : {"sm_80", "sm_90a"})
    for (int form = 0; form < 4; ++form) {
      MatmulWorkload w = matmul(4096, 4096, 4096);
      w.transpose_a = (form & 1) != 0;
      w.transpose_b = (form & 2) == 0;
      SCOPED_TRACE(str(w.transpose_a ? "k, m; " : "m, k; ", w.transpose_b ? "n, k" : "k, n", " on ", arch));
      const auto instance = matmul_tf32x3_cuda().apply(w, gpu(arch));
      ASSERT_TRUE(instance.is_ok()) << instance.message();
      const ConfigSpace& space = (*instance)->space();
      const auto program = (*instance)->instantiate(space.at(space.default_index()));
      ASSERT_TRUE(program.is_ok()) << program.message();
      const auto artifact = compile_cuda(*program, gpu(arch), {.max_spill_bytes = 0});
      ASSERT_TRUE(artifact.is_ok()) << artifact.message();
      const auto codes = sass::read_kernel_code(artifact->binary);
      ASSERT_TRUE(codes.is_ok()) << codes.message();
      const sass::KernelCode& code = codes->front();
      EXPECT_TRUE(code.unknown.empty());
      const sass::Mix& loop = code.hot_mix();
      EXPECT_EQ(loop[sass::Op::kMma], 4 * 4 * 2 * 6) << "4 x 4 tiles, two steps of 16 terms";
      EXPECT_EQ(loop[sass::Op::kLdgsts], 8);
      EXPECT_GE(loop.mma_share(), w.transpose_b && !w.transpose_a ? 0.31 : 0.26) << sass::to_text(code);
    }
}

}  // namespace
}  // namespace tuner
