// The least time of a task, from what records tell of its machine.
#include "tuner/study/recorded_roofs.h"

#include <gtest/gtest.h>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

Target cpu() { return parse_target("llvm -mcpu=haswell -threads=1").value(); }
Workload matmul(int64_t m, int64_t n, int64_t k, const char* dtype = "float32") {
  return workload_from_key(str("v1 matmul b=1 m=", m, " n=", n, " k=", k,
                               " ta=0 tb=0 bias=0 act=none dtype=", dtype, " const=none"))
      .value();
}
Workload conv(int64_t kernel, int64_t stride, int64_t padding, const char* constant) {
  return workload_from_key(
             str("v1 conv2d n=1 ic=64 ih=7 iw=7 oc=64 kh=", kernel, " kw=", kernel, " stride=", stride, ",",
                 stride, " pad=", padding, ",", padding, ",", padding, ",", padding,
                 " dil=1,1 groups=1 bias=0 act=none dtype=float32 layout=NCHW const=", constant))
      .value();
}
double flops(const Workload& w) { return static_cast<double>(w.flops()); }
double bytes(const Workload& w) { return static_cast<double>(w.bytes()); }

TEST(RecordedRoofs, TheSlowerOfArithmeticAndMemoryIsTheBound) {
  RecordedRoofs roofs;
  const Workload cube = matmul(128, 128, 128), vector = matmul(1, 512, 512);
  EXPECT_EQ(roofs.bound_ns(cube, cpu()), 0) << "nothing was measured";
  roofs.add(cube, cpu(), 100, 50, 0, true);
  roofs.add(vector, cpu(), 100, 10, 0, true);
  EXPECT_DOUBLE_EQ(roofs.bound_ns(cube, cpu()), flops(cube) / 100);
  EXPECT_DOUBLE_EQ(roofs.bound_ns(vector, cpu()), bytes(vector) / 10);
  EXPECT_EQ(roofs.bound_ns(cube, parse_target("llvm -mcpu=znver4 -threads=1").value()), 0);
}

// A product of one row is bound by the memory that its weights lie in, not by arithmetic: 154 us, not 14.
TEST(RecordedRoofs, AProductOfOneRowTakesWhatItsWeightsTakeToRead) {
  RecordedRoofs roofs;
  roofs.add(matmul(64, 64, 64), cpu(), 150, 200, 0, true);
  roofs.add(matmul(512, 1024, 1024), cpu(), 150, 28, 0, true);
  const Workload row = matmul(1, 1024, 1024);
  EXPECT_DOUBLE_EQ(roofs.bound_ns(row, cpu()), bytes(row) / 28);
  EXPECT_GT(roofs.bound_ns(row, cpu()), 10 * flops(row) / 150);
}

TEST(RecordedRoofs, WhatAKernelReachedRaisesTheRoof) {
  RecordedRoofs roofs;
  const Workload w = matmul(128, 128, 128);
  roofs.add(w, cpu(), 100, 0, 0, true);
  roofs.add(w, cpu(), 100, 0, flops(w) / 120, true);
  EXPECT_DOUBLE_EQ(roofs.bound_ns(w, cpu()), flops(w) / 120);
  roofs.add(w, cpu(), 100, 0, flops(w) / 500, false);  // fewer products, so this is no rate of arithmetic
  EXPECT_DOUBLE_EQ(roofs.bound_ns(w, cpu()), flops(w) / 120);
  const Workload row = matmul(1, 512, 512);
  roofs.add(row, cpu(), 100, 10, bytes(row) / 13, true);
  EXPECT_DOUBLE_EQ(roofs.bound_ns(row, cpu()), bytes(row) / 13);
}

TEST(RecordedRoofs, ATaskBetweenTwoLevelsGetsTheFasterOne) {
  RecordedRoofs roofs;
  roofs.add(matmul(1, 64, 64), cpu(), 0, 200, 0, true);
  roofs.add(matmul(1, 512, 512), cpu(), 0, 20, 0, true);
  const Workload just_larger = matmul(1, 64, 100), far_larger = matmul(1, 64, 200);
  EXPECT_DOUBLE_EQ(roofs.bound_ns(just_larger, cpu()), bytes(just_larger) / 200);
  EXPECT_DOUBLE_EQ(roofs.bound_ns(far_larger, cpu()), bytes(far_larger) / 20);
  const Workload largest = matmul(1, 2048, 2048);
  EXPECT_DOUBLE_EQ(roofs.bound_ns(largest, cpu()), bytes(largest) / 20) << "no faster than what is smaller";
}

TEST(RecordedRoofs, ProductsThatMayBeLeftOutAreNotCounted) {
  RecordedRoofs roofs;
  roofs.add(matmul(128, 128, 128), cpu(), 100, 0, 0, true);
  const Workload whole = conv(3, 1, 0, "none");
  EXPECT_DOUBLE_EQ(roofs.bound_ns(whole, cpu()), flops(whole) / 100);
  // Stride 2 and padding 2: windows of 5 places begin at -2, 0, 2, 4 and have 3, 5, 5, 3 inside.
  const Workload padded = conv(5, 2, 2, "none");
  EXPECT_NEAR(roofs.bound_ns(padded, cpu()), flops(padded) / 100 * 0.8 * 0.8, 1e-6);
  // With packed weights Winograd serves it.
  const Workload packed = conv(3, 1, 1, "weight");
  EXPECT_DOUBLE_EQ(roofs.bound_ns(packed, cpu()), flops(packed) / 100 * 64 / 324);
  EXPECT_GT(roofs.bound_ns(packed, cpu(), "direct"), flops(packed) / 100 * 0.8);
}

TEST(RecordedRoofs, PeaksAreOfTheirType) {
  RecordedRoofs roofs;
  const Workload floats = matmul(128, 128, 128), bytes8 = matmul(128, 128, 128, "int8");
  roofs.add(floats, cpu(), 100, 0, 0, true);
  EXPECT_EQ(roofs.bound_ns(bytes8, cpu()), 0);
  roofs.add(bytes8, cpu(), 400, 0, 0, true);
  EXPECT_DOUBLE_EQ(roofs.bound_ns(bytes8, cpu()), flops(bytes8) / 400);
  EXPECT_DOUBLE_EQ(roofs.bound_ns(floats, cpu()), flops(floats) / 100);
}

}  // namespace
}  // namespace tuner
