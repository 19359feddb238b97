// conv2d_tile_cpu: when it applies, its loops, and random configs on odd shapes: interpreted, and compiled
// for AMX (on the hardware or emulated) and for targets without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "compiler_core/base/int_math.h"
#include "templates/registry/registry.h"
#include "templates/workload/tolerance.h"
#include "tests/all_samples.h"
#include "tests/compiler_core/amx_target.h"
#include "tests/compiler_core/kernel_testing.h"
#include "tests/random_seed.h"
#include "tests/templates/template_check.h"
#include "tests/templates/typed_conv2d.h"

namespace tuner {
namespace {

using testing::amx_target;

using ::testing::AllOf;
using testing::conv;
using ::testing::HasSubstr;
using testing::kTypes;
using ::testing::Not;
using testing::Types;

std::string reason(const Conv2dWorkload& w, const Target& t = amx_target()) {
  return conv2d_tile_cpu().supports(w, t).reason;
}

TEST(Conv2dTileCpu, DeclinesWithTheReason) {
  EXPECT_EQ(reason(conv({DType::kFloat32}, 16, 5, 5, 16, 3)), "needs bfloat16 or int8, got float32");
  EXPECT_EQ(reason(conv({DType::kInt8}, 16, 5, 5, 16, 3), cpu(512, 32)),
            "needs tiles of int8 (AMX; i8mm or bf16 of AArch64), which llvm -mcpu=skylake-avx512 -threads=1 "
            "has not");
  Conv2dWorkload w = conv({DType::kInt8}, 16, 5, 5, 16, 3);
  w.groups = 4;
  EXPECT_EQ(reason(w), "needs groups = 1, got 4");
  EXPECT_EQ(reason(conv({DType::kInt8}, 16, 5, 5, 1, 3)), "needs 2 output channels or more, got 1");
  EXPECT_EQ(reason(conv({DType::kInt8}, 16, 1, 1, 16, 1)), "needs 2 output columns or more, got 1");
  EXPECT_EQ(reason(conv({DType::kInt8}, 4, 5, 5, 16, 1)), "needs more than 4 input channels, got 4");
  EXPECT_EQ(reason(conv({DType::kInt8}, 1, 5, 5, 16, 3)), "");  // nine terms
}

// Whoever has tiles tries them first.
TEST(Conv2dTileCpu, IsTheFirstChoiceWhereItServes) {
  const auto first = templates_for(conv({DType::kInt8}, 64, 14, 14, 64, 3, 1, 1), amx_target());
  ASSERT_TRUE(first.is_ok()) << first.message();
  EXPECT_EQ(first->front()->name(), "conv2d_tile_cpu");
}

TEST(Conv2dTileCpu, LoopsOfOneConfig) {
  Conv2dWorkload w = conv({DType::kBFloat16}, 32, 14, 14, 32, 3, 1, 1);
  w.layout = w.out_layout = "NCHW16c";
  w.activation = Activation::kRelu;
  EXPECT_EQ("\n" + to_text(program_of(
                       conv2d_tile_cpu(), w, amx_target(),
                       "across=2 block=7 by_tile=0 down=2 in_place=0 next_panel=0 pack_block=1 rows=16")),
            R"(
kernel conv2d(input data bfloat16[1, 2, 14, 14, 16], packed weight.packed bfloat16[2, 3, 3, 16, 16, 2], output out float32[1, 2, 14, 14, 16])
  for n in 0..1
    for oh.outer in 0..2
      for ow.outer in 0..1
        allocate pixels.packed bfloat16[1, 1, 1, 1, 162, 32]
        for p0 in 0..1
          for p1 in 0..1
            for p2 in 0..1
              for p3 in 0..1
                for p4.outer in 0..11
                  for p4.inner in 0..16
                    if p4.outer*16 + p4.inner < 162
                      unrolled p5.outer in 0..2
                        vectorized p5.inner in 0..16
                          pixels.packed[0, 0, 0, 0, p4.outer*16 + p4.inner, p5.outer*16 + p5.inner] = select(oh.outer*7 + p4.outer < 16, select(oh.outer*7 + p4.outer >= 1 && oh.outer*7 + p4.outer < 15 && p4.inner >= 1 && p4.inner < 15, data[0, p5.outer, oh.outer*7 + p4.outer - 1, p4.inner - 1, p5.inner], 0), 0)
        for oc.outer in 0..1
          allocate acc float32[1, 128, 32]
          for n_1 in 0..1
            for q.outer in 0..4
              allocate acc.fragment float32[1, 32, 32] fragment
              for n_2 in 0..1
                unrolled q.outer.init in 0..2
                  unrolled oc.outer.init in 0..2
                    amx.zero.float32.16(acc.fragment[0, q.outer.init*16, oc.outer.init*16])
                reduce kh in 0..3
                  reduce kw in 0..3
                    reduce ic.outer in 0..1
                      allocate pixels.packed.fragment bfloat16[1, 1, 1, 1, 32, 32] fragment
                      allocate weight.packed.fragment bfloat16[2, 1, 1, 16, 16, 2] fragment
                      unrolled i0 in 0..1
                        unrolled i1 in 0..1
                          unrolled i2 in 0..1
                            unrolled i3 in 0..1
                              unrolled i4.outer in 0..2
                                amx.load.bfloat16.16(pixels.packed.fragment[0, 0, 0, 0, i4.outer*16, 0], pixels.packed[0, 0, 0, 0, q.outer*32 + kh*16 + kw + i4.outer*16, 0])
                      unrolled i0 in 0..2
                        unrolled i1 in 0..1
                          unrolled i2 in 0..1
                            amx.groups.bfloat16(weight.packed.fragment[i0, 0, 0, 0, 0, 0], weight.packed[i0, kh, kw, 0, 0, 0])
                      unrolled q.outer_1 in 0..2
                        unrolled oc.outer_1 in 0..2
                          amx.bfloat16.16(acc.fragment[0, q.outer_1*16, oc.outer_1*16], pixels.packed.fragment[0, 0, 0, 0, q.outer_1*16, 0], weight.packed.fragment[oc.outer_1, 0, 0, 0, 0, 0])
              unrolled q.inner.outer in 0..2
                unrolled oc.outer_1 in 0..2
                  amx.store.float32.16(acc.fragment[0, q.inner.outer*16, oc.outer_1*16], acc[0, q.outer*32 + q.inner.outer*16, oc.outer_1*16])
          for oh.inner in 0..7
            for ow.inner in 0..32
              if ow.inner < 14
                unrolled oc.inner in 0..2
                  vectorized ocb in 0..16
                    out[0, oc.inner, oh.outer*7 + oh.inner, ow.inner, ocb] = max(acc[0, oh.inner*16 + ow.inner, oc.inner*16 + ocb], 0)
packing conv2d_pack(constant weight bfloat16[32, 32, 3, 3], packed weight.packed bfloat16[2, 3, 3, 16, 16, 2])
  for p0 in 0..2
    for p1 in 0..3
      for p2 in 0..3
        for p3 in 0..16
          for p4 in 0..16
            for p5 in 0..2
              weight.packed[p0, p1, p2, p3, p4, p5] = weight[p0*16 + p4, p3*2 + p5, p1, p2]
)");
}

// Weights of 9 MB and few pixels: each of the two blocks of tiles asks for half of the next panel, 32 lines a
// step.
TEST(Conv2dTileCpu, BlocksOfPixelsAskForTheNextPanelOfLargeWeights) {
  for (const char* layout : {"NCHW", "NCHW16c"}) {
    Conv2dWorkload w = conv({DType::kInt8}, 1024, 7, 7, 1024, 3, 1, 1);
    w.constant = {"weight"};
    w.layout = w.out_layout = layout;
    SCOPED_TRACE(layout);
    const auto first_asks = [&] {
      const auto instance = conv2d_tile_cpu().apply(w, amx_target());
      CHECK(instance.is_ok()) << instance.message();
      const ConfigSpace& space = (*instance)->space();
      return space.at(space.first_index()).to_text().find("next_panel=1") != std::string::npos;
    };
    EXPECT_TRUE(first_asks());
    EXPECT_THAT(
        to_text(program_of(conv2d_tile_cpu(), w, amx_target(),
                           "across=2 block=0 by_tile=0 down=2 in_place=0 next_panel=1 pack_block=0 rows=16")),
        ::testing::ContainsRegex("ahead in 0\\.\\.16\n *prefetch\\.l2\\(weight\\.packed\\["));
    // The last panel has none behind it, and many pixels hide what is read.
    w.out_channels = 32;
    EXPECT_FALSE(first_asks());
  }
}

// Four loads and four products a step, no configuration among them: pixels in rows of tiles, and in columns.
TEST(Conv2dTileCpu, TheInnerLoopIsLoadsAndProducts) {
  for (const DType dtype : {DType::kBFloat16, DType::kInt8})
    for (const char* layout : {"NCHW", "NCHW16c", "NHWC"})
      for (const int64_t kernel : {1, 3}) {
        Conv2dWorkload w = conv({dtype}, 256, 14, 14, 256, kernel, 1, kernel / 2);
        w.layout = w.out_layout = layout;
        SCOPED_TRACE(Workload(w).key());
        const Result<std::string> text =
            emit_asm(program_of(conv2d_tile_cpu(), w, amx_target()), amx_target());
        ASSERT_TRUE(text.is_ok()) << text.message();
        const std::string product = dtype == DType::kBFloat16 ? "tdpbf16ps"
                                    : w.layout == "NCHW"      ? "tdpbsud"
                                                              : "tdpbusd";
        const size_t first = text->find("tileloadd"), last = text->rfind(product);
        ASSERT_NE(last, std::string::npos) << *text;
        const std::string loop = text->substr(first, last + product.size() - first);
        const auto count = [&](const std::string& word) {
          int n = 0;
          for (size_t at = loop.find(word); at != std::string::npos; at = loop.find(word, at + 1)) ++n;
          return n;
        };
        EXPECT_EQ(count("tileloadd"), 4) << loop;
        EXPECT_EQ(count(product), 4) << loop;
        EXPECT_EQ(count("tilecfg"), 0) << loop;
        EXPECT_EQ(count("(%rsp)"), 0) << loop;
      }
}

TEST(Conv2dTileCpu, ScheduleReplaysFromItsText) {
  for (const char* layout : {"NCHW", "NCHW16c", "NHWC"})
    for (const int64_t channels : {3, 48}) {
      Conv2dWorkload w = conv({DType::kInt8}, channels, 14, 9, 32, 3, 2, 1);
      w.out_layout = layout;
      const auto instance = conv2d_tile_cpu().apply(w, amx_target(2));
      ASSERT_TRUE(instance.is_ok()) << instance.message();
      const Config config = (*instance)->space().at((*instance)->space().first_index());
      const auto program = (*instance)->instantiate(config);
      const auto text = (*instance)->schedule_text(config);
      ASSERT_TRUE(program.is_ok() && text.is_ok()) << program.message() << text.message();
      const auto again = replay((*instance)->math(), *text);
      ASSERT_TRUE(again.is_ok()) << again.message();
      EXPECT_EQ(to_text(*again), to_text(*program));
    }
}

// Pixels in NHWC in whole steps are read where they lie, by as many rows as divide them.
TEST(Conv2dTileCpu, ReadsPixelsInPlace) {
  Conv2dWorkload w = conv({DType::kInt8}, 128, 14, 14, 64, 1);
  w.layout = w.out_layout = "NHWC";
  const auto first_text = [&] {
    const auto instance = conv2d_tile_cpu().apply(w, amx_target());
    CHECK(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    const auto program = (*instance)->instantiate(space.at(space.first_index()));
    CHECK(program.is_ok()) << program.message();
    return to_text(*program);
  };
  EXPECT_THAT(first_text(), AllOf(HasSubstr("amx.load.uint8.14(data.fragment["), Not(HasSubstr("pixels"))));
  w.in_channels = 96;  // one step and a half
  EXPECT_THAT(first_text(), HasSubstr("(pixels.packed.fragment["));
  w.in_channels = 128;
  w.stride = {2, 2};
  EXPECT_THAT(first_text(), HasSubstr("(pixels.packed.fragment["));
}

// Rows of the window stand side by side as terms of a step, and shared lines of the image are copied once:
// the 7 rows of 7 * 3 bytes are 4 steps of 2 rows.
TEST(Conv2dTileCpu, FoldsWindowsOverFewChannels) {
  Conv2dWorkload w = conv({DType::kInt8}, 3, 224, 224, 64, 7, 2, 3);
  w.layout = w.out_layout = "NHWC";
  const std::string text =
      to_text(program_of(conv2d_tile_cpu(), w, amx_target(),
                         "across=2 block=0 by_tile=1 down=2 in_place=0 next_panel=0 pack_block=0 rows=16"));
  EXPECT_THAT(text, AllOf(HasSubstr("allocate lines uint8[1, 230, "), HasSubstr("reduce kh in 0..4"),
                          HasSubstr("allocate pixels.packed uint8[1, 1, 1, 1, ")));
  EXPECT_THAT(text, ::testing::ContainsRegex("vectorized p5\\.inner in 0\\.\\.32\n *pixels\\.packed"));
}

// A pixel that is not finite reaches the outputs whose window has it, and no others.
TEST(Conv2dTileCpu, WhatIsNotFiniteStaysInItsWindows) {
  for (const char* layout : {"NCHW", "NHWC"})
    for (const int64_t kernel : {3, 5, 7}) {
      Conv2dWorkload w = conv({DType::kBFloat16}, 3, 13, 17, 20, kernel, 2, kernel / 2);
      w.layout = layout;
      w.out_layout = "NHWC";
      SCOPED_TRACE(Workload(w).key());
      const Program math = Workload(w).compute();
      auto expected = testing::random_args(math, 7);
      for (size_t i = 0; i < expected.front().size(); i += 83) expected.front()[i] = NAN;
      auto found = expected;
      ASSERT_TRUE(interpret(math, expected).is_ok());
      const auto instance = conv2d_tile_cpu().apply(w, amx_target());
      ASSERT_TRUE(instance.is_ok()) << instance.message();
      const auto program =
          (*instance)->instantiate((*instance)->space().at((*instance)->space().first_index()));
      ASSERT_TRUE(program.is_ok()) << program.message();
      ASSERT_THAT(to_text(*program), HasSubstr("allocate lines"));
      ASSERT_TRUE(interpret(*program, found).is_ok());
      int finite = 0;
      for (size_t i = 0; i < expected.back().size(); ++i) {
        ASSERT_EQ(std::isnan(found.back()[i]), std::isnan(expected.back()[i])) << i;
        finite += std::isnan(expected.back()[i]) ? 0 : 1;
      }
      EXPECT_GT(finite, 0);
    }
}

// On AMX and on vectors of AArch64.
TEST(Conv2dTileCpu, DefaultIsValidForAnyShape) {
  int served = 0;
  for (const Target& target :
       {amx_target(), *parse_target("llvm -mcpu=neoverse-n2 -mtriple=aarch64-linux-gnu")})
    for (const Types& types : kTypes)
      for (const char* layout : {"NCHW", "NHWC", "NCHW4c", "NCHW8c", "NCHW16c"})
        for (const int64_t size : {2, 7, 56, 224})
          for (const int64_t oc : {2, 48, 512})
            for (const int64_t ic : {3, 80, 512})
              for (const auto& [kernel, stride] :
                   {std::pair<int64_t, int64_t>{1, 1}, {1, 2}, {3, 1}, {3, 2}, {7, 2}}) {
                Conv2dWorkload w = conv(types, ic, size, size, oc, kernel, stride, kernel / 2);
                w.layout = w.out_layout = layout;
                if (!validate(w).is_ok() || !conv2d_tile_cpu().supports(w, target).yes) continue;
                const auto instance = conv2d_tile_cpu().apply(w, target);
                ASSERT_TRUE(instance.is_ok()) << instance.message();
                const ConfigSpace& space = (*instance)->space();
                const auto program = (*instance)->instantiate(space.at(space.first_index()));
                ASSERT_TRUE(program.is_ok()) << Workload(w).key() << ": " << program.message();
                ++served;
              }
  EXPECT_GT(served, 500);
}

TEST(Conv2dTileCpu, DeclinesOnAarch64WhatItsVectorsDoNotHave) {
  const Target n2 = *parse_target("llvm -mcpu=neoverse-n2 -mtriple=aarch64-linux-gnu");
  Conv2dWorkload w = conv({DType::kInt8}, 32, 14, 14, 32, 3, 1, 1);
  EXPECT_EQ(reason(w, n2),
            "needs an output in NHWC or in blocks, got NCHW: AArch64 has no product of signed by unsigned "
            "bytes");
  w.layout = w.out_layout = "NCHW8c";
  EXPECT_EQ(reason(w, n2), "");
  EXPECT_EQ(reason(w, *parse_target("llvm -mcpu=neoverse-n1 -mtriple=aarch64-linux-gnu")),
            "needs tiles of int8 (AMX; i8mm or bf16 of AArch64), which llvm -mcpu=neoverse-n1 "
            "-mtriple=aarch64-linux-gnu -threads=1 has not");
}

// A convolution of any form: windows of one tap and of several, one step or two, folded taps, any layout.
Conv2dWorkload drawn(std::mt19937_64& random, const Types& types, bool one_tap, bool few_channels) {
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const auto layout = [&](int64_t& channels) -> std::string {
    const int64_t block = std::array{0, 1, 4, 8, 16}[random() % 5];
    if (block < 2) return block == 0 ? "NHWC" : "NCHW";
    channels = round_up(channels, block);
    return str("NCHW", block, "c");
  };
  Conv2dWorkload w = conv(types, between(5, 80), between(3, 12), between(3, 20), between(2, 50), 1);
  if (!one_tap) {
    w.kernel_height = between(1, 3);
    w.kernel_width = between(2, 3);
    w.dilation = {between(1, 2), between(1, 2)};
    for (int64_t& p : w.padding) p = between(0, 2);
    if (between(0, 3) == 0) w.in_channels = between(1, 9);
  }
  if (few_channels) {
    w.in_channels = between(1, 6);
    w.kernel_height = between(1, 8);
    w.kernel_width = between(2, 8);
    if (between(0, 3) > 0) w.dilation[1] = 1;
  }
  w.in_height += (w.kernel_height - 1) * w.dilation[0];
  w.in_width += (w.kernel_width - 1) * w.dilation[1];
  w.stride = {between(1, 2), between(1, 3)};
  if (one_tap && between(0, 1) == 0) w.stride = {1, 1};
  w.batch = between(0, 3) == 0 ? 2 : 1;
  w.layout = layout(w.in_channels);
  w.out_layout = layout(w.out_channels);
  w.bias = between(0, 1) == 1;
  w.residual = between(0, 2) == 0 && !requantises(w);
  if (between(0, 1) == 1) w.activation = Activation::kRelu;
  if (between(0, 2) == 0) w.constant.clear();
  if (between(0, 9) == 0) w.constant = {"data", "weight"};
  return w;
}

void expect_random_configs_right(bool one_tap, bool few_channels = false) {
  const std::string how = testing::run_amx_kernels_here();
  if (how.empty()) GTEST_SKIP() << "AMX is of x86 CPUs";
  ::testing::Test::RecordProperty("amx", how);
  for (const uint32_t seed : Seeds(/*fixed=*/1, all_samples_wanted() ? 200 : 33)) {
    std::mt19937_64 random(seed);
    const Conv2dWorkload w = drawn(random, kTypes[seed % std::size(kTypes)], one_tap, few_channels);
    ASSERT_TRUE(validate(w).is_ok()) << validate(w).message();
    const int threads = 1 + static_cast<int>(random() % 3);
    if (!conv2d_tile_cpu().supports(w, amx_target(threads)).yes) continue;
    const auto instance = conv2d_tile_cpu().apply(w, amx_target(threads));
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    const Config config = space.at(space.sample(random));
    SCOPED_TRACE(str(Workload(w).key(), " ", config.to_text(), ", ", threads, " threads"));
    const Result<Program> program = (*instance)->instantiate(config);
    ASSERT_TRUE(program.is_ok()) << program.message();
    const Program math = Workload(w).compute();
    auto expected = testing::random_args(math, seed);
    const auto inputs = expected;
    ASSERT_TRUE(interpret(math, expected).is_ok());
    const Tolerance tolerance = tolerance_of(w);
    for (const Target& t : {amx_target(threads), host_target(threads)}) {
      auto found = inputs;
      const Status status = testing::run_compiled(*program, found, t, threads);
      ASSERT_TRUE(status.is_ok()) << status.message();
      for (size_t i = 0; i < expected.back().size(); ++i)
        ASSERT_NEAR(found.back()[i], expected.back()[i],
                    tolerance.absolute + tolerance.relative * std::abs(expected.back()[i]))
            << t.name() << ", out[" << i << "]";
    }
  }
}

// 200 configs of each, of which the fast suite takes a sixth, with all types of results: machine code with
// tiles, machine code without, and the plain reference.
TEST(Conv2dTileCpu, RandomConfigsOfOneTapEqualTheOracle) { expect_random_configs_right(/*one_tap=*/true); }
TEST(Conv2dTileCpu, RandomConfigsOfWindowsEqualTheOracle) { expect_random_configs_right(/*one_tap=*/false); }

TEST(Conv2dTileCpu, RandomConfigsOfFewChannelsEqualTheOracle) {
  expect_random_configs_right(/*one_tap=*/false, /*few_channels=*/true);
}

TEST(Conv2dTileCpu, RandomConfigsOnOddShapes) {
  for (const Types& types : kTypes)
    for (const Conv2dWorkload& w : {conv(types, 9, 5, 8, 20, 1), conv(types, 33, 5, 6, 5, 2, 2, 1)})
      for (const int threads : {1, 2}) expect_configs_right(conv2d_tile_cpu(), w, amx_target(threads), 3, 1);
}

}  // namespace
}  // namespace tuner
