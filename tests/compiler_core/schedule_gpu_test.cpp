// GPU primitives: the loops they make, that they keep the meaning, and what they refuse.
#include <cmath>
#include <limits>
#include <random>

#include "compiler_core/oracle/oracle.h"
#include "tests/compiler_core/gpu_schedules.h"

namespace tuner {
namespace {

using testing::gpu_product;
using testing::loops;
using testing::tiled_product;

// A Program with bound axes, read as if all loops were serial, computes what the math says.
void expect_meaning(const Schedule& s, const Program& math) {
  const auto scheduled = s.finish();
  ASSERT_TRUE(scheduled.is_ok()) << scheduled.message();
  std::mt19937_64 rng(7);
  std::vector<std::vector<double>> args, expected;
  for (const Buffer& b : math.args) {
    args.emplace_back();
    if (b->role == BufferRole::kOutput) continue;
    for (int64_t i = 0; i < b->elements(); ++i)
      args.back().push_back(static_cast<double>(rng() % 2001) / 1000 - 1);
  }
  expected = args;
  ASSERT_TRUE(interpret(math, expected).is_ok());
  const Status status = interpret(*scheduled, args);
  ASSERT_TRUE(status.is_ok()) << status.message();
  for (size_t i = 0; i < expected.back().size(); ++i)
    ASSERT_NEAR(args.back()[i], expected.back()[i], 1e-12 * (1 + std::abs(expected.back()[i]))) << i;
}

std::string refusal(const Schedule& s) { return s.finish().message(); }

TEST(ScheduleGpu, TileInSharedMemoryIsWhatTheWholeBlockReads) {
  Schedule s(gpu_product(8, 8, 4));
  const Tensor out = s.tensor("out"), acc = s.tensor("acc");
  const Tensor a = s.cache_read(s.tensor("a"), MemoryScope::kShared, acc);
  s.set_scope(acc, MemoryScope::kRegister);
  const auto [i, j] = s.axes<2>(out);
  const auto [block, ty] = s.split(i, 4);
  s.reorder({block, ty, j});
  s.bind(block, LoopKind::kBlockX);
  s.bind(ty, LoopKind::kThreadY);
  s.bind(j, LoopKind::kThreadX);
  s.compute_at(acc, j);
  s.compute_at(a, j);
  EXPECT_EQ(loops(s), R"(
blockIdx.x i.outer in 0..2
  threadIdx.y i.inner in 0..4
    threadIdx.x j in 0..8
      allocate acc float32[1, 1] register
      allocate a.shared float32[4, 4] shared
      for i0 in 0..4
        for i1 in 0..4
          a.shared[i0, i1] = a[i.outer*4 + i0, i1]
      for i in 0..1
        for j_1 in 0..1
          reduce k in 0..4
            acc[0, 0] += a.shared[i.inner, k] * b[k, j], from 0 when k == 0
      out[i.outer*4 + i.inner, j] = max(acc[0, 0], 0)
)");
  expect_meaning(s, gpu_product(8, 8, 4));
}

TEST(ScheduleGpu, TiledProductKeepsItsMeaning) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{8, 16, 8}, {7, 13, 5}, {1, 1, 1}, {9, 8, 10}})
    for (const bool virtual_threads : {false, true})
      for (const int stages : {1, 2, 3}) {
        SCOPED_TRACE(str(m, "x", n, "x", k, " virtual ", virtual_threads, " stages ", stages));
        testing::TiledOptions o;
        o.virtual_threads = virtual_threads;
        o.double_buffer = stages > 1;
        o.in_registers = stages == 2;
        ASSERT_NO_FATAL_FAILURE(expect_meaning(tiled_product(m, n, k, o), gpu_product(m, n, k)));
      }
}

TEST(ScheduleGpu, TraceReplays) {
  testing::TiledOptions o;
  o.virtual_threads = o.double_buffer = true;
  o.layout_a = "xor:1,4";
  Schedule s = tiled_product(9, 10, 11, o);
  s.launch_bounds(2);
  ASSERT_TRUE(s.finish().is_ok()) << refusal(s);
  const auto again = replay(gpu_product(9, 10, 11), s.trace());
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(to_text(*again), to_text(*s.finish()));
  EXPECT_EQ(again->min_blocks, 2);
}

TEST(ScheduleGpu, PadReductionNeedsZerosBeyondTheEnd) {
  Schedule plain(gpu_product(4, 4, 5));
  plain.pad_reduction(plain.reduce_axes<1>(plain.tensor("acc"))[0], 4);
  EXPECT_EQ(refusal(plain),
            "pad_reduction(k, 4): b[k, j] would be read out of bounds; pack b in blocks of 4 first");

  // One padded operand is not enough: 0 * x is not 0 for every x.
  Schedule half(gpu_product(4, 4, 5));
  half.pack(half.tensor("a"), {{1, 4}, {0}, {1, 4, true}});
  half.pad_reduction(half.reduce_axes<1>(half.tensor("acc"))[0], 4);
  EXPECT_EQ(refusal(half),
            "pad_reduction(k, 4): b[k, j] would be read out of bounds; pack b in blocks of 4 first");

  Schedule both(gpu_product(4, 4, 5));
  both.pack(both.tensor("a"), {{1, 4}, {0}, {1, 4, true}});
  both.pack(both.tensor("b"), {{0, 4}, {1}, {0, 4, true}});
  both.pad_reduction(both.reduce_axes<1>(both.tensor("acc"))[0], 4);
  EXPECT_EQ(both.extent(both.reduce_axes<1>(both.tensor("acc"))[0]), 8);
  expect_meaning(both, gpu_product(4, 4, 5));

  Schedule spatial(gpu_product(4, 4, 5));
  spatial.pad_reduction(spatial.axes<2>(spatial.tensor("out"))[0], 4);
  EXPECT_EQ(refusal(spatial), "pad_reduction(out:i, 4): not a reduce axis");

  Schedule huge(gpu_product(4, 4, 5));
  huge.pad_reduction(huge.reduce_axes<1>(huge.tensor("acc"))[0], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(
      refusal(huge),
      "pad_reduction(k, 9223372036854775807): k has 5 iterations; in multiples of 9223372036854775807 its "
      "nest would have more than 2^60, which indices cannot count");
}

TEST(ScheduleGpu, RfactorSumsSharesFirst) {
  for (const int64_t share : {2, 3, 4, 10}) {  // 3 and 4 leave shares that are partly or wholly empty
    Schedule s(gpu_product(3, 2, 10));
    const Tensor acc = s.tensor("acc");
    const auto [k] = s.reduce_axes<1>(acc);
    const auto [split, inside] = s.split(k, share);
    s.rfactor(acc, split);
    SCOPED_TRACE(share);
    ASSERT_NO_FATAL_FAILURE(expect_meaning(s, gpu_product(3, 2, 10)));
  }
  Schedule s(gpu_product(2, 2, 10));
  s.rfactor(s.tensor("acc"), s.axes<2>(s.tensor("out"))[0]);
  EXPECT_EQ(refusal(s), "rfactor(acc, out:i): not a reduce axis of acc");

  Schedule huge(gpu_product(3, 2, 10));
  const auto [k] = huge.reduce_axes<1>(huge.tensor("acc"));
  huge.rfactor(huge.tensor("acc"), huge.split(k, int64_t{1} << 50).inner);
  EXPECT_EQ(
      refusal(huge),
      "rfactor(acc, k.inner): acc.partial[1125899906842624, 3, 2] would take more than 2^47 bytes, which no "
      "process can address");
}

TEST(ScheduleGpu, BindRefuses) {
  const auto bound = [](auto prepare) {
    Schedule s(gpu_product(8, 8, 48));
    prepare(s);
    return refusal(s);
  };
  EXPECT_EQ(bound([](Schedule& s) { s.bind(s.reduce_axes<1>(s.tensor("acc"))[0], LoopKind::kBlockX); }),
            "bind(k, blockIdx.x): a reduce axis; only threadIdx.x can reduce across threads");
  EXPECT_EQ(
      bound([](Schedule& s) { s.bind(s.reduce_axes<1>(s.tensor("acc"))[0], LoopKind::kThreadX); }),
      "bind(k, threadIdx.x): a reduce axis of extent 48; across threads it must be a power of two up to "
      "32 or a multiple of 32 up to 1024");
  for (const auto& [extent, fits] : {std::pair<int64_t, bool>{16, true},
                                     {32, true},
                                     {96, true},
                                     {1024, true},
                                     {1056, false},
                                     {2048, false},
                                     {24, false}}) {
    Schedule s(gpu_product(8, 8, extent));
    const Tensor acc = s.tensor("acc");
    s.bind(s.reduce_axes<1>(acc)[0], LoopKind::kThreadX);
    EXPECT_EQ(refusal(s).find("a reduce axis of extent") == std::string::npos, fits) << extent;
  }
  EXPECT_EQ(bound([](Schedule& s) {
              const auto [i, j] = s.axes<2>(s.tensor("out"));
              s.bind(i, LoopKind::kBlockX);
              s.bind(j, LoopKind::kBlockX);
            }),
            "bind(out:j, blockIdx.x): i on the same path is bound to blockIdx.x already");
}

// A copy of a copy, both in the loop: the second cannot run ahead of the first.
TEST(ScheduleGpu, WhatTheLoopStoresIsNotCopiedAhead) {
  const auto prepared = [] {
    te::Builder b("twice");
    const Buffer x = b.input("x", {256});
    const Buffer twice = b.compute("twice", {256}, [&](const te::Indices& i) { return load(x, i) * 2; });
    b.compute("out", {256}, [&](const te::Indices& i) { return load(twice, i) + 1; }, BufferRole::kOutput,
              {"i"});
    Schedule s(b.finish());
    const auto [i] = s.axes<1>(s.tensor("out"));
    const auto [block, in_block] = s.split(i, 128);
    const auto [step, thread] = s.split(in_block, 32);
    s.bind(block, LoopKind::kBlockX);
    s.bind(thread, LoopKind::kThreadX);
    s.rename(step, "step");
    s.set_scope(s.tensor("twice"), MemoryScope::kShared);
    s.cache_read(s.tensor("twice"), MemoryScope::kShared, s.tensor("out"));
    for (const char* stage : {"twice.shared", "twice"}) s.compute_at(s.tensor(stage), s.axis("step"));
    return s;
  };
  Schedule doubled = prepared();
  doubled.double_buffer(doubled.tensor("twice.shared"), doubled.axis("step"));
  EXPECT_EQ(refusal(doubled),
            "double_buffer(twice.shared, step, registers): twice.shared copies twice, which is stored in "
            "step: what a "
            "later iteration copies is not there before");
  Schedule piped = prepared();
  piped.pipeline({piped.tensor("twice.shared")}, piped.axis("step"), 2);
  EXPECT_EQ(
      refusal(piped),
      "pipeline({twice.shared}, step, 2): twice.shared copies twice, which is stored in step: what a later "
      "iteration copies is not there before");
}

TEST(ScheduleGpu, SharedMemoryPrimitivesRefuse) {
  Schedule scope(gpu_product(8, 8, 8));
  scope.set_layout(scope.tensor("acc"), "pad:1");
  EXPECT_EQ(refusal(scope), "set_layout(acc, {pad:1}): acc is in global memory; set_scope(shared) first");

  Schedule unit = tiled_product(8, 8, 8);
  unit.set_layout(unit.tensor("b.packed"), "xor:4,4");
  EXPECT_EQ(
      refusal(unit),
      "set_layout(b.packed, {xor:4,4}): layout xor:4,4: the last dimension, 8, is not a multiple of 16");

  Schedule outside = tiled_product(8, 8, 8);
  outside.double_buffer(outside.tensor("a.packed"), outside.axis("i.outer"));
  EXPECT_EQ(refusal(outside),
            "double_buffer(a.packed, i.outer, registers): i.outer is blockIdx.y; it must be serial");

  Schedule few = tiled_product(8, 8, 8);
  few.pipeline({few.tensor("a.packed")}, few.axis("k.outer"), 4);
  EXPECT_EQ(refusal(few),
            "pipeline({a.packed}, k.outer, 4): k.outer has 2 iterations; 4 stages need at least 3");

  Schedule name = tiled_product(8, 8, 8);
  name.rename(name.axis("k.outer"), "two words");
  EXPECT_EQ(refusal(name), "rename(k.outer, two words): a name is a word without \" ,:(){}\"");
  for (const std::string wrong : {"", "a:b", "a,b", "a(b", "a)b", "{a", "a}"}) {
    Schedule other = tiled_product(8, 8, 8);
    other.rename(other.axis("k.outer"), wrong);
    EXPECT_EQ(refusal(other), "rename(k.outer, " + wrong + "): a name is a word without \" ,:(){}\"");
  }
}

TEST(ScheduleGpu, LaunchBoundsAreOneTo32) {
  const auto bounded = [](int blocks) {
    Schedule s = tiled_product(8, 8, 8);
    s.launch_bounds(blocks);
    return refusal(s);
  };
  EXPECT_EQ(bounded(1), bounded(32));
  EXPECT_EQ(bounded(0), "launch_bounds(0): blocks of a multiprocessor must be in 1..32");
  EXPECT_EQ(bounded(33), "launch_bounds(33): blocks of a multiprocessor must be in 1..32");
}

}  // namespace
}  // namespace tuner
