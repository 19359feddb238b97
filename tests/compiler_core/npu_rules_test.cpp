// What a program may not do: each rule of compiler_core/npu/README.md broken once, and kept beside it. The
// message names the instruction.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "compiler_core/npu/simulator.h"
#include "compiler_core/npu/text.h"
#include "tests/compiler_core/npu_programs.h"
#include "tests/random_seed.h"

namespace tuner::npu {
namespace {

std::optional<Fault> fault_of(const std::string& text, size_t dram_bytes = 8192) {
  const Result<Code> code = parse_code(text);
  EXPECT_TRUE(code.is_ok()) << code.message();
  std::vector<uint8_t> dram(dram_bytes, 1);
  return code.is_ok() ? simulate({}, *code, dram).fault : std::nullopt;
}

std::string message_of(const std::string& text) {
  const std::optional<Fault> fault = fault_of(text);
  return fault ? fault->message : "no fault";
}

// `wrong` stops with this kind at this instruction, `right` runs through.
void expect_rule(FaultKind kind, uint32_t instruction, const std::string& wrong, const std::string& message,
                 const std::string& right) {
  const std::optional<Fault> fault = fault_of(wrong);
  ASSERT_TRUE(fault) << wrong;
  EXPECT_EQ(fault->kind, kind);
  EXPECT_EQ(fault->instruction, instruction);
  EXPECT_EQ(fault->message, message);
  EXPECT_EQ(message_of(right), "no fault") << right;
}

TEST(NpuRules, ScratchpadBounds) {
  expect_rule(FaultKind::kOutside, 0, "load target=16381 rows=1 bytes=64",
              "#0 load target=16381 rows=1 bytes=64: touches scratchpad word 16384, outside: there are 16384",
              "load target=16380 rows=1 bytes=64");
}

TEST(NpuRules, DramBounds) {
  expect_rule(FaultKind::kOutside, 1, "set_load dram_stride=4096\nload dram=1 rows=3 bytes=16",
              "#1 load dram=1 rows=3 bytes=16: touches DRAM at byte 8193, outside of its 8192 bytes",
              "set_load dram_stride=4088\nload dram=0 rows=3 bytes=16");
  EXPECT_TRUE(fault_of("load dram=8180 rows=1 bytes=13"));
  EXPECT_FALSE(fault_of("load dram=8180 rows=1 bytes=12"));
  EXPECT_TRUE(fault_of("load rows=1 bytes=16", /*dram_bytes=*/0));
}

TEST(NpuRules, AccumulatorBounds) {
  const std::string load = "load rows=1 bytes=256 gives=compute\n";
  expect_rule(
      FaultKind::kOutside, 1, load + "matmul_os rows=1 sums=1009 waits=load",
      "#1 matmul_os sums=1009 rows=1 waits=load: touches accumulator row 1024, outside: there are 1024",
      load + "matmul_os rows=1 sums=1008 waits=load");
}

TEST(NpuRules, ReadingWhatNothingWrote) {
  const std::string load = "load rows=1 bytes=64 gives=compute\n";
  expect_rule(
      FaultKind::kNeverWritten, 1, load + "table source2=0 source=1 target=9 rows=1 waits=load",
      "#1 table source=1 target=9 rows=1 waits=load: reads scratchpad word 4, which nothing has written yet",
      "load rows=1 bytes=256 gives=compute\ntable source2=0 source=1 target=9 rows=1 waits=load");
  expect_rule(
      FaultKind::kNeverWritten, 1, load + "matmul_os rows=1 accumulate waits=load",
      "#1 matmul_os rows=1 accumulate waits=load: reads accumulator row 0, which nothing has written yet",
      load + "matmul_os rows=1 waits=load\nmatmul_os rows=1 accumulate");
}

TEST(NpuRules, AReadBeforeItsToken) {
  const std::string pool = "pool rows=1 target=4096 taps_x=1 taps_y=1";
  expect_rule(
      FaultKind::kReadsTooEarly, 1, "load rows=1 bytes=64\n" + pool,
      "#1 pool target=4096 rows=1 taps_x=1 taps_y=1: reads scratchpad word 0, which may still be written by "
      "#0 load rows=1 bytes=64; no token orders compute behind load here",
      "load rows=1 bytes=64 gives=compute\n" + pool + " waits=load");
}

// Also where the cycles hide it: #4 starts long behind the end of the pool, whose word it stores.
TEST(NpuRules, OrderByLuckIsNoOrder) {
  const std::string program = R"(
load rows=1 bytes=64 gives=compute,store
pool rows=1 target=4096 taps_x=1 taps_y=1 waits=load
store source=0 rows=1 bytes=64 dram=4096 waits=load
store source=0 rows=1 bytes=64 dram=4096
store source=4096 rows=1 bytes=16 dram=4096)";
  const std::optional<Fault> fault = fault_of(program);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::kReadsTooEarly);
  EXPECT_EQ(fault->instruction, 4u);
}

// The load starts at once, before the pool has its token. Still it is the load that lacks a token: it
// stands later.
TEST(NpuRules, ABufferIsNotOverrun) {
  const std::string begin =
      "load rows=1 bytes=64 gives=compute\npool rows=1 target=4096 taps_x=1 taps_y=1 waits=load";
  expect_rule(
      FaultKind::kOverwrites, 2, begin + "\nload dram=64 rows=1 bytes=64",
      "#2 load dram=64 rows=1 bytes=64: overwrites scratchpad word 0, which may still be read by #1 pool "
      "target=4096 rows=1 taps_x=1 taps_y=1 waits=load; no token orders load behind compute here",
      begin + " gives=load\nload dram=64 rows=1 bytes=64 waits=compute");
  expect_rule(
      FaultKind::kOverwrites, 2, begin + "\nload dram=64 rows=1 bytes=64 target=4096",
      "#2 load dram=64 target=4096 rows=1 bytes=64: overwrites scratchpad word 4096, which may still be "
      "written by #1 pool target=4096 rows=1 taps_x=1 taps_y=1 waits=load; no token orders load behind "
      "compute "
      "here",
      begin + " gives=load\nload dram=64 rows=1 bytes=64 target=4096 waits=compute");
}

// A token of an instruction that ends before the last reader is none for that reader.
TEST(NpuRules, ATokenThatComesTooEarly) {
  const std::string pool = "\npool rows=1 target=4096 taps_x=1 taps_y=1";
  const std::string begin = "load rows=1 bytes=64 gives=compute\nset_vector waits=load" + pool;
  const std::string load = "\nload dram=64 rows=1 bytes=64 waits=compute";
  expect_rule(FaultKind::kOverwrites, 4, begin + " gives=load" + pool + load,
              "#4 load dram=64 rows=1 bytes=64 waits=compute: overwrites scratchpad word 0, which may still "
              "be read by "
              "#3 pool target=4096 rows=1 taps_x=1 taps_y=1; no token orders load behind compute here",
              begin + pool + " gives=load" + load);
}

TEST(NpuRules, AccumulatorsAreNotReadWhileTheyAreWritten) {
  const std::string begin = R"(
load rows=1 bytes=256 gives=compute,store
store_scales blocks=1 low=-128 high=127 waits=load
matmul fill stride2=1 waits=load
)";
  expect_rule(
      FaultKind::kReadsTooEarly, 4,
      begin + "matmul swap rows=4 outer=1 stride=1\nstore_sums rows=4 bytes=16 dram=4096",
      "#4 store_sums dram=4096 rows=4 bytes=16: reads accumulator row 0, which may still be written by #3 "
      "matmul rows=4 outer=1 stride=1 swap; no token orders store behind compute here",
      begin +
          "matmul swap rows=4 outer=1 stride=1 gives=store\nstore_sums rows=4 bytes=16 dram=4096 "
          "waits=compute");
}

// Bytes 4112-4127 are not those of the store, and yet come with its burst.
TEST(NpuRules, DramIsOrderedBurstByBurst) {
  const std::string begin = "load rows=1 bytes=64 gives=store\nstore rows=1 bytes=16 dram=4096 waits=load";
  expect_rule(FaultKind::kReadsTooEarly, 2, begin + "\nload dram=4112 target=8 rows=1 bytes=16",
              "#2 load dram=4112 target=8 rows=1 bytes=16: reads DRAM burst 64, which may still be written "
              "by #1 store "
              "dram=4096 rows=1 bytes=16 waits=load; no token orders load behind store here",
              begin + "\nload dram=4160 target=8 rows=1 bytes=16");
}

TEST(NpuRules, RegistersAreSetBeforeTheyAreUsed) {
  const std::string load = "load rows=1 bytes=256 gives=compute\n";
  EXPECT_EQ(message_of(load + "matmul rows=1 outer=1 waits=load"),
            "#1 matmul rows=1 outer=1 waits=load: multiplies by weights that nothing filled");
  EXPECT_EQ(
      message_of(load +
                 "matmul fill stride2=1 waits=load\nmatmul swap rows=1 outer=1\nmatmul swap rows=1 outer=1"),
      "#3 matmul rows=1 outer=1 swap: swaps in weights that nothing filled");
  EXPECT_EQ(message_of(load + "add target=99 rows=1 waits=load"),
            "#1 add target=99 rows=1 waits=load: uses the vector unit's scales, which no set_vector set");
  for (const std::string op : {"softmax", "norm"})
    EXPECT_EQ(
        message_of("load rows=1 bytes=1024 gives=compute\n" + op + " rows=1 bytes=1 target=99 waits=load"),
        "#1 " + op +
            " target=99 rows=1 bytes=1 waits=load: uses the vector unit's scales, which no set_vector set");
  const std::string sums = load + "matmul_os rows=1 waits=load gives=store\n";
  EXPECT_EQ(message_of(sums + "drain rows=1 blocks=1 target=99"),
            "#2 drain target=99 rows=1 blocks=1: uses the scales of block 0, and scales has loaded 0");
  EXPECT_EQ(message_of(sums + "store_sums rows=1 bytes=17 waits=compute"),
            "#2 store_sums rows=1 bytes=17 waits=compute: uses the scales of block 1, and store_scales has "
            "loaded 0");
  EXPECT_EQ(message_of(load +
                       "matmul fill stride2=1 waits=load\nmatmul swap rows=1 outer=1\nmatmul rows=1 outer=1"),
            "no fault");
}

TEST(NpuRules, ATokenThatNobodyGives) {
  expect_rule(
      FaultKind::kNoToken, 1, "load rows=1 bytes=64\nstore_scales blocks=1 waits=load",
      "#1 store_scales blocks=1 waits=load: waits for a token that load never gives; all queues stand still",
      "load rows=1 bytes=128 gives=store\nstore_scales blocks=1 waits=load");
  // Two that wait for each other: the first of the program is named.
  const std::optional<Fault> fault =
      fault_of("load rows=1 bytes=64 waits=store gives=store\nstore rows=1 bytes=16 waits=load gives=load");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::kNoToken);
  EXPECT_EQ(fault->instruction, 0u);
}

// A giver that stands behind its taker in the program is fine, unless a full queue keeps it from being
// dispatched.
TEST(NpuRules, AFullQueueCanKeepATokenAway) {
  const std::string waiting = "load rows=1 bytes=16 waits=compute\n", giver = "set_vector gives=load\n";
  std::string seven, eight;
  for (int n = 0; n < 7; ++n) seven += waiting;
  eight = seven + waiting;
  std::string givers;
  for (int n = 0; n < 8; ++n) givers += giver;
  EXPECT_EQ(message_of(seven + givers.substr(giver.size())), "no fault");
  EXPECT_EQ(message_of(eight + givers), "no fault") << "eight fit into the queue";
  EXPECT_EQ(message_of(eight + waiting + givers + giver),
            "#0 load rows=1 bytes=16 waits=compute: waits for a token that compute never gives; all queues "
            "stand still");
}

TEST(NpuRules, ATokenThatNobodyTakes) {
  expect_rule(
      FaultKind::kUnusedToken, 0, "load rows=1 bytes=64 gives=compute",
      "#0 load rows=1 bytes=64 gives=compute: a token that it or its queue gave compute was never taken",
      "load rows=1 bytes=64 gives=compute\nset_vector waits=load");
}

// Whatever decodes may be run: it stops at a fault or ends, and touches nothing else.
TEST(NpuRules, AnyCodeEndsOrStops) {
  Seeds seeds(/*fixed=*/1, /*rounds=*/30);
  int64_t ended = 0;
  for (const uint32_t seed : seeds) {
    testing::Random random(seed);
    const Machine machine = testing::draw_machine(random);
    std::vector<uint8_t> dram = testing::draw_dram(random, machine);
    Code code = testing::draw_program(random, machine, dram.size());
    for (int n = 0; n < 3; ++n) {
      const int64_t at = testing::draw(random, 0, static_cast<int64_t>(code.size()));
      code.insert(code.begin() + at, testing::draw_instruction(random));
    }
    const Simulated s = simulate(machine, code, dram);
    ended += s.fault ? 0 : 1;
    if (s.fault) {
      EXPECT_LT(s.fault->instruction, code.size());
    }
  }
  if (!seeds.all()) return;
  EXPECT_LT(ended, 30);
}

}  // namespace
}  // namespace tuner::npu
