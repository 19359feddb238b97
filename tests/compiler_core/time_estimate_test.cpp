// Estimated times of GPU kernels: facts that any of them must respect, whatever its constants.
#include "compiler_core/codegen_cuda/time_estimate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/device_rates.h"
#include "compiler_core/codegen_cuda/warp_access.h"
#include "compiler_core/codegen_cuda/warp_work.h"
#include "tests/compiler_core/gpu_kernels.h"

namespace tuner::testing {
namespace {

Target target(const std::string& arch = "sm_90a") { return *parse_target("cuda -arch=" + arch); }
double ns(const GpuKernel& k, const std::string& arch = "sm_90a") {
  return estimate_time(k, target(arch)).ns;
}
TimeBound bound(const GpuKernel& k) { return estimate_time(k, target()).bound; }
constexpr double kLaunchNs = 2000;

GpuKernel with_shared(GpuKernel k, const Buffer& tile) {
  k.shared = {tile}, k.shared_offsets = {0};
  k.shared_bytes = (storage_elements(*tile) * 4 + 15) / 16 * 16;
  return k;
}

// A kernel that reads a [32, 160] tile of shared memory again and again, four elements a lane: each lane in a
// row of its own (a column walk), or all of them side by side in one row, from column `first` on.
struct TileReads {
  std::string layout;
  bool by_rows = false;
  int64_t first = 0;
  int64_t rounds = 1024, blocks = 264;
};
GpuKernel tile_reads(const TileReads& p) {
  const Buffer out = output("out", {p.blocks * 256});
  BufferNode node = *make_buffer("tile", DType::kFloat32, {32, 160}, MemoryScope::kShared);
  node.layout = p.layout;
  const Buffer tile = std::make_shared<BufferNode>(node), sum = registers("sum", {4});
  const Var bx = make_var("bx"), tx = make_var("tx"), round = make_var("round"), lane = make_var("lane");
  const Expr thread = floor_mod(tx, 32);
  const std::vector<Expr> index = p.by_rows
                                      ? std::vector<Expr>{thread, floor_mod(round, 32) * 4 + lane + p.first}
                                      : std::vector<Expr>{floor_mod(round, 32), thread * 4 + lane + p.first};
  Stmt update = make_store(sum, {lane}, load(sum, {lane}) + load(tile, index));
  update = loop(lane, 4, std::move(update), LoopKind::kUnrolled);
  Stmt body = make_seq({reduce_loop(round, p.rounds, std::move(update)),
                        make_store(out, {Expr(bx) * 256 + tx}, load(sum, {0}))});
  GpuKernel k{.name = "tile_reads"};
  k.grid = {p.blocks, 1, 1}, k.block = {256, 1, 1};
  k.block_vars[0] = bx, k.thread_vars[0] = tx;
  k.params = {out};
  k.body = make_allocate(sum, std::move(body));
  return with_shared(std::move(k), tile);
}

// y[i] = x[i * stride], one element a thread.
GpuKernel strided_copy(int64_t n, int64_t stride) {
  const Buffer x = input("x", {n * stride}), y = output("y", {n});
  const Var bx = make_var("bx"), tx = make_var("tx");
  const Expr i = Expr(bx) * 256 + tx;
  GpuKernel k{.name = "copy"};
  k.grid = {n / 256, 1, 1}, k.block = {256, 1, 1};
  k.block_vars[0] = bx, k.thread_vars[0] = tx;
  k.params = {x, y};
  k.body = make_store(y, {i}, load(x, {i * stride}));
  return k;
}

// `steps` multiply-adds of a thread, on eight sums; `rounds` of eight are written out in a turn of the loop.
GpuKernel arithmetic(int64_t blocks, int64_t steps, int64_t rounds = 1) {
  const Buffer x = input("x", {256}), y = output("y", {blocks * 256});
  const Buffer sum = registers("sum", {8}), factor = registers("factor", {1});
  const Var bx = make_var("bx"), tx = make_var("tx"), step = make_var("step"), i = make_var("i");
  Stmt update = make_store(sum, {i}, load(sum, {i}) * load(factor, {0}) + load(factor, {0}));
  update = loop(i, 8, std::move(update), LoopKind::kUnrolled);
  update = loop(make_var("round"), rounds, std::move(update), LoopKind::kUnrolled);
  update = loop(step, steps / 8 / rounds, std::move(update));
  GpuKernel k{.name = "arithmetic"};
  k.grid = {blocks, 1, 1}, k.block = {256, 1, 1};
  k.block_vars[0] = bx, k.thread_vars[0] = tx;
  k.params = {x, y};
  k.body = make_allocate(
      sum, make_allocate(factor, make_seq({make_store(factor, {0}, load(x, {tx})), std::move(update),
                                           make_store(y, {Expr(bx) * 256 + tx}, load(sum, {0}))})));
  return k;
}

std::vector<int64_t> words(int64_t lanes, int64_t stride) {
  std::vector<int64_t> w;
  for (int64_t lane = 0; lane < lanes; ++lane) w.push_back(lane * stride);
  return w;
}

TEST(TimeEstimate, BanksOfSharedMemory) {
  EXPECT_EQ(cuda::shared_passes(words(32, 1), 1).all, 1);
  EXPECT_EQ(cuda::shared_passes(words(32, 2), 1).least, 1);
  EXPECT_EQ(cuda::shared_passes(words(32, 4), 4).least, 4);
  EXPECT_EQ(cuda::shared_passes(words(32, 0), 1).all, 1);  // all the same word
  EXPECT_EQ(cuda::shared_passes(words(32, 2), 1).all, 2);
  EXPECT_EQ(cuda::shared_passes(words(32, 32), 1).all, 32);
  EXPECT_EQ(cuda::shared_passes(words(32, 33), 1).all, 1);   // padded
  EXPECT_EQ(cuda::shared_passes(words(32, 4), 4).all, 4);    // 512 bytes
  EXPECT_EQ(cuda::shared_passes(words(32, 132), 4).all, 4);  // rows of 128, padded by 4
  EXPECT_EQ(cuda::shared_passes(words(32, 128), 4).all, 32);
  EXPECT_EQ(cuda::shared_passes(words(5, 32), 1).all, 5);
}

TEST(TimeEstimate, PaddingAndSwizzlesAreCheaperThanBankConflicts) {
  const double conflicts = ns(tile_reads({.by_rows = true})) - kLaunchNs;
  EXPECT_GT(conflicts, 4 * (ns(tile_reads({.layout = "pad:4", .by_rows = true})) - kLaunchNs));
  EXPECT_GT(conflicts, 2 * (ns(tile_reads({.layout = "xor:4,8", .by_rows = true})) - kLaunchNs));
  EXPECT_EQ(bound(tile_reads({.by_rows = true})), TimeBound::kSharedMemory);
}

TEST(TimeEstimate, VectorsFromSharedMemoryAreCheaperThanElements) {
  // From column 1 on no four elements are aligned: four accesses, each with four lanes in a bank.
  EXPECT_LT(2 * (ns(tile_reads({})) - kLaunchNs), ns(tile_reads({.first = 1})) - kLaunchNs);
  // Without conflicts either way, what is left is the instructions.
  EXPECT_LT(ns(tile_reads({.layout = "pad:4", .by_rows = true})),
            ns(tile_reads({.layout = "pad:1", .by_rows = true})));
}

TEST(TimeEstimate, CoalescedIsCheaperThanStrided) {
  constexpr int64_t kElements = 1 << 22;
  double before = ns(strided_copy(kElements, 1));
  EXPECT_EQ(bound(strided_copy(kElements * 8, 1)), TimeBound::kMemory);
  for (const int64_t stride : {2, 4, 8}) {
    const double now = ns(strided_copy(kElements, stride));
    EXPECT_GT(now, before) << stride;
    before = now;
  }
}

// A copy of 1 GiB cannot be faster than the memory, and a good one is not much slower.
TEST(TimeEstimate, LargeCopyTakesTheTimeOfItsBytes) {
  constexpr int64_t kElements = int64_t{1} << 27;
  const double at_full_rate = 2.0 * 4 * kElements / 4300;  // bytes / (GB/s) = ns
  const double found = ns(elementwise(kElements).kernels[0]);
  EXPECT_GE(found, at_full_rate);
  EXPECT_LE(found, 1.3 * at_full_rate);
}

// 132 multiprocessors with one block each, or one that does it all.
TEST(TimeEstimate, OneBlockWithAllTheWorkIsSlowerThanABlockForEachMultiprocessor) {
  const double spread = ns(arithmetic(132, 80'000)) - kLaunchNs;
  const double alone = ns(arithmetic(1, 80'000 * 132)) - kLaunchNs;
  EXPECT_NEAR(alone / spread, 132, 7);
}

// Four schedulers: the fifth warp is the second of one of them.
TEST(TimeEstimate, WarpsGoToSchedulersWhole) {
  GpuKernel four = arithmetic(132, 80'000, 100), five = arithmetic(132, 80'000, 100);
  four.block = {128, 1, 1}, five.block = {160, 1, 1};
  EXPECT_NEAR((ns(five) - kLaunchNs) / (ns(four) - kLaunchNs), 2, 0.05);
}

// A warp stands still when a turn of its loop ends; a second one of the same scheduler issues meanwhile.
TEST(TimeEstimate, ASecondWarpIssuesWhileTheFirstOneStandsStill) {
  GpuKernel four = arithmetic(132, 80'000), five = arithmetic(132, 80'000);
  four.block = {128, 1, 1}, five.block = {160, 1, 1};
  EXPECT_LT(ns(five) - kLaunchNs, 1.3 * (ns(four) - kLaunchNs));
  EXPECT_GT(ns(four) - kLaunchNs, 1.3 * (ns(arithmetic(132, 80'000, 100)) - kLaunchNs) / 2);
}

TEST(TimeEstimate, BlocksThatLeaveAtOnceDoNotCount) {
  GpuKernel half = arithmetic(264, 80'000);
  half.body = make_if(floor_mod(half.block_vars[0], 2) < 1, half.body);
  EXPECT_NEAR(ns(half), ns(arithmetic(132, 80'000)), 0.02 * ns(half));
}

TEST(TimeEstimate, TwiceTheWorkTakesTwiceAsLong) {
  const double once = ns(arithmetic(1056, 80'000)) - kLaunchNs;
  EXPECT_NEAR((ns(arithmetic(1056, 160'000)) - kLaunchNs) / once, 2, 0.05);
  EXPECT_NEAR((ns(arithmetic(2112, 80'000)) - kLaunchNs) / once, 2, 0.05);
  const double product = ns(tiled_matmul({.m = 2048, .n = 2048, .k = 512, .tile = 8}).kernels[0]) - kLaunchNs;
  const double deeper = ns(tiled_matmul({.m = 2048, .n = 2048, .k = 1024, .tile = 8}).kernels[0]) - kLaunchNs;
  EXPECT_NEAR(deeper / product, 2, 0.1);
}

// A last wave that is nearly empty costs about as much as a full one.
TEST(TimeEstimate, OneBlockMoreThanFitsIsAnotherWave) {
  const int64_t fits = estimate_resources(arithmetic(1, 8), target()).blocks_per_sm;
  const double full = ns(arithmetic(132 * fits, 80'000)) - kLaunchNs;
  const double more = ns(arithmetic(132 * fits + 1, 80'000)) - kLaunchNs;
  EXPECT_GT(more, full * 1.05);
  EXPECT_LT(more, full * 2);
}

// No multiply-add rate above the device's, and a good tile comes near it.
TEST(TimeEstimate, ProductsStayBelowThePeak) {
  for (const int64_t tile : {4, 8}) {
    const GpuKernel k = tiled_matmul({.m = 4096, .n = 4096, .k = 4096, .tile = tile}).kernels[0];
    const double at_peak_ns = 4096.0 * 4096 * 4096 / (132 * 128 * 1.98);
    EXPECT_GT(ns(k), at_peak_ns) << tile;
    EXPECT_LT(ns(k), 3 * at_peak_ns) << tile;
  }
  const auto of_tile = [](int64_t tile) {
    return ns(tiled_matmul({.m = 4096, .n = 4096, .k = 4096, .tile = tile}).kernels[0]);
  };
  EXPECT_LT(of_tile(8), of_tile(4));  // twice the work for each element from shared memory
}

// A dot product of four bytes is one instruction, and twice as long in its pipe as a multiply-add of an H200.
TEST(TimeEstimate, ADotProductIsOneInstruction) {
  const auto sums = [](bool dots) {
    const int64_t terms = dots ? 4 : 1;
    const DType type = dots ? DType::kInt32 : DType::kFloat32, from = dots ? DType::kInt8 : DType::kFloat32;
    const Buffer y = make_buffer("y", type, {256}, MemoryScope::kGlobal, BufferRole::kOutput);
    const Buffer sum = make_buffer("sum", type, {64}, MemoryScope::kRegister),
                 factor = make_buffer("factor", from, {64, terms}, MemoryScope::kRegister);
    const Var tx = make_var("tx"), step = make_var("step"), i = make_var("i"), term = make_var("term");
    const Expr value = cast(type, load(factor, {i, term}));
    Stmt update = make_store(sum, {i}, load(sum, {i}) + value * value);
    if (dots) update = make_for(term, terms, update, AxisKind::kReduce, LoopKind::kDot);
    if (!dots) update = substitute(update, {{term, Expr(0)}});
    GpuKernel k{.name = "sums"};
    k.block = {256, 1, 1}, k.thread_vars[0] = tx;
    k.params = {y};
    k.body = make_seq(
        {loop(step, 1000, loop(i, 64, update, LoopKind::kUnrolled)), make_store(y, {tx}, load(sum, {0}))});
    k.body = make_allocate(sum, make_allocate(factor, k.body));
    return k;
  };
  const cuda::WarpCounts dots = cuda::warp_work(sums(true), 1).counts,
                         floats = cuda::warp_work(sums(false), 1).counts;
  EXPECT_EQ(dots.dots, 64000);
  EXPECT_EQ(dots.arithmetic, 0);
  EXPECT_EQ(floats.arithmetic, 64000);
  EXPECT_EQ(dots.instructions(), floats.instructions());
  EXPECT_NEAR((ns(sums(true)) - kLaunchNs) / (ns(sums(false)) - kLaunchNs), 2, 0.2);
}

// Boost rates of the vendor's data sheets: float32 (TFLOP/s), dense tensor cores (16-bit floats with float32
// sums; bytes), memory in GB/s, the second cache in MB. A zero: its data sheet says nothing that the estimate
// takes.
TEST(TimeEstimate, DevicesHaveTheRatesOfTheirDataSheets) {
  struct Sheet {
    const char* arch;
    double float32, halves, bytes, memory, l2_mib;
  };
  for (const Sheet& d : {Sheet{"sm_70", 15.7, 125, 0, 900, 6}, Sheet{"sm_75", 8.1, 65, 130, 320, 4},
                         Sheet{"sm_80", 19.5, 312, 624, 2039, 40}, Sheet{"sm_86", 35.6, 71, 284, 936, 6},
                         Sheet{"sm_89", 82.6, 165.2, 660.6, 1008, 72}, Sheet{"sm_90", 67, 0, 0, 0, 0},
                         Sheet{"sm_120", 104.8, 209.5, 838, 1792, 96}}) {
    SCOPED_TRACE(d.arch);
    const cuda::DeviceRates& rates = cuda::device_rates(target(d.arch));
    const double clocks = rates.multiprocessors * rates.clock_ghz / 1000;  // 10^12 a second
    const double tiles = 4 * 2 * 16 * 8 * clocks;  // operations of one product of a tile
    const auto is = [](double found, double sheet) {
      if (sheet > 0) {
        EXPECT_NEAR(found / sheet, 1, 0.025) << found << " for " << sheet;
      }
    };
    is(rates.fp32_lanes * 2 * clocks, d.float32);
    is(16 * tiles / rates.mma.halves, d.halves);
    is(32 * tiles / rates.mma.bytes, d.bytes);
    is(rates.dram_gb_per_s, d.memory);
    is(static_cast<double>(rates.l2_bytes >> 20), d.l2_mib);
  }
  EXPECT_EQ(cuda::device_rates(target("sm_90a")).device, "H200");
  EXPECT_EQ(cuda::device_rates(target("sm_120")).device, "RTX 5090");
}

TEST(TimeEstimate, FasterDevicesAreFaster) {
  const GpuKernel k = tiled_matmul({.m = 4096, .n = 4096, .k = 4096, .tile = 8}).kernels[0];
  EXPECT_GT(ns(k, "sm_75"), ns(k, "sm_80"));
  EXPECT_GT(ns(k, "sm_80"), ns(k, "sm_90a"));
}

// One warp: in each step a load from global memory, 1,024 multiply-adds, and a use of what was loaded; the
// load stands before the multiply-adds or after them.
GpuKernel lonely_steps(bool load_early) {
  const Buffer x = input("x", {32 * 1024}), y = output("y", {1});
  const Buffer staged = registers("staged", {1}), sum = registers("sum", {8});
  const Var step = make_var("step"), r = make_var("r"), i = make_var("i"), tx = make_var("tx");
  Stmt fetch = make_store(staged, {0}, load(x, {Expr(step) * 32 + tx}));
  Stmt work = make_store(sum, {i}, load(sum, {i}) * load(sum, {i}) + load(sum, {i}));
  work = loop(r, 128, loop(i, 8, std::move(work), LoopKind::kUnrolled), LoopKind::kUnrolled);
  Stmt use = make_store(sum, {0}, load(sum, {0}) + load(staged, {0}));
  Stmt body = load_early ? make_seq({fetch, work, use}) : make_seq({work, fetch, use});
  GpuKernel k{.name = "lonely"};
  k.grid = {1, 1, 1}, k.block = {32, 1, 1};
  k.thread_vars[0] = tx;
  k.params = {x, y};
  body = make_seq({loop(step, 1024, std::move(body)), make_store(y, {0}, load(sum, {0}))});
  k.body = make_allocate(sum, make_allocate(staged, std::move(body)));
  return k;
}

TEST(TimeEstimate, WaitingCostsWhereNothingElseRuns) {
  EXPECT_EQ(bound(row_sum(8, 4096).kernels[0]), TimeBound::kLatency);
  const double early = ns(lonely_steps(true)) - kLaunchNs, late = ns(lonely_steps(false)) - kLaunchNs;
  const double waits = 1024 * 280 / 1.98;  // for L2, in every step
  EXPECT_GT(late - early, 0.8 * waits);
  EXPECT_LT(late - early, 1.2 * waits);
}

TEST(TimeEstimate, WhatDoesNotFitTakesForever) {
  GpuKernel k = elementwise(1024).kernels[0];
  k.shared_bytes = 1 << 20;
  EXPECT_TRUE(std::isinf(ns(k)));
  k = elementwise(1024).kernels[0];
  k.grid = {0, 1, 1};
  EXPECT_TRUE(std::isinf(ns(k)));
  k = elementwise(1024).kernels[0];
  k.body = nullptr;
  EXPECT_TRUE(std::isfinite(ns(k)));
}

TEST(TimeEstimate, KernelsOfAProgramAddUp) {
  GpuProgram program = elementwise(1 << 24);
  const double one = estimate_time(program, target()).ns;
  program.kernels.push_back(program.kernels[0]);
  EXPECT_DOUBLE_EQ(estimate_time(program, target()).ns, 2 * one);
}

// The cost of an estimate, counted and not timed: an evaluation is well below a microsecond.
TEST(TimeEstimate, EvaluationsAreBounded) {
  EXPECT_LT(estimate_time(tiled_matmul({.tile = 8}), target()).evaluations, 5000);
  GpuKernel k = strided_copy(1 << 16, 1);
  std::vector<Stmt> many;
  for (int i = 0; i < 2000; ++i) many.push_back(make_if(Expr(k.thread_vars[0]) < Expr(255), k.body));
  k.body = make_seq(many);
  const TimeEstimate e = estimate_time(k, target());
  EXPECT_GT(e.evaluations, 5000);
  EXPECT_LT(e.evaluations, cuda::WarpSampler::kMaxEvaluations + 256);
  EXPECT_TRUE(std::isfinite(e.ns));
}

}  // namespace
}  // namespace tuner::testing
