// Placed tokens: where they go in a program that can be followed by eye, that each is needed, and that none
// is missing, which the second model shows by looking at all pairs. A token dropped or doubled is found by
// the simulator.
#include "compiler_core/npu/tokens.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "compiler_core/npu/simulator.h"
#include "compiler_core/npu/text.h"
#include "tests/compiler_core/npu_matmul.h"
#include "tests/compiler_core/npu_model.h"
#include "tests/compiler_core/npu_programs.h"
#include "tests/random_seed.h"

namespace tuner::npu::testing {
namespace {

Code parsed(const std::string& text) {
  const Result<Code> code = parse_code(text);
  EXPECT_TRUE(code.is_ok()) << code.message();
  return code.is_ok() ? *code : Code{};
}

std::string placed(const std::string& text) {
  const Result<Code> code = place_tokens({}, parsed(text), 8192);
  return code.is_ok() ? "\n" + text_of(*code) : code.message();
}

// The second load overwrites what the first pool reads, so it waits for it. The store needs the last pool
// alone: that one comes behind all loads. The last load overwrites what the store reads.
TEST(NpuTokens, ATokenForEachHazardThatNoOtherOrders) {
  EXPECT_EQ(placed(R"(
load rows=1 bytes=64
pool rows=1 target=4096 taps_x=1 taps_y=1
load dram=64 rows=1 bytes=64
pool rows=1 target=4097 taps_x=1 taps_y=1
store source=4096 dram=4096 rows=1 bytes=32
load dram=128 target=4096 rows=1 bytes=16
)"),
            R"(
load rows=1 bytes=64 gives=compute
pool target=4096 rows=1 taps_x=1 taps_y=1 waits=load gives=load
load dram=64 rows=1 bytes=64 waits=compute gives=compute
pool target=4097 rows=1 taps_x=1 taps_y=1 waits=load gives=store
store source=4096 dram=4096 rows=1 bytes=32 waits=compute gives=load
load dram=128 target=4096 rows=1 bytes=16 waits=store
)");
}

// Four loads, one reader of all: only the last load gives. Reads meet without tokens.
TEST(NpuTokens, OneTokenStandsForAllBeforeIt) {
  EXPECT_EQ(placed(R"(
load rows=1 bytes=16
load rows=1 bytes=16 target=1
load rows=1 bytes=16 target=2
pool rows=3 target=4096 stride=1 stride2=1 taps_x=1 taps_y=1
store source=1 dram=4096 rows=1 bytes=16
)"),
            R"(
load rows=1 bytes=16
load target=1 rows=1 bytes=16 gives=store
load target=2 rows=1 bytes=16 gives=compute
pool target=4096 rows=3 stride=1 stride2=1 taps_x=1 taps_y=1 waits=load
store source=1 dram=4096 rows=1 bytes=16 waits=load
)");
}

TEST(NpuTokens, RefusesWhatNoTokenMends) {
  EXPECT_EQ(placed("load rows=1 bytes=64\npool target=4096 source=4 rows=1 taps_x=1 taps_y=1"),
            "#1 pool source=4 target=4096 rows=1 taps_x=1 taps_y=1: reads scratchpad word 4, which nothing "
            "has written yet");
  EXPECT_EQ(placed("load rows=1 bytes=64 dram=8129"),
            "#0 load dram=8129 rows=1 bytes=64: touches DRAM at byte 8192, outside of its 8192 bytes");
}

struct TokenPlace {
  size_t giver, taker;
};

// The n-th token of a line, from one queue to another, is given by the n-th giver and taken by the n-th
// taker.
std::vector<TokenPlace> tokens_of(const Code& code) {
  std::vector<TokenPlace> found;
  for (int from = 0; from < kQueues; ++from)
    for (int to = 0; to < kQueues; ++to) {
      std::vector<size_t> givers, takers;
      for (size_t n = 0; n < code.size(); ++n) {
        const int own = static_cast<int>(queue_of(code[n].op));
        if (own == from && (code[n].gives >> to & 1) != 0) givers.push_back(n);
        if (own == to && (code[n].waits >> from & 1) != 0) takers.push_back(n);
      }
      EXPECT_EQ(givers.size(), takers.size());
      for (size_t n = 0; n < std::min(givers.size(), takers.size()); ++n)
        found.push_back({givers[n], takers[n]});
    }
  return found;
}

struct Case {
  Machine machine;
  std::vector<uint8_t> dram;
  Code code;
};

Case draw_case(uint32_t seed) {
  Random random(seed);
  Case c{.machine = draw_machine(random), .dram = {}, .code = {}};
  c.dram = draw_dram(random, c.machine);
  const Result<Code> code =
      place_tokens(c.machine, draw_program(random, c.machine, c.dram.size()), c.dram.size());
  EXPECT_TRUE(code.is_ok()) << code.message();
  if (code.is_ok()) c.code = *code;
  return c;
}

std::optional<Fault> fault_of(const Case& c, const Code& code) {
  std::vector<uint8_t> dram = c.dram;
  return simulate(c.machine, code, dram).fault;
}
Modelled modelled(const Case& c, const Code& code) {
  std::vector<uint8_t> dram = c.dram;
  return model(c.machine, code, dram);
}

TEST(NpuTokens, EachIsNeededAndNoneIsMissing) {
  Seeds seeds(/*fixed=*/1000, /*rounds=*/20);
  int64_t dropped = 0;
  for (const uint32_t seed : seeds) {
    const Case c = draw_case(seed);
    SCOPED_TRACE(c.machine.name() + "\n" + text_of(c.code));
    EXPECT_FALSE(modelled(c, c.code).unordered);
    for (const TokenPlace& token : tokens_of(c.code)) {
      Code code = c.code;
      code[token.giver].gives &= static_cast<uint8_t>(~bit(queue_of(code[token.taker].op)));
      code[token.taker].waits &= static_cast<uint8_t>(~bit(queue_of(code[token.giver].op)));
      const std::optional<Fault> fault = fault_of(c, code);
      ASSERT_TRUE(fault) << "without the token from #" << token.giver << " to #" << token.taker;
      // The reader may now start before the cell is written for the first time.
      EXPECT_TRUE(fault->kind == FaultKind::kReadsTooEarly || fault->kind == FaultKind::kOverwrites ||
                  fault->kind == FaultKind::kNeverWritten)
          << fault->message;
      EXPECT_TRUE(modelled(c, code).unordered);
      ++dropped;
    }
  }
  std::printf("%lld tokens dropped\n", static_cast<long long>(dropped));
  if (!seeds.all()) return;
  EXPECT_GT(dropped, 100);
}

// One side of a token, or one more. The simulator stops, at an instruction without order, one that waits
// for ever, or a token that is left; and where both models run on, they agree that something is wrong.
TEST(NpuTokens, DamagedOnesAreFound) {
  Seeds seeds(/*fixed=*/2000, /*rounds=*/8);
  std::map<FaultKind, int> kinds;
  for (const uint32_t seed : seeds) {
    const Case c = draw_case(seed);
    SCOPED_TRACE(c.machine.name() + "\n" + text_of(c.code));
    const auto expect_found = [&](const Code& code, const std::string& what) {
      const std::optional<Fault> fault = fault_of(c, code);
      ASSERT_TRUE(fault) << what;
      ++kinds[fault->kind];
      EXPECT_EQ(fault->message.find("#" + std::to_string(fault->instruction) + " "), 0u) << fault->message;
      const Modelled m = modelled(c, code);
      EXPECT_TRUE(m.unordered || m.stands_still || m.unused_token) << what;
    };
    for (const TokenPlace& token : tokens_of(c.code)) {
      Code code = c.code;
      code[token.giver].gives &= static_cast<uint8_t>(~bit(queue_of(code[token.taker].op)));
      expect_found(code, str("#", token.giver, " does not give"));
      code = c.code;
      code[token.taker].waits &= static_cast<uint8_t>(~bit(queue_of(code[token.giver].op)));
      expect_found(code, str("#", token.taker, " does not wait"));
    }
    for (size_t n = 0; n < c.code.size(); ++n)
      for (int q = 0; q < kQueues; ++q) {
        const Queue to = static_cast<Queue>(q);
        if (to == queue_of(c.code[n].op) || (c.code[n].gives & bit(to)) != 0) continue;
        Code code = c.code;
        code[n].gives |= bit(to);
        expect_found(code, str("#", n, " gives one more"));
      }
  }
  if (!seeds.all()) return;
  for (const FaultKind kind :
       {FaultKind::kReadsTooEarly, FaultKind::kOverwrites, FaultKind::kNoToken, FaultKind::kUnusedToken})
    EXPECT_GT(kinds[kind], 3) << static_cast<int>(kind);
}

void expect_product(const MatmulCase& c, const std::vector<uint8_t>& dram) {
  int64_t wrong = 0;
  for (int64_t r = 0; r < c.m; ++r)
    for (int64_t n = 0; n < c.n; ++n) {
      int32_t sum = 0;
      for (int64_t k = 0; k < c.k; ++k)
        sum +=
            static_cast<int8_t>(dram[c.a() + r * c.k + k]) * static_cast<int8_t>(dram[c.b() + k * c.n + n]);
      const float scaled = std::nearbyint(static_cast<float>(sum) * c.scale);
      const int expected = static_cast<int>(std::min(127.0f, std::max(-128.0f, scaled)));
      wrong += static_cast<int8_t>(dram[c.out() + r * c.n + n]) != expected ? 1 : 0;
    }
  EXPECT_EQ(wrong, 0);
}

// Written by hand, with tokens from the analysis: right, and fast enough that the machine's balance can be
// trusted.
void expect_matmul(const MatmulCase& c, double least_utilization) {
  const Machine machine;
  std::vector<uint8_t> dram = matmul_dram(c);
  const Result<Code> code = place_tokens(machine, MatmulWriter(machine, c).code(), dram.size());
  ASSERT_TRUE(code.is_ok()) << code.message();
  std::vector<uint8_t> dram_of_model = dram;
  const Simulated result = simulate(machine, *code, dram);
  ASSERT_FALSE(result.fault) << result.fault->message;
  EXPECT_EQ(result.macs, c.macs());
  expect_product(c, dram);
  std::printf("%lld x %lld x %lld: %lld cycles, %.3f of the array's peak, %zu instructions, %zu tokens\n",
              static_cast<long long>(c.m), static_cast<long long>(c.n), static_cast<long long>(c.k),
              static_cast<long long>(result.cycles), result.utilization(machine), code->size(),
              tokens_of(*code).size());
  EXPECT_GE(result.utilization(machine), least_utilization);
  if (c.macs() > 1'000'000) return;
  const Modelled slow = model(machine, *code, dram_of_model);
  EXPECT_EQ(slow.cycles, result.cycles);
  EXPECT_FALSE(slow.unordered);
  EXPECT_TRUE(dram_of_model == dram);
}

TEST(NpuTokens, AMatmulOf64Cubed) { expect_matmul({}, 0.5); }
TEST(NpuTokens, AMatmulOf512Cubed) {
  expect_matmul({.m = 512, .n = 512, .k = 512, .tile_m = 128, .tile_n = 64, .tile_k = 128}, 0.85);
}

}  // namespace
}  // namespace tuner::npu::testing
