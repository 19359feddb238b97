// conv2d_nchw_cuda: when it applies, and random configs on odd shapes, emulated, against the oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

Conv2dWorkload conv2d(int64_t ic, int64_t size, int64_t oc, int64_t kernel) {
  Conv2dWorkload w;
  w.in_channels = ic;
  w.in_height = w.in_width = size;
  w.out_channels = oc;
  w.kernel_height = w.kernel_width = kernel;
  return w;
}

TEST(Conv2dNchwCuda, DeclinesWithTheReason) {
  const Target cpu = *parse_target("llvm -mcpu=haswell");
  Conv2dWorkload w = conv2d(4, 8, 4, 3);
  EXPECT_EQ(conv2d_nchw_cuda().supports(w, cpu).reason, "needs a CUDA target, got " + cpu.name());
  EXPECT_TRUE(conv2d_nchw_cuda().supports(w, gpu()).yes);
  w.groups = 2;
  EXPECT_EQ(conv2d_nchw_cuda().supports(w, gpu()).reason, "needs groups = 1, got 2");
  EXPECT_EQ(conv2d_nchw_cuda().supports(MatmulWorkload{}, gpu()).reason, "serves conv2d, got matmul");
}

// Two parts of the input channels, and the kernel that adds them up.
TEST(Conv2dNchwCuda, LoopsOfOneConfig) {
  Conv2dWorkload w = conv2d(16, 7, 32, 3);
  w.padding = {1, 1, 1, 1};
  w.bias = true;
  w.activation = Activation::kRelu;
  EXPECT_EQ(kernels_of(conv2d_nchw_cuda(), w,
                       "double_buffer=0 inner_f=2 inner_x=7 inner_y=1 keep_rows=1 kernel_outer=0 "
                       "layout_weight=0 min_blocks=1 pixels_in_warp=0 split_ic=2 threads_f=16 threads_x=1 "
                       "threads_y=8 tile_ic=8 tile_kh=3 tile_kw=3 unroll_ic=1 unroll_kh=1 vthread_f=1 "
                       "vthread_x=1"),
            R"(
workspace acc.partial 12544 bytes
kernel conv2d_acc_partial(data, weight, acc.partial) grid (1, 2, 1) block (128, 1, 1)
  shared padded float32[1, 8, 10, 9] at 0
  shared weight.packed float32[1, 1, 8, 3, 3, 32] layout pad:2 at 2880
  allocate acc.partial.register float32[1, 1, 1, 7, 2] register
  unrolled ow.init in 0..7
    unrolled oc.init in 0..2
      acc.partial.register[0, 0, 0, ow.init, oc.init] = 0
  block
    allocate data.ahead float32[6] register
    unrolled round in 0..6
      data.ahead[round] = select(round*128 + tx < 720 && (round*128 + tx)//9%10 >= 1 && (round*128 + tx)//9%10 < 8 && (round*2 + tx)%9 >= 1 && (round*2 + tx)%9 < 8, data[0, by*8 + (round*128 + tx)//90, (round*128 + tx)//9%10 - 1, (round*2 + tx)%9 - 1], 0)
    unrolled round in 0..6
      if round*128 + tx < 720
        padded[0, (round*128 + tx)//90, (round*128 + tx)//9%10, (round*2 + tx)%9] = data.ahead[round]
  for strip.outer in 0..3
    unrolled strip.inner in 0..3
      unrolled row_round in 0..2
        weight.packed[0, 0, (strip.outer*24 + strip.inner*8 + tx%8)//9, (strip.outer*2 + (strip.inner*8 + tx%8)//3)%3, (strip.inner*2 + tx%8)%3, row_round*16 + tx//8] = weight[row_round*16 + tx//8, by*8 + (strip.outer*24 + strip.inner*8 + tx%8)//9, (strip.outer*2 + (strip.inner*8 + tx%8)//3)%3, (strip.inner*2 + tx%8)%3]
  barrier shared
  reduce ic_group in 0..8
    unrolled reduce kh in 0..3
      allocate padded.register float32[1, 1, 1, 9] register
      unrolled i3 in 0..9
        padded.register[0, 0, 0, i3] = padded[0, ic_group, tx//16 + kh, i3]
      unrolled reduce kw in 0..3
        allocate weight.packed.register float32[1, 1, 1, 1, 1, 2] register
        vectorized lane in 0..2
          weight.packed.register[0, 0, 0, 0, 0, lane] = weight.packed[0, 0, ic_group, kh, kw, tx%16*2 + lane]
        unrolled ow in 0..7
          unrolled oc in 0..2
            acc.partial.register[0, 0, 0, ow, oc] = acc.partial.register[0, 0, 0, ow, oc] + padded.register[0, 0, 0, ow + kw] * weight.packed.register[0, 0, 0, 0, 0, oc]
  if tx//16 < 7
    unrolled x in 0..7
      vectorized lane in 0..2
        acc.partial[by, 0, tx//16, x, tx%16*2 + lane] = acc.partial.register[0, 0, 0, x, lane]
kernel conv2d_out(bias, out, acc.partial) grid (14, 1, 1) block (32, 4, 1)
  if bx%2*4 + ty < 7
    allocate acc float32[1, 1, 1, 1] register
    acc[0, 0, 0, 0] = 0
    unrolled reduce ic.outer in 0..2
      acc[0, 0, 0, 0] = acc[0, 0, 0, 0] + acc.partial[ic.outer, 0, bx//2, bx%2*4 + ty, tx]
    out[0, tx, bx//2, bx%2*4 + ty] = max(acc[0, 0, 0, 0] + bias[tx], 0)
)");
}

// 288 weights and 100 pixels for 128 threads: nobody is left out of the first, and what is loaded for both is
// under way before the guarded store of one.
TEST(Conv2dNchwCuda, AllThreadsLoadBothTilesBeforeTheFirstStore) {
  Conv2dWorkload w;
  w.in_channels = 2, w.in_height = w.in_width = 8, w.out_channels = 32;
  w.kernel_height = w.kernel_width = 3;
  w.padding = {1, 1, 1, 1};
  EXPECT_THAT(
      kernels_of(conv2d_nchw_cuda(), w,
                 "double_buffer=0 inner_f=2 inner_x=4 inner_y=2 keep_rows=1 kernel_outer=0 layout_weight=1 "
                 "min_blocks=1 pixels_in_warp=0 split_ic=1 threads_f=16 threads_x=2 threads_y=4 tile_ic=1 "
                 "tile_kh=3 tile_kw=3 unroll_ic=1 unroll_kh=0 vthread_f=1 vthread_x=1"),
      ::testing::HasSubstr(R"(
      allocate weight.ahead float32[3] register
      allocate data.ahead float32[] register
      data.ahead[] = select(tx < 100 && tx//10 >= 1 && tx//10 < 9 && tx%10 >= 1 && tx%10 < 9, data[0, step, tx//10 - 1, tx%10 - 1], 0)
      unrolled strip in 0..3
        weight.ahead[strip] = select(strip*4 + tx//32 < 9, weight[tx%32, step, (strip*4 + tx//32)//3, (strip + tx//32)%3], 0)
      if tx < 100
        padded[0, 0, tx//10, tx%10] = data.ahead[]
      unrolled strip in 0..3
        if strip*4 + tx//32 < 9
          weight.packed[0, 0, 0, (strip*4 + tx//32)//3, (strip + tx//32)%3, tx%32] = weight.ahead[strip]
    barrier shared
)"));
}

TEST(Conv2dNchwCuda, SchedulesReplayFromTheirText) {
  Conv2dWorkload w = conv2d(24, 14, 40, 3);
  w.padding = {1, 1, 1, 1};
  w.bias = true;
  w.constant = {"weight"};
  expect_gpu_schedules_replay(conv2d_nchw_cuda(), w, gpu(), 8, 1);
}

TEST(Conv2dNchwCuda, DefaultIsValidForAnyShape) {
  for (const int64_t stride : {1, 2})
    for (const int64_t channels : {1, 3, 64, 2048})
      for (const int64_t size : {1, 2, 5, 7, 56})
        for (const int64_t kernel : {1, 3, 7}) {
          const char* arch = size % 2 == 0 ? "sm_75" : "sm_90a";
          Conv2dWorkload w = conv2d(channels, size, channels == 3 ? 1 : channels, kernel);
          w.padding = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
          w.stride = {stride, stride};
          if (!validate(w).is_ok()) continue;
          SCOPED_TRACE(str(Workload(w).key(), " on ", arch));
          const auto instance = conv2d_nchw_cuda().apply(w, gpu(arch));
          ASSERT_TRUE(instance.is_ok()) << instance.message();
          const ConfigSpace& space = (*instance)->space();
          const auto program = (*instance)->instantiate(space.at(space.default_index()));
          ASSERT_TRUE(program.is_ok()) << program.message();
          const auto lowered = lower_gpu(*program);
          ASSERT_TRUE(lowered.is_ok()) << lowered.message();
        }
}

// Kernels and strides for which only small parts fit shared memory.
TEST(Conv2dNchwCuda, DefaultIsValidForHugeKernels) {
  for (const auto& [size, kernel, stride, dilation] :
       {std::array<int64_t, 4>{224, 16, 16, 1}, {512, 32, 32, 1}, {300, 100, 1, 1}, {300, 11, 4, 9}}) {
    Conv2dWorkload w = conv2d(3, size, 8, kernel);
    w.stride = {stride, stride};
    w.dilation = {dilation, dilation};
    SCOPED_TRACE(Workload(w).key());
    const auto instance = conv2d_nchw_cuda().apply(w, gpu("sm_75"));
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    const auto program = (*instance)->instantiate(space.at(space.default_index()));
    ASSERT_TRUE(program.is_ok()) << program.message();
    const auto lowered = lower_gpu(*program);
    ASSERT_TRUE(lowered.is_ok()) << lowered.message();
    for (const GpuKernel& kernel : lowered->kernels) EXPECT_LE(kernel.shared_bytes, 64 << 10);
  }
}

TEST(Conv2dNchwCuda, LargeSpaceForALargeShape) {
  Conv2dWorkload w = conv2d(512, 7, 512, 3);
  w.padding = {1, 1, 1, 1};
  const auto instance = conv2d_nchw_cuda().apply(w, gpu("sm_80"));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  EXPECT_GE((*instance)->space().size(), 10'000u);
}

TEST(Conv2dNchwCuda, RandomConfigsOnOddShapes) {
  Conv2dWorkload same = conv2d(19, 7, 40, 3);
  same.padding = {1, 1, 1, 1};
  same.bias = same.residual = true;
  same.activation = Activation::kRelu;
  Conv2dWorkload strided = conv2d(5, 17, 9, 3);
  strided.stride = {2, 1};
  strided.padding = {0, 1, 1, 2};
  strided.batch = 2;
  Conv2dWorkload dilated = conv2d(6, 15, 34, 5);
  dilated.dilation = {2, 1};
  dilated.kernel_width = 2;
  dilated.in_width = 9;
  for (const Conv2dWorkload& w :
       {conv2d(1, 1, 1, 1), conv2d(3, 2, 1, 2), conv2d(40, 6, 70, 1), same, strided, dilated}) {
    expect_gpu_configs_right(conv2d_nchw_cuda(), w, gpu(), 5, 1);
    Conv2dWorkload packed = w;
    packed.constant = {"weight"};
    expect_gpu_configs_right(conv2d_nchw_cuda(), packed, gpu(), 5, 1);
  }
}

TEST(Conv2dNchwCuda, SmallImagesWithManyChannelsInParts) {
  Conv2dWorkload w = conv2d(128, 7, 32, 3);
  w.padding = {1, 1, 1, 1};
  w.batch = 2;
  w.bias = true;
  expect_gpu_configs_right(conv2d_nchw_cuda(), w, gpu("sm_80"), 3, 4);
}

}  // namespace
}  // namespace tuner
