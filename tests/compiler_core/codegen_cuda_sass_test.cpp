// Machine code is read: loops, mixes, loads that wait for each other, a bound of the time. Streams are made
// by hand (sass_stream.h) or compiled where NVRTC is; damaged ones never crash.
#include "compiler_core/codegen_cuda/sass/sass.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/issue_floor.h"
#include "compiler_core/codegen_cuda/nvrtc.h"
#include "compiler_core/codegen_cuda/sass/sass_text.h"
#include "compiler_core/ir/intrinsic.h"
#include "tests/compiler_core/gpu_kernels.h"
#include "tests/compiler_core/sass_stream.h"
#include "tests/random_seed.h"

namespace tuner::testing {
namespace {

using sass::KernelCode;
using sass::Op;

KernelCode read(const SassStream& stream, int sm = 90) {
  Result<KernelCode> code = sass::read_code("kernel", stream.bytes(), sm);
  EXPECT_TRUE(code.is_ok()) << code.message();
  return code ? *std::move(code) : KernelCode{};
}

// Four FFMA and a shared load, `inner` times in a loop with a barrier.
SassStream nested_loops() {
  SassStream s;
  s.integer();
  const int outer = s.barrier();
  const int inner = s.lds128();
  for (int i = 0; i < 4; ++i) s.ffma();
  s.branch(inner);
  s.integer();
  s.branch(outer);
  s.exit();
  return s;
}

TEST(CodegenCudaSass, LoopsAreFoundAndNested) {
  const KernelCode code = read(nested_loops());
  ASSERT_EQ(code.loops.size(), 2u);
  EXPECT_EQ(code.loops[0].parent, -1);
  EXPECT_EQ(code.loops[1].parent, 0);
  EXPECT_EQ(code.loops[1].depth, 2);
  EXPECT_EQ(code.loops[0].begin, 1);
  EXPECT_EQ(code.loops[0].end, 10);
  EXPECT_EQ(code.loops[0].mix.all(), 9);
  EXPECT_EQ(code.loops[0].own.all(), 3);  // barrier, integer, branch
  EXPECT_EQ(code.hot, 1);
  EXPECT_EQ(code.hot_mix()[Op::kFfma], 4);
  EXPECT_EQ(code.hot_mix()[Op::kLds128], 1);
  EXPECT_DOUBLE_EQ(code.hot_mix().ffma_share(), 4.0 / 6);
  EXPECT_DOUBLE_EQ(code.hot_mix().ffma_a_shared_load(), 4);
}

TEST(CodegenCudaSass, ABlockThatAGuardLeadsAroundIsNotSure) {
  SassStream s;
  const int head = s.integer();
  const int guard = s.branch(0);
  const int guarded = s.ffma();
  s.aim(guard, s.integer());
  s.branch(head);
  s.exit();
  const KernelCode code = read(s);
  ASSERT_EQ(code.loops.size(), 1u);
  const auto sure = [&](int at) {
    for (const sass::Block& b : code.blocks)
      if (b.begin <= at && at < b.end) return b.sure;
    return false;
  };
  EXPECT_TRUE(sure(head));
  EXPECT_FALSE(sure(guarded));
  EXPECT_TRUE(sure(guarded + 1));
}

// The compiler moves what is rare behind the end and jumps back: that is no loop.
TEST(CodegenCudaSass, AJumpBackIsNoLoopIfNothingLeadsToItAgain) {
  SassStream s;
  const int away = s.branch(0);
  const int back = s.integer();
  s.exit();
  s.aim(away, s.ffma());
  s.branch(back, /*always=*/true);
  EXPECT_TRUE(read(s).loops.empty());
}

TEST(CodegenCudaSass, FillerBehindTheEndDoesNotCount) {
  SassStream s = nested_loops();
  const int all = read(s).mix.all();
  s.branch(s.next(), /*always=*/true);
  for (int i = 0; i < 6; ++i) s.of(0x918);
  EXPECT_EQ(read(s).mix.all(), all);
  EXPECT_EQ(read(s).mix[Op::kNop], 0);
}

TEST(CodegenCudaSass, LoadsThatAreWaitedForBeforeTheNextAreSerial) {
  SassStream overlapped, serial;
  for (int i = 0; i < 4; ++i) overlapped.load(i);
  for (int i = 0; i < 4; ++i) overlapped.store(i);
  for (int i = 0; i < 4; ++i) {
    serial.load(i);
    serial.store(i);
  }
  ASSERT_EQ(read(overlapped).copies.size(), 1u);
  EXPECT_EQ(read(overlapped).copies[0].loads, 4);
  EXPECT_EQ(read(overlapped).copies[0].serial, 0);
  ASSERT_EQ(read(serial).copies.size(), 1u);
  EXPECT_EQ(read(serial).copies[0].serial, 3);  // nothing comes after the last
  EXPECT_EQ(read(serial).copies[0].shared_stores, 4);
}

TEST(CodegenCudaSass, ABarrierBehindItsStoresEndsACopy) {
  SassStream s;
  for (int i = 0; i < 2; ++i) {
    s.load(0);
    s.store(0);
    s.barrier();
  }
  const KernelCode code = read(s);
  ASSERT_EQ(code.copies.size(), 2u);
  EXPECT_EQ(code.copies[0].serial + code.copies[1].serial, 0);
}

// What is loaded ahead passes a barrier and is stored behind it.
TEST(CodegenCudaSass, ABarrierBeforeItsStoresDoesNot) {
  SassStream s;
  s.load(0);
  s.load(1);
  s.ffma();
  s.barrier();
  s.store(0);
  s.store(1);
  const KernelCode code = read(s);
  ASSERT_EQ(code.copies.size(), 1u);
  EXPECT_EQ(code.copies[0].loads, 2);
  EXPECT_EQ(code.copies[0].shared_stores, 2);
}

TEST(CodegenCudaSass, ALoopOfOneLoadWaitsForItself) {
  SassStream serial, ahead;
  const int head = serial.load(0);
  serial.use(0);
  serial.branch(head);
  serial.exit();
  EXPECT_EQ(read(serial).copies.at(0).serial, 1);
  // The same with nothing that waits.
  const int other = ahead.load(0);
  ahead.ffma();
  ahead.branch(other);
  ahead.exit();
  EXPECT_EQ(read(ahead).copies.at(0).serial, 0);
}

// A barrier in the loop ends the copy before the next iteration.
TEST(CodegenCudaSass, ABarrierEndsWhatGoesRoundALoop) {
  SassStream s;
  const int head = s.load(0);
  s.barrier();
  s.use(0);
  s.branch(head);
  s.exit();
  EXPECT_EQ(read(s).copies.at(0).serial, 0);
}

TEST(CodegenCudaSass, EachOfSixScoreboardsIsWaitedFor) {
  for (int scoreboard = 0; scoreboard < 6; ++scoreboard) {
    SassStream s;
    for (int i = 0; i < 2; ++i) {
      s.load(scoreboard);
      s.store(scoreboard);
    }
    EXPECT_EQ(read(s).copies.at(0).serial, 1) << scoreboard;
  }
}

TEST(CodegenCudaSass, TheHotLoopIsTheFirstOfTheBusiest) {
  const auto loops_of =
      [](const std::vector<std::pair<int, int>>& counts) {  // multiply-adds, products of tiles
        SassStream s;
        for (const auto& [ffma, hmma] : counts) {
          const int head = s.integer();
          for (int i = 0; i < ffma; ++i) s.ffma();
          for (int i = 0; i < hmma; ++i) s.hmma();
          s.branch(head);
        }
        s.exit();
        return read(s).hot;
      };
  EXPECT_EQ(loops_of({{4, 0}, {8, 0}, {6, 0}}), 1);
  EXPECT_EQ(loops_of({{8, 0}, {8, 0}}), 0) << "of equal ones the first";
  EXPECT_EQ(loops_of({{100, 0}, {0, 1}}), 1) << "products of tiles count first";
  EXPECT_EQ(loops_of({}), -1);
}

// Of each share its own kind over all instructions that do something, or over loads.
TEST(CodegenCudaSass, SharesAreOfTheirOwnKind) {
  sass::Mix mix;
  mix[Op::kFfma] = 20, mix[Op::kDot] = 12, mix[Op::kMma] = 6;
  mix[Op::kLds32] = 1, mix[Op::kLds128] = 1, mix[Op::kLdsm] = 3;
  mix[Op::kInteger] = 7, mix[Op::kNop] = 50;
  EXPECT_EQ(mix.all(), 50);
  EXPECT_DOUBLE_EQ(mix.ffma_share(), 0.4);
  EXPECT_DOUBLE_EQ(mix.dot_share(), 0.24);
  EXPECT_DOUBLE_EQ(mix.mma_share(), 0.12);
  EXPECT_DOUBLE_EQ(mix.ffma_a_shared_load(), 10);
  EXPECT_DOUBLE_EQ(mix.dot_a_shared_load(), 6);
  EXPECT_DOUBLE_EQ(mix.mma_a_load(), 2);
}

TEST(CodegenCudaSass, BranchesInsideACopyAreCounted) {
  SassStream s;
  s.load(0);
  const int guard = s.branch(0);
  s.load(1);
  const int around_stores = s.branch(0);  // leads around all stores: not inside
  s.aim(guard, around_stores);
  s.store(0);
  s.store(1);
  s.aim(around_stores, s.integer());
  EXPECT_EQ(read(s).copies.at(0).branches, 1);
}

TEST(CodegenCudaSass, UnknownOpcodesAreNamedAndEndTheVerdictAboveOnePercent) {
  SassStream s;
  for (int i = 0; i < 198; ++i) s.ffma();
  s.of(0x9ff);
  s.of(0x9ff);
  EXPECT_TRUE(read(s).verdict().is_ok());  // 2 of 200
  s.of(0x7fe);
  const KernelCode code = read(s);
  EXPECT_EQ(code.mix[Op::kUnknown], 3);
  EXPECT_EQ(
      code.verdict().message(),
      "machine code of kernel (sm_90): 3 of 201 instructions are unknown, opcodes 0x9ff, 0x7fe; no verdict");
}

TEST(CodegenCudaSass, TextNamesTheHotLoopAndItsCounts) {
  SassStream s;
  s.load(2);
  const int head = s.store(2);
  for (int i = 0; i < 4; ++i) s.ffma();
  s.lds128();
  s.branch(head);
  s.exit();
  EXPECT_EQ(sass::to_text(read(s)),
            "  kernel       9 instructions: FFMA 4, LDS.128 1, STS.32 1, LDG.32 1, branch 2\n"
            "  copy         1 load, 0 serial; to registers, 0 branches in between; not in a loop\n"
            "  hot loop     0x0010 to 0x0080, depth 1 of 1 loops; 7 instructions of its own: FFMA 4, LDS.128 "
            "1, STS.32 1, "
            "branch 1\n"
            "               57.1 % FFMA, 4.0 FFMA a shared load, 0 barriers an iteration\n"
            "    0x0010       STS.32       stall 1, waits for 2\n"
            "    0x0020       FFMA x 4\n"
            "    0x0060       LDS.128      stall 1\n"
            "    0x0070  @P   BRA          stall 1, to 0x0010\n");
}

TEST(CodegenCudaSass, BytesThatAreNoInstructionsAreRefused) {
  EXPECT_EQ(sass::read_code("kernel", std::string(17, '\0'), 90).message(),
            "machine code of kernel: 17 bytes, expected a multiple of 16 up to 16777216");
  EXPECT_TRUE(sass::read_code("kernel", "", 90).is_ok());
}

TEST(CodegenCudaSass, RandomBytesNeverCrash) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/300)) {
    std::mt19937_64 random(seed);
    std::string bytes(random() % 400 * 16, '\0');
    for (size_t at = 0; at < bytes.size(); at += 8) {
      const uint64_t word = random();
      std::memcpy(bytes.data() + at, &word, sizeof word);
    }
    // Jumps, to places nearby, so that there are loops of all kinds.
    for (size_t at = 0; at < bytes.size(); at += 16) {
      if (random() % 3 != 0) continue;
      const auto quads = static_cast<int64_t>(random() % 65) * 4 - 128;
      const uint64_t low = uint64_t{0x947} | (random() % 8) << 12 |
                           (static_cast<uint64_t>(quads) & 0xff) << 16 |
                           static_cast<uint64_t>(quads >> 8) << 34;
      const uint64_t high = (uint64_t{7} << 23) | (quads < 0 ? 0x3ffff : 0);
      std::memcpy(bytes.data() + at, &low, sizeof low);
      std::memcpy(bytes.data() + at + 8, &high, sizeof high);
    }
    const Result<KernelCode> code = sass::read_code("random", bytes, random() % 2 == 0 ? 80 : 90);
    ASSERT_TRUE(code.is_ok()) << code.message();
    ASSERT_EQ(code->loop_of.size(), code->instructions.size());
    for (const sass::Loop& loop : code->loops) {
      ASSERT_LT(loop.parent, static_cast<int>(&loop - code->loops.data()));
      ASSERT_GE(loop.own.all(), 1);
      ASSERT_GE(loop.mix.all(), loop.own.all());
    }
    (void)sass::to_text(*code);
  }
}

// out[t] = in[t] * 2 + 1, many times: `text` inside a kernel with arguments x, y and shared memory s.
std::string cubin_of(const std::string& text, const std::string& arch) {
  const std::string source =
      "extern \"C\" __global__ void kernel(const float* __restrict__ x, float* y, int n) {\n"
      "  __shared__ float s[4096];\n  const int t = threadIdx.x;\n" +
      text + "\n}\n";
  const Result<cuda::Compiled> compiled =
      cuda::compile_source(source, "kernel.cu", {"--gpu-architecture=" + arch, "--std=c++17"});
  EXPECT_TRUE(compiled.is_ok()) << compiled.message();
  return compiled ? compiled->cubin : std::string();
}

KernelCode compiled(const std::string& text, const std::string& arch) {
  Result<std::vector<KernelCode>> codes = sass::read_kernel_code(cubin_of(text, arch));
  EXPECT_TRUE(codes.is_ok()) << codes.message();
  return codes && codes->size() == 1 ? std::move(codes->front()) : KernelCode{};
}

class CodegenCudaSassCompiled : public ::testing::TestWithParam<const char*> {
  void SetUp() override {
    if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  }
};

TEST_P(CodegenCudaSassCompiled, OverlappedLoadsAreNotSerial) {
  const KernelCode code = compiled(
      "float v[4];\n"
      "for (int i = 0; i < 4; ++i) v[i] = x[t + 1024 * i];\n"
      "for (int i = 0; i < 4; ++i) s[t + 1024 * i] = v[i];\n"
      "__syncthreads();\n y[t] = s[4095 - t];",
      GetParam());
  ASSERT_EQ(code.copies.size(), 1u);
  EXPECT_EQ(code.copies[0].loads, 4);
  EXPECT_EQ(code.copies[0].serial, 0);
  EXPECT_EQ(code.copies[0].branches, 0);
  EXPECT_TRUE(code.verdict().is_ok()) << code.verdict().message();
}

TEST_P(CodegenCudaSassCompiled, LoadsAndStoresInTurnAreSerial) {
  const KernelCode code = compiled(
      "volatile float *from = y, *to = s;\n"
      "for (int i = 0; i < 4; ++i) to[t + 1024 * i] = from[t * (i + 1)];\n"
      "__syncthreads();\n y[t] = s[4095 - t];",
      GetParam());
  ASSERT_EQ(code.copies.size(), 1u);
  EXPECT_EQ(code.copies[0].loads, 4);
  EXPECT_EQ(code.copies[0].serial, 3);
  EXPECT_EQ(code.copies[0].shared_stores, 4);
}

TEST_P(CodegenCudaSassCompiled, GuardsThatStayBranchesAreCounted) {
  const KernelCode code = compiled(
      "volatile float *from = y, *to = s;\n"
      "for (int i = 0; i < 4; ++i)\n"
      "  if (t * (i + 3) < n) for (int j = 0; j < 9; ++j) to[t + 64 * (9 * i + j)] = from[t * (i + 1) + j];\n"
      "__syncthreads();\n y[t] = s[4095 - t];",
      GetParam());
  ASSERT_EQ(code.copies.size(), 1u);
  EXPECT_EQ(code.copies[0].loads, 36);
  EXPECT_GE(code.copies[0].branches, 1);
}

TEST_P(CodegenCudaSassCompiled, ChainOfLoadsIsSerial) {
  const KernelCode code = compiled(
      "int at = t;\n for (int i = 0; i < 4; ++i) at = __float_as_int(x[at]);\n y[t] = at;", GetParam());
  ASSERT_EQ(code.copies.size(), 1u);
  EXPECT_EQ(code.copies[0].loads, 4);
  EXPECT_EQ(code.copies[0].serial, 3);
  EXPECT_EQ(code.copies[0].shared_stores, 0);
}

TEST_P(CodegenCudaSassCompiled, ALoopIsFoundAndItsMultiplyAddsCounted) {
  const KernelCode code = compiled(
      "float a = x[t], b = x[t + 1];\n"
      "#pragma unroll 1\n for (int i = 0; i < n; ++i) {\n"
      "  for (int j = 0; j < 40; ++j) a = a * b + 1.5f;\n  s[t] = a;\n  __syncthreads();\n b = s[t ^ 7]; }\n"
      "y[t] = a;",
      GetParam());
  ASSERT_EQ(code.loops.size(), 1u);
  EXPECT_EQ(code.hot, 0);
  EXPECT_EQ(code.hot_mix()[Op::kFfma], 40);
  EXPECT_EQ(code.hot_mix()[Op::kBarrier], 1);
  EXPECT_EQ(code.hot_mix()[Op::kLds32], 1);
  EXPECT_EQ(code.hot_mix()[Op::kSts32], 1);
}

TEST_P(CodegenCudaSassCompiled, TruncatedAndDamagedCubinsNeverCrash) {
  const std::string whole = cubin_of("y[t] = x[t] * 2;", GetParam());
  const RandomSeed seed(3);
  std::mt19937_64 random(seed);
  for (size_t n = 0; n < whole.size(); n += 1 + random() % 16) {
    // What the end of the file holds is not needed.
    const Result<std::vector<KernelCode>> codes = sass::read_kernel_code(whole.substr(0, n));
    EXPECT_TRUE(codes.is_ok() || codes.status().code() == StatusCode::kInvalidArgument) << codes.message();
    EXPECT_FALSE(codes.is_ok() && n < whole.size() / 2) << n;
  }
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = whole;
    for (int flips = 0; flips < 4; ++flips)
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    const Result<std::vector<KernelCode>> codes = sass::read_kernel_code(damaged);
    EXPECT_TRUE(codes.is_ok() || codes.status().code() == StatusCode::kInvalidArgument) << codes.message();
  }
}

INSTANTIATE_TEST_SUITE_P(Arch, CodegenCudaSassCompiled, ::testing::Values("sm_80", "sm_90a"));

// A kernel of `steps` steps of a loop, each with a barrier and 8 multiply-adds; and its machine code.
GpuKernel lowered(int64_t blocks, int64_t threads, int64_t steps) {
  const Buffer sum = registers("sum", {8}), factor = registers("factor", {1});
  const Var bx = make_var("bx"), tx = make_var("tx"), step = make_var("step"), i = make_var("i");
  Stmt update = make_store(sum, {i}, load(sum, {i}) * load(factor, {0}) + load(factor, {0}));
  Stmt body =
      make_seq({loop(i, 8, std::move(update), LoopKind::kUnrolled), make_barrier(MemoryScope::kShared)});
  GpuKernel k{.name = "kernel"};
  k.grid = {blocks, 1, 1}, k.block = {threads, 1, 1};
  k.block_vars[0] = bx, k.thread_vars[0] = tx;
  k.body = make_allocate(sum, make_allocate(factor, loop(step, steps, std::move(body))));
  return k;
}
KernelCode machine_code() {
  SassStream s;
  s.integer();
  const int head = s.barrier();
  for (int i = 0; i < 8; ++i) s.ffma();
  s.integer();
  s.branch(head);
  s.exit();
  return read(s);
}
double floor_ns(const GpuKernel& k, const std::string& arch = "sm_90a") {
  const auto floor = sass::issue_floor(machine_code(), k, *parse_target("cuda -arch=" + arch));
  EXPECT_TRUE(floor.is_ok()) << floor.message();
  return floor ? floor->ns : 0;
}
constexpr double kClock = 1.98;  // H200

TEST(CodegenCudaIssueFloor, CountsWhatTheMultiplyAddsNeed) {
  // A warp on each scheduler: 11 instructions a step, and 2 outside.
  EXPECT_NEAR(floor_ns(lowered(132, 128, 1000)) * kClock, 11'002, 1e-6);
  EXPECT_NEAR(floor_ns(lowered(132, 256, 1000)) * kClock, 22'004, 1e-6);
}

// 16 of the 8,000 multiply-adds may be those outside; the others take 11 instructions for eight.
TEST(CodegenCudaIssueFloor, WhatMayStandOutsideOfLoopsIsTakenOff) {
  SassStream s;
  for (int i = 0; i < 16; ++i) s.ffma();
  const int head = s.barrier();
  for (int i = 0; i < 8; ++i) s.ffma();
  s.integer();
  s.branch(head);
  s.exit();
  const auto floor = sass::issue_floor(read(s), lowered(132, 128, 1000), *parse_target("cuda -arch=sm_90a"));
  ASSERT_TRUE(floor.is_ok()) << floor.message();
  EXPECT_NEAR(floor->warp_instructions, 17 + 10978, 1e-6);
}

// Dot products of a loop are told from its multiply-adds, which it may hold, too: its cost counts once.
TEST(CodegenCudaIssueFloor, CountsWhatDotProductsNeed) {
  GpuKernel k = lowered(132, 128, 1000);
  EXPECT_EQ(sass::lowered_counts(k).dots, 0);
  const Buffer sum = make_buffer("dots", DType::kInt32, {1}, MemoryScope::kRegister),
               a = make_buffer("a", DType::kInt8, {4}, MemoryScope::kRegister);
  const Var step = make_var("dot_step"), term = make_var("term");
  const Expr value = cast(DType::kInt32, load(a, {term}));
  Stmt dot = make_store(sum, {0}, load(sum, {0}) + value * value);
  dot = make_for(term, 4, std::move(dot), AxisKind::kReduce, LoopKind::kDot);
  k.body = make_allocate(sum, make_allocate(a, make_for(step, 3000, std::move(dot))));
  EXPECT_EQ(sass::lowered_counts(k).dots, 3000);
  EXPECT_EQ(sass::lowered_counts(k).multiply_adds, 0);
  SassStream s;
  const int head = s.of(0x226);
  for (int i = 0; i < 2; ++i) s.of(0x226);
  s.ffma();
  s.branch(head);
  s.exit();
  const auto floor = sass::issue_floor(read(s), k, *parse_target("cuda -arch=sm_90a"));
  ASSERT_TRUE(floor.is_ok()) << floor.message();
  EXPECT_NEAR(floor->warp_instructions, 5 * 1000 + 1, 1e-6);
}

TEST(CodegenCudaIssueFloor, TheBusiestSchedulerCounts) {
  EXPECT_NEAR(floor_ns(lowered(132, 96, 1000)) * kClock, 11'002, 1e-6);   // three of four have a warp
  EXPECT_NEAR(floor_ns(lowered(133, 128, 1000)) * kClock, 22'004, 1e-6);  // one multiprocessor has two blocks
}

TEST(CodegenCudaIssueFloor, HalfTheLanesBoundTheFloatPipe) {
  // An A100: 108 multiprocessors of 64 lanes, so a multiply-add takes a scheduler two clocks.
  EXPECT_NEAR(floor_ns(lowered(108, 128, 1000), "sm_80") * 1.41, 16'000, 1e-6);
}

double floor_ns_of(const SassStream& stream, const GpuKernel& k, int resident_blocks) {
  const auto floor = sass::issue_floor(read(stream), k, *parse_target("cuda -arch=sm_90a"), resident_blocks);
  EXPECT_TRUE(floor.is_ok()) << floor.message();
  return floor ? floor->ns : 0;
}

TEST(CodegenCudaIssueFloor, AWarpAloneWaitsForItsLoadsInEachRoundOfBlocks) {
  SassStream s;
  s.integer();
  const int head = s.load(0);
  s.use(0);  // not before clock 30
  for (int i = 0; i < 7; ++i) s.ffma();
  s.branch(head);
  s.exit();
  const GpuKernel k = lowered(264, 32, 1000);  // two blocks of a warp on each multiprocessor
  EXPECT_NEAR(floor_ns_of(s, k, 2) * kClock, 39'002, 1e-6);
  EXPECT_NEAR(floor_ns_of(s, k, 1) * kClock, 78'004, 1e-6);
}

TEST(CodegenCudaIssueFloor, TheMemoryPipeTakesHalfALoadOf128BitsAClock) {
  SassStream s;
  const int head = s.next();
  for (int i = 0; i < 8; ++i) s.lds128();
  for (int i = 0; i < 8; ++i) s.ffma();
  s.branch(head);
  s.exit();
  EXPECT_NEAR(floor_ns_of(s, lowered(132, 1024, 1000), 1) * kClock, 2 * 8 * 32 * 1000, 1e-6);
}

// A kernel of `steps` steps of a loop, each with a barrier and four products of tiles.
GpuKernel lowered_tiles(const std::string& product, int64_t blocks, int64_t threads, int64_t steps) {
  const Intrinsic& intrinsic = *find_intrinsic(product);
  auto node = std::make_shared<StmtNode>();
  node->kind = StmtKind::kIntrinsic;
  node->name = product;
  std::vector<Buffer> buffers;
  for (const IntrinsicOperand& o : intrinsic.operands) {
    buffers.push_back(make_buffer(o.name, o.dtype, {o.registers}, MemoryScope::kRegister));
    node->operands.push_back(load(buffers.back(), {0}));
  }
  const Var step = make_var("step"), i = make_var("i");
  Stmt body = loop(step, steps,
                   make_seq({loop(i, 4, node, LoopKind::kUnrolled), make_barrier(MemoryScope::kShared)}));
  for (const Buffer& buffer : buffers) body = make_allocate(buffer, std::move(body));
  GpuKernel k{.name = "kernel"};
  k.grid = {blocks, 1, 1}, k.block = {threads, 1, 1};
  k.block_vars[0] = make_var("bx"), k.thread_vars[0] = make_var("tx");
  k.body = std::move(body);
  return k;
}
// Four products of tiles a step, among `others` other instructions, one of which is the barrier.
KernelCode tile_code(int others) {
  SassStream s;
  const int head = s.barrier();
  for (int i = 0; i < 4; ++i) s.hmma();
  for (int i = 0; i < others - 2; ++i) s.integer();
  s.branch(head);
  s.exit();
  return read(s);
}
double tile_floor_clocks(const std::string& product, int others, const std::string& arch, int64_t blocks,
                         double clock_ghz) {
  const auto floor = sass::issue_floor(tile_code(others), lowered_tiles(product, blocks, 128, 1000),
                                       *parse_target("cuda -arch=" + arch));
  EXPECT_TRUE(floor.is_ok()) << floor.message();
  return floor ? floor->ns * clock_ghz : 0;
}

TEST(CodegenCudaIssueFloor, ProductsOfTilesAreCounted) {
  const sass::LoweredCounts halves =
      sass::lowered_counts(lowered_tiles("mma.bfloat16.mk.nk", 108, 128, 1000));
  EXPECT_EQ(halves.tiles, 4000);
  EXPECT_EQ(halves.halves, 4000);
  EXPECT_EQ(halves.bytes, 0);
  const sass::LoweredCounts bytes =
      sass::lowered_counts(lowered_tiles("mma.uint8.int8.mk.nk", 108, 128, 1000));
  EXPECT_EQ(bytes.tiles, 4000);
  EXPECT_EQ(bytes.halves, 0);
  EXPECT_EQ(bytes.bytes, 4000);
  EXPECT_EQ(sass::lowered_counts(lowered(1, 32, 1000)).tiles, 0);
}

// A warp on each scheduler does 4,000 products. The clocks of each are those of the vendor's rates.
TEST(CodegenCudaIssueFloor, TensorCoresBoundWhatIssuesFaster) {
  const std::string halves = "mma.bfloat16.mk.nk", bytes = "mma.uint8.int8.mk.nk";
  EXPECT_NEAR(tile_floor_clocks(halves, 4, "sm_80", 108, 1.41), 32'000, 1e-6);
  EXPECT_NEAR(tile_floor_clocks(bytes, 4, "sm_80", 108, 1.41), 32'000, 1e-6);
  EXPECT_NEAR(tile_floor_clocks(halves, 4, "sm_86", 82, 1.70), 128'000, 1e-6);
  EXPECT_NEAR(tile_floor_clocks(bytes, 4, "sm_86", 82, 1.70), 64'000, 1e-6);
  EXPECT_NEAR(tile_floor_clocks(halves, 4, "sm_89", 128, 2.52), 128'000, 1e-6);
  EXPECT_NEAR(tile_floor_clocks(halves, 4, "sm_90a", 132, 1.98), 24'000, 1e-6);
}

// Where a step has more instructions than its products have clocks, those are issued one by one.
TEST(CodegenCudaIssueFloor, LoopsWithProductsOfTilesIssueAllOfTheirInstructions) {
  EXPECT_NEAR(tile_floor_clocks("mma.bfloat16.mk.nk", 60, "sm_90a", 132, 1.98), 64'001, 1e-6);
}

TEST(CodegenCudaIssueFloor, GuardsOfBlocksCountByTheirShare) {
  GpuKernel k = lowered(264, 128, 1000);
  k.body = make_if(Expr(k.block_vars[0]) < 132, k.body);
  EXPECT_NEAR(floor_ns(k) * kClock, 11'002, 1e-6);  // as many as there are multiprocessors have work
  EXPECT_NEAR(sass::lowered_counts(k).active_blocks, 0.5, 1e-9);
}

TEST(CodegenCudaIssueFloor, GuardsOfThreadsCountNothing) {
  GpuKernel k = lowered(132, 128, 1000);
  k.body = make_if(Expr(k.thread_vars[0]) < 100, k.body);
  EXPECT_EQ(sass::lowered_counts(k).multiply_adds, 0);
  EXPECT_NEAR(floor_ns(k) * kClock, 2, 1e-6);
}

TEST(CodegenCudaIssueFloor, NoneForUnknownCode) {
  SassStream s;
  s.of(0x7fe);
  const auto floor = sass::issue_floor(read(s), lowered(1, 32, 1), *parse_target("cuda -arch=sm_90a"));
  ASSERT_FALSE(floor.is_ok());
  EXPECT_NE(floor.message().find("0x7fe"), std::string::npos) << floor.message();
}

}  // namespace
}  // namespace tuner::testing
