// Buffers in the scratchpad: which share words, which banks they take, and that programs compute what they
// computed when each buffer had words of its own.
#include "compiler_core/npu/allocate.h"

#include <gtest/gtest.h>

#include "compiler_core/npu/ledger.h"
#include "compiler_core/npu/simulator.h"
#include "compiler_core/npu/text.h"
#include "compiler_core/npu/tokens.h"
#include "tests/compiler_core/npu_matmul.h"
#include "tests/compiler_core/npu_programs.h"
#include "tests/random_seed.h"

namespace tuner::npu::testing {
namespace {

Machine machine_of(const char* name) {
  const Result<Machine> machine = parse_machine(name);
  EXPECT_TRUE(machine.is_ok()) << machine.message();
  return machine.is_ok() ? *machine : Machine{};
}

Code parsed(const std::string& text) {
  const Result<Code> code = parse_code(text);
  EXPECT_TRUE(code.is_ok()) << code.message();
  return code.is_ok() ? *code : Code{};
}

using Places = std::vector<uint32_t>;

// Two banks of 8 words. Buffer 0 is read for the last time by #1, so buffer 2, which #2 writes, may lie on
// it. Buffer 1 lives with both, in the other bank.
const std::string kThreeBuffers = R"(
load target=1000 rows=1 bytes=128
pool source=1000 target=2000 rows=8 stride=1 stride2=1 taps_x=1 taps_y=1
load dram=128 target=3000 rows=1 bytes=128
add source=2000 source2=3000 target=3000 rows=8
)";

TEST(NpuAllocate, BuffersThatDoNotLiveTogetherShareWords) {
  const Result<Allocation> a = allocate_scratchpad(machine_of("npu -scratchpad=256 -banks=2"),
                                                   parsed(kThreeBuffers), {{1000, 8}, {2000, 8}, {3000, 8}});
  ASSERT_TRUE(a.is_ok()) << a.message();
  EXPECT_EQ(a->begin, (Places{0, 8, 0}));
  EXPECT_EQ("\n" + text_of(a->code), R"(
load rows=1 bytes=128
pool target=8 rows=8 stride=1 stride2=1 taps_x=1 taps_y=1
load dram=128 rows=1 bytes=128
add source=8 rows=8
)");
}

TEST(NpuAllocate, WhatIsTouchedTogetherTakesOtherBanks) {
  const Result<Allocation> a = allocate_scratchpad(machine_of("npu -scratchpad=1KiB -banks=4"), parsed(R"(
load target=1000 rows=1 bytes=64
load target=2000 rows=1 bytes=64
add source=1000 source2=2000 target=3000 rows=4
)"),
                                                   {{3000, 4}, {2000, 4}, {1000, 4}});
  ASSERT_TRUE(a.is_ok()) << a.message();
  EXPECT_EQ(a->begin, (Places{32, 16, 0}));
}

// Four banks of 16 words. Spread over three of them, three small buffers leave no room for 40 words.
TEST(NpuAllocate, ALargeBufferIsWorthMoreThanBanks) {
  const std::string small = R"(
load target=100 rows=1 bytes=64
load target=200 rows=1 bytes=64
load target=300 rows=1 bytes=64
)";
  const std::string users = R"(
add source=100 source2=200 target=300 rows=4
)";
  const std::vector<ScratchpadBuffer> buffers = {{100, 4}, {200, 4}, {300, 4}, {400, 40}};
  const Machine machine = machine_of("npu -scratchpad=1KiB -banks=4");
  const Result<Allocation> spread = allocate_scratchpad(machine, parsed(small + users), buffers);
  ASSERT_TRUE(spread.is_ok()) << spread.message();
  EXPECT_EQ(spread->begin, (Places{0, 16, 32, 0}));
  const Result<Allocation> dense =
      allocate_scratchpad(machine, parsed(small + "load target=400 rows=1 bytes=640\n" + users), buffers);
  ASSERT_TRUE(dense.is_ok()) << dense.message();
  EXPECT_EQ(dense->begin, (Places{0, 4, 8, 12}));
}

TEST(NpuAllocate, RefusalsNameTheInstruction) {
  const auto refusal = [](const char* machine, const std::string& text,
                          const std::vector<ScratchpadBuffer>& buffers) {
    return allocate_scratchpad(machine_of(machine), parsed(text), buffers).message();
  };
  EXPECT_EQ(refusal("npu -scratchpad=256 -banks=1",
                    "load target=100 rows=1 bytes=160\nload target=200 rows=1 bytes=112\n"
                    "add source=100 source2=200 target=100 rows=1",
                    {{100, 10}, {200, 7}}),
            "#1 load target=200 rows=1 bytes=112: no place for a buffer of 7 words; 17 words are in use with "
            "it, and "
            "the scratchpad has 16");
  EXPECT_EQ(refusal("npu", "load target=100 rows=1 bytes=64", {{100, 3}}),
            "#0 load target=100 rows=1 bytes=64: touches word 103, of no buffer");
  // One address, two buffers that come to lie in two banks.
  EXPECT_EQ(refusal("npu", "load target=100 rows=1 bytes=64", {{100, 2}, {102, 2}}),
            "#0 load target=100 rows=1 bytes=64: reaches from one buffer into another by one address");
}

// Chains of vector instructions, each into a fresh buffer, and stores of some results.
struct Chain {
  Code code;
  std::vector<ScratchpadBuffer> buffers;
};
Chain draw_chain(Random& random) {
  Chain c;
  uint32_t next = 0, dram = 2048;
  const auto fresh = [&](uint32_t words) {
    c.buffers.push_back({next, words});
    next += words + static_cast<uint32_t>(draw(random, 0, 3));
    return c.buffers.back();
  };
  const auto any = [&] {
    return c.buffers[static_cast<size_t>(
        draw(random, std::max<int64_t>(0, static_cast<int64_t>(c.buffers.size()) - 6),
             static_cast<int64_t>(c.buffers.size()) - 1))];
  };
  const auto load = [&] {
    const ScratchpadBuffer to = fresh(static_cast<uint32_t>(draw(random, 1, 12)));
    c.code.push_back({.op = Op::kLoad,
                      .dram = static_cast<uint32_t>(draw(random, 0, 1800)),
                      .target = to.begin,
                      .rows = 1,
                      .bytes = to.words * 16});
  };
  c.code.push_back(
      {.op = Op::kSetVector, .zero = 3, .low = -100, .high = 100, .scale_a = 0.5f, .scale_b = 0.25f});
  load();
  for (int64_t n = draw(random, 4, 30); n > 0; --n) {
    const int64_t kind = draw(random, 0, 3);
    if (kind == 0) {
      load();
    } else if (kind < 3) {
      const ScratchpadBuffer a = any(), b = any();
      const uint32_t words = std::min(a.words, b.words);
      c.code.push_back({.op = Op::kAdd,
                        .source = a.begin,
                        .source2 = b.begin,
                        .target = fresh(words).begin,
                        .rows = words});
    } else {
      const ScratchpadBuffer a = any();
      c.code.push_back({.op = Op::kStore, .dram = dram, .source = a.begin, .rows = 1, .bytes = a.words * 16});
      dram += 192;
    }
  }
  return c;
}

std::vector<uint8_t> results(const Machine& machine, const Code& code) {
  Random random(1);
  std::vector<uint8_t> dram(8192);
  for (uint8_t& b : dram) b = static_cast<uint8_t>(random());
  const Result<Code> ordered = place_tokens(machine, code, dram.size());
  EXPECT_TRUE(ordered.is_ok()) << ordered.message();
  if (!ordered.is_ok()) return {};
  const Simulated s = simulate(machine, *ordered, dram);
  EXPECT_FALSE(s.fault) << s.fault->message;
  return dram;
}

TEST(NpuAllocate, RandomChainsComputeTheSame) {
  const Machine large = machine_of("npu -scratchpad=64KiB"), small = machine_of("npu -scratchpad=1KiB");
  Seeds seeds(/*fixed=*/1, /*rounds=*/60);
  int64_t fitting = 0, shared = 0;
  for (const uint32_t seed : seeds) {
    Random random(seed);
    const Chain c = draw_chain(random);
    const Result<Allocation> a = allocate_scratchpad(small, c.code, c.buffers);
    if (!a.is_ok()) {
      EXPECT_EQ(a.status().code(), StatusCode::kInvalidConfig) << a.message();
      continue;
    }
    ++fitting;
    uint32_t words = 0;
    for (const ScratchpadBuffer& b : c.buffers) words += b.words;
    shared += words > small.words() ? 1 : 0;
    SCOPED_TRACE(text_of(c.code) + "\n" + text_of(a->code));
    EXPECT_TRUE(results(large, c.code) == results(small, a->code));
  }
  std::printf("%lld fit, %lld of them because buffers share words\n", static_cast<long long>(fitting),
              static_cast<long long>(shared));
  if (!seeds.all()) return;
  EXPECT_GT(fitting, 30);
  EXPECT_GT(shared, 5);
}

// Tiles with words of their own come down to two of a and two of b, without a conflict of banks, as by hand.
TEST(NpuAllocate, AMatmulIsNearlyAsFastAsPlacedByHand) {
  const Machine machine;
  const MatmulCase c{.m = 128, .n = 128, .k = 256, .tile_m = 64, .tile_n = 64, .tile_k = 64};
  MatmulWriter by_hand(machine, c), own(machine, c, /*own_buffers=*/true);
  const Result<Allocation> a = allocate_scratchpad(machine, own.code(), own.buffers());
  ASSERT_TRUE(a.is_ok()) << a.message();
  std::vector<uint8_t> dram = matmul_dram(c), dram_by_hand = dram;
  const Result<Code> placed = place_tokens(machine, a->code, dram.size());
  const Result<Code> hand_placed = place_tokens(machine, by_hand.code(), dram.size());
  ASSERT_TRUE(placed.is_ok() && hand_placed.is_ok());
  const Simulated s = simulate(machine, *placed, dram), hand = simulate(machine, *hand_placed, dram_by_hand);
  ASSERT_FALSE(s.fault) << s.fault->message;
  EXPECT_TRUE(dram == dram_by_hand);
  // The first tile lies on the scales and waits for who reads them: 132 of 17,417 cycles.
  EXPECT_LE(static_cast<double>(s.cycles), 1.02 * static_cast<double>(hand.cycles));
  EXPECT_EQ(s.queues[1].bank_stalls, 0);
}

}  // namespace
}  // namespace tuner::npu::testing
