// What a warp must have of shared memory, and how often the compiler loads what overlaps.
#include "compiler_core/codegen_cuda/shared_words.h"

#include <gtest/gtest.h>

#include "compiler_core/codegen_cuda/issue_floor.h"
#include "compiler_core/codegen_cuda/sass/sass.h"
#include "compiler_core/codegen_cuda/time_estimate.h"
#include "compiler_core/codegen_cuda/warp_work.h"
#include "tests/compiler_core/gpu_kernels.h"
#include "tests/compiler_core/sass_stream.h"

namespace tuner::testing {
namespace {

constexpr int64_t kSteps = 100;

// A loop with a barrier. In each turn a thread multiplies `rows` x `taps` elements of a tile of shared memory
// with a factor, from its column on: element (row, column + row + tap), so that rows share elements.
struct Windows {
  int64_t rows = 4, taps = 3;
  int64_t lanes_a_column = 1;  // so many lanes side by side have the same column
  LoopKind loops = LoopKind::kUnrolled;
  bool barrier = true, guarded = false, stored = false;
  int64_t threads = 1024;
};
GpuKernel windows(const Windows& p) {
  const Var bx = make_var("bx"), tx = make_var("tx"), step = make_var("step"), row = make_var("row"),
            tap = make_var("tap");
  const Buffer tile = make_buffer("tile", DType::kFloat32, {2048}, MemoryScope::kShared),
               sum = registers("sum", {1}), factor = registers("factor", {1});
  const Expr column = floor_div(tx, p.lanes_a_column) * 32;
  Stmt body = make_store(sum, {0}, load(sum, {0}) + load(tile, {column + row + tap}) * load(factor, {0}));
  body = loop(row, p.rows, loop(tap, p.taps, std::move(body), p.loops), p.loops);
  if (p.stored) body = make_seq({make_store(tile, {Expr(tx)}, load(factor, {0})), std::move(body)});
  if (p.guarded) body = make_if(Expr(tx) < Expr(17), std::move(body));
  if (p.barrier) body = make_seq({std::move(body), make_barrier(MemoryScope::kShared)});
  GpuKernel k{.name = "kernel"};
  k.grid = {132, 1, 1}, k.block = {p.threads, 1, 1};
  k.block_vars[0] = bx, k.thread_vars[0] = tx;
  k.shared = {tile}, k.shared_offsets = {0}, k.shared_bytes = 8192;
  k.body = make_allocate(sum, make_allocate(factor, loop(step, kSteps, std::move(body))));
  return k;
}
double passes(const Windows& p) { return sass::lowered_counts(windows(p)).shared_passes; }

TEST(SharedWords, EachWordCountsOnceBetweenTwoBarriers) {
  EXPECT_EQ(passes({}), 6 * kSteps) << "elements 0 .. 5 of twelve loads";
  EXPECT_EQ(passes({.taps = 1}), 4 * kSteps);
  EXPECT_EQ(passes({.loops = LoopKind::kSerial}), 6 * kSteps) << "whether unrolled or not";
  EXPECT_EQ(passes({.stored = true}), 7 * kSteps) << "one is written";
}

TEST(SharedWords, LanesThatAskInTwosMayBeServedTogether) {
  EXPECT_EQ(passes({.lanes_a_column = 2}), 3 * kSteps);
  EXPECT_EQ(passes({.lanes_a_column = 32}), 3 * kSteps)
      << "no load takes less, and one of 128 bits two passes";
}

TEST(SharedWords, WhatMayNotBeLoadedCountsNothing) {
  EXPECT_EQ(passes({.barrier = false}), 0) << "it may stay in registers from turn to turn";
  EXPECT_EQ(passes({.guarded = true}), 0);
}

// Code with one load a turn, which cannot be all: the floor knows what the statements need.
TEST(SharedWords, TheFloorCountsThem) {
  const auto floor = [](const Windows& p) {
    SassStream s;
    const int head = s.barrier();
    s.lds128();
    for (int64_t i = 0; i < p.rows * p.taps; ++i) s.ffma();
    s.branch(head);
    s.exit();
    const auto code = sass::read_code("kernel", s.bytes(), 90);
    return sass::issue_floor(*code, windows(p), *parse_target("cuda -arch=sm_90a"))->ns;
  };
  EXPECT_NEAR(floor({.rows = 10}) * 1.98, 12 * 32 * kSteps, 1e-6);  // 32 warps, 12 words each
  EXPECT_NEAR(floor({.rows = 20}) * 1.98, 22 * 32 * kSteps, 1e-6);
}

TEST(SharedWords, OverlappingWindowsAreLoadedOnceWhereLoopsAreUnrolled) {
  const auto accesses = [](const Windows& p) {
    return cuda::warp_work(windows(p), 1).counts[cuda::Issue::kAccess];
  };
  EXPECT_EQ(accesses({}), 6 * kSteps);
  EXPECT_EQ(accesses({.taps = 1}), kSteps) << "four side by side are one of 128 bits";
  EXPECT_EQ(accesses({.loops = LoopKind::kSerial}), 12 * kSteps);
}

// A warp alone: a statement that loads all it multiplies waits several times where that is much.
TEST(SharedWords, ManyLoadsOfOneStatementAreWaitedForInParts) {
  const Target h200 = *parse_target("cuda -arch=sm_90a");
  const auto alone = [&](int64_t rows) {
    return estimate_time(windows({.rows = rows, .threads = 32}), h200).alone_ns;
  };
  const double six_loads = alone(4) - alone(2), ten_loads = alone(8) - alone(6);
  // Two loads are a third of a part, of 30 clocks.
  EXPECT_NEAR((ten_loads - six_loads) * 1.98, 10 * kSteps, kSteps);
}

}  // namespace
}  // namespace tuner::testing
