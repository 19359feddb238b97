// The simulator and the second model agree: cycles, counters and values of random programs on random
// machines; and what a token less or more makes of them.
#include "tests/compiler_core/npu_model.h"

#include <gtest/gtest.h>

#include <map>

#include "compiler_core/npu/encoding.h"
#include "compiler_core/npu/simulator.h"
#include "compiler_core/npu/text.h"
#include "compiler_core/npu/tokens.h"
#include "tests/compiler_core/npu_programs.h"
#include "tests/random_seed.h"

namespace tuner::npu::testing {
namespace {

struct Case {
  Machine machine;
  std::vector<uint8_t> dram;
  Code code;
};

Case draw_case(uint32_t seed) {
  Random random(seed);
  Case c{.machine = draw_machine(random), .dram = {}, .code = {}};
  const Status buildable = check(c.machine);
  EXPECT_TRUE(buildable.is_ok()) << buildable.message();
  c.dram = draw_dram(random, c.machine);
  const Result<Code> code =
      place_tokens(c.machine, draw_program(random, c.machine, c.dram.size()), c.dram.size());
  EXPECT_TRUE(code.is_ok()) << code.message();
  if (code.is_ok()) c.code = *code;
  return c;
}

void expect_equal(const Case& c) {
  std::vector<uint8_t> ours = c.dram, theirs = c.dram;
  std::vector<Span> timeline;
  ChipMemory chip;
  const Simulated fast = simulate(c.machine, c.code, ours, &timeline, &chip);
  const Modelled slow = model(c.machine, c.code, theirs);
  SCOPED_TRACE(c.machine.name() + "\n" + text_of(c.code));
  ASSERT_FALSE(fast.fault) << fast.fault->message;
  EXPECT_FALSE(slow.stands_still || slow.unused_token || slow.unordered);
  EXPECT_EQ(fast.cycles, slow.cycles);
  ASSERT_EQ(timeline.size(), c.code.size());
  for (const Span& span : timeline) {
    EXPECT_EQ(span.start, slow.starts[span.instruction]) << "start of #" << span.instruction;
    EXPECT_EQ(span.end, slow.ends[span.instruction]) << "end of #" << span.instruction;
  }
  for (int q = 0; q < kQueues; ++q) {
    EXPECT_EQ(fast.queues[q].steps, slow.steps[q]);
    EXPECT_EQ(fast.queues[q].bank_stalls, slow.bank_stalls[q]);
    EXPECT_EQ(fast.queues[q].bus_waits, slow.bus_waits[q]);
  }
  EXPECT_TRUE(ours == theirs) << "DRAM differs";
  EXPECT_TRUE(chip.scratchpad == slow.scratchpad) << "the scratchpad differs";
  EXPECT_TRUE(chip.sums == slow.sums) << "accumulators differ";
}

TEST(NpuModel, RandomProgramsTakeEqualCyclesAndGiveEqualValues) {
  Seeds seeds(/*fixed=*/1, /*rounds=*/50);
  std::map<Op, int> drawn;
  int64_t cycles = 0, stalls = 0, waits = 0, tokens = 0;
  for (const uint32_t seed : seeds) {
    const Case c = draw_case(seed);
    expect_equal(c);
    std::vector<uint8_t> dram = c.dram;
    const Simulated s = simulate(c.machine, c.code, dram);
    cycles += s.cycles;
    for (const QueueCounts& q : s.queues) stalls += q.bank_stalls, waits += q.bus_waits;
    for (const Instruction& i : c.code) {
      ++drawn[i.op];
      tokens += __builtin_popcount(i.waits);
    }
  }
  std::printf("%lld cycles, %lld bank stalls, %lld waits for the bus, %lld tokens\n",
              static_cast<long long>(cycles), static_cast<long long>(stalls), static_cast<long long>(waits),
              static_cast<long long>(tokens));
  if (!seeds.all()) return;
  for (int op = 1; op < kOps; ++op)
    EXPECT_GT(drawn[static_cast<Op>(op)], 5) << "opcode " << op << " is hardly drawn";
  EXPECT_GT(stalls, 1000);
  EXPECT_GT(waits, 1000);
  EXPECT_GT(tokens, 200);
}

}  // namespace
}  // namespace tuner::npu::testing
