// Cycles of tiny programs, computed on paper from the rules of compiler_core/npu/README.md ("Time"). In the
// comments d, s and e are the cycles of an instruction's dispatch, start and end.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "compiler_core/npu/energy.h"
#include "compiler_core/npu/simulator.h"
#include "compiler_core/npu/text.h"
#include "compiler_core/npu/timeline.h"

namespace tuner::npu {
namespace {

struct Timed {
  Simulated result;
  std::vector<int64_t> starts, ends;  // by instruction
};

Timed timed(const std::string& text, const std::string& machine = "npu") {
  const Result<Machine> m = parse_machine(machine);
  const Result<Code> code = parse_code(text);
  EXPECT_TRUE(m.is_ok() && code.is_ok()) << m.message() << code.message();
  Timed t;
  if (!m.is_ok() || !code.is_ok()) return t;
  std::vector<uint8_t> dram(8192, 1);
  std::vector<Span> timeline;
  t.result = simulate(*m, *code, dram, &timeline);
  EXPECT_FALSE(t.result.fault) << t.result.fault->message;
  t.starts.assign(code->size(), -1);
  t.ends = t.starts;
  for (const Span& s : timeline) t.starts[s.instruction] = s.start, t.ends[s.instruction] = s.end;
  return t;
}

const QueueCounts& load_counts(const Timed& t) { return t.result.queues[0]; }
const QueueCounts& compute_counts(const Timed& t) { return t.result.queues[1]; }

using Cycles = std::vector<int64_t>;

// d 0, s 1. Its data come 100 cycles later: two rows of one burst, four steps each, 101..108. e 109.
TEST(NpuCycles, ALoad) {
  const Timed t = timed("load rows=2 bytes=64");
  EXPECT_EQ(t.starts, Cycles{1});
  EXPECT_EQ(t.ends, Cycles{109});
  EXPECT_EQ(load_counts(t).steps, 8);
}

// 8 bytes that lie in two bursts cost both: 101..108. The padding: `top` is a row of words(20 + 8 + 40) = 5
// words, 5 steps. In the row with data word 0 is padding alone (bytes 0-15), word 1 has data (bytes 20-27),
// words 2-4 are padding alone: 1 + 8 + 3 steps. In all 17: 101..117, e 118.
TEST(NpuCycles, PaddingAndABurstForAFewBytes) {
  EXPECT_EQ(timed("load dram=60 rows=1 bytes=8").ends, Cycles{109});
  const Timed t = timed("load dram=60 rows=1 bytes=8 left=20 right=40 top=1");
  EXPECT_EQ(load_counts(t).steps, 17);
  EXPECT_EQ(t.ends, Cycles{118});
}

// The load: d 0, s 1, one burst 101..104, e 105. The store: d 1, s 105 by the token of that cycle, steps
// 105..108, and 100 cycles until DRAM has it: e 209.
TEST(NpuCycles, AStoreBehindALoad) {
  const Timed t = timed(R"(
load rows=1 bytes=16 gives=store
store rows=1 bytes=16 dram=4096 waits=load)");
  EXPECT_EQ(t.starts, (Cycles{1, 105}));
  EXPECT_EQ(t.ends, (Cycles{105, 209}));
  EXPECT_EQ(t.result.cycles, 209);
}

// The load: 4 bursts of 4 steps, 101..116, e 117. #1 fills 16 rows of weights: s 117, steps 117..132, e
// 133. #2: its array is free in 133, 4 rows 133..136, the last sums 32 cycles behind 137: e 169. #3 fills
// again while those sums are on their way: s 137, steps 137..152. It could end in 153, and ends behind #2
// in 169. #4 belongs to the vector unit, which waits for all sums: s 169, e 170.
TEST(NpuCycles, WeightsRowsAndEndsInOrder) {
  const Timed t = timed(R"(
load rows=1 bytes=256 gives=compute
matmul fill stride2=1 waits=load
matmul swap rows=4 outer=1 stride=1
matmul fill stride2=1
set_vector scale_a=1)");
  EXPECT_EQ(t.starts, (Cycles{1, 117, 133, 137, 169}));
  EXPECT_EQ(t.ends, (Cycles{117, 133, 169, 169, 170}));
  EXPECT_EQ(t.result.macs, 4 * 16 * 16);
}

// The program above: 4 bursts; 16 words in, twice 16 rows of weights and 4 rows of operands out; 4 rows of
// sums. In picojoules 1024 * 0.3 + 52 * 16 * 3 + 4 * 64 * 3 + 256 * 160 + 5 * 50.
TEST(NpuCycles, AccessesAndEnergy) {
  const Timed t = timed(R"(
load rows=1 bytes=256 gives=compute
matmul fill stride2=1 waits=load
matmul swap rows=4 outer=1 stride=1
matmul fill stride2=1
set_vector scale_a=1)");
  EXPECT_EQ(
      t.result.accesses,
      (AccessCounts{.vector_values = 0, .scratchpad_words = 52, .accumulator_rows = 4, .dram_bytes = 256}));
  EXPECT_NEAR(energy_nj(t.result, Machine()), 44.7812, 1e-9);
  // Padding is no burst.
  EXPECT_EQ(timed("load dram=60 rows=1 bytes=8 left=20 right=40 top=1").result.accesses.dram_bytes, 128);
}

// Rows and the weights of the next swap come side by side, from two banks (word 4096 is the first of bank
// 1). In one bank every cycle serves one of them, and the rows come first. Loads: two of 16 steps, 101..116
// and 117..132, so the token of the second one comes in 133.
TEST(NpuCycles, RowsAndWeightsSideBySide) {
  const std::string loads = R"(
load rows=1 bytes=256
load rows=1 bytes=256 dram=256 target=4096 gives=compute
matmul fill stride2=1 waits=load
)";
  // The fill: 133..148. Rows: s 149, the 20 rows are word 0 again and again: 149..168, sums until 169 + 32
  // = 201.
  const Timed apart = timed(loads + "matmul swap fill rows=20 outer=1 source2=4096 stride2=1");
  EXPECT_EQ(apart.starts[3], 149);
  EXPECT_EQ(apart.ends[3], 201);
  EXPECT_EQ(compute_counts(apart).bank_stalls, 0);
  // 149..168 are the rows', 169..184 the weights'. The sums are there in 201 all the same; the next array
  // instruction starts 16 cycles later than it could have: in 185, not in 169.
  const std::string next = "\nmatmul swap rows=1 outer=1";
  const Timed together = timed(loads + "matmul swap fill rows=20 outer=1 stride2=1" + next);
  EXPECT_EQ(together.ends[3], 201);
  EXPECT_EQ(compute_counts(together).bank_stalls, 20);
  EXPECT_EQ(together.starts[4], 185);
  EXPECT_EQ(timed(loads + "matmul swap fill rows=20 outer=1 source2=4096 stride2=1" + next).starts[4], 169);
}

// Output stationary: 3 outer products, whose two words lie in bank 0, so each takes two cycles: 105..110.
// Then 16 steps in which the sums move out, 111..126; e 127 + 32 = 159.
TEST(NpuCycles, OutputStationary) {
  const Timed t = timed(R"(
load rows=1 bytes=64 gives=compute
matmul_os rows=3 stride=1 waits=load)");
  EXPECT_EQ(t.ends, (Cycles{105, 159}));
  EXPECT_EQ(compute_counts(t).bank_stalls, 3);
}

// One bank serves the three words of a step of `add` in three cycles: 105..107 and 108..110, two stalls
// each; the vector unit's depth of 4 behind 111: e 115. In banks 0, 1 and 2 the steps are 109 and 110
// behind loads of two bursts: e 115 as well.
TEST(NpuCycles, WordsOfOneBankTakeTurns) {
  const Timed t = timed(R"(
load rows=1 bytes=64 gives=compute
set_vector scale_a=1 high=127
add rows=2 source=0 source2=1 target=2 waits=load)");
  EXPECT_EQ(t.ends, (Cycles{105, 3, 115}));
  EXPECT_EQ(compute_counts(t).bank_stalls, 4);
  const Timed apart = timed(R"(
load rows=1 bytes=64
load rows=1 bytes=64 target=4096 gives=compute
set_vector scale_a=1 high=127
add rows=2 source=0 source2=4096 target=8192 waits=load)");
  EXPECT_EQ(apart.ends, (Cycles{105, 109, 4, 115}));
  EXPECT_EQ(compute_counts(apart).bank_stalls, 0);
}

// Load #1 and the pool both want bank 0 from 105 on; #1 writes words 8..11, the pool reads words 0..3 and
// writes in bank 1. Who comes first in a cycle is cycle mod 3:
//   105 load: word 8        pool waits         106 compute: word 0      load waits
//   107 store, load: 9      pool waits         108 load: word 10        pool waits
//   109 compute: word 1     load waits         110 store, load: 11      pool waits      #1 is done: e 111
//   111 pool: word 2        112 pool: word 3   e 113 + 4 = 117
TEST(NpuCycles, QueuesTakeTurnsAtABank) {
  const Timed t = timed(R"(
load rows=1 bytes=64 gives=compute
load rows=1 bytes=64 dram=64 target=8
pool rows=4 target=4096 stride=1 stride2=1 taps_x=1 taps_y=1 waits=load)");
  EXPECT_EQ(t.starts, (Cycles{1, 2, 105}));
  EXPECT_EQ(t.ends, (Cycles{105, 111, 117}));
  EXPECT_EQ(load_counts(t).bank_stalls, 2);
  EXPECT_EQ(compute_counts(t).bank_stalls, 4);
}

// In 105 #1 and the store both ask for the bus. The load queue had it last, so the store's burst goes first:
// 105..108, e 209. #1 waits for these 4 cycles; its two bursts are 109..112 and 113..116, e 117.
TEST(NpuCycles, TheBusAlternates) {
  const Timed t = timed(R"(
load rows=1 bytes=64 gives=store
load rows=1 bytes=128 dram=64 target=8
store rows=1 bytes=64 dram=4096 waits=load)");
  EXPECT_EQ(t.ends, (Cycles{105, 117, 209}));
  EXPECT_EQ(load_counts(t).bus_waits, 4);
}

// A queue of one: the second load is dispatched when the first ends, in 105; s 106, data 206..209, e 210.
// Default queues have it on its way behind the first: 105..108, e 109.
TEST(NpuCycles, AFullQueueHoldsTheProgramUp) {
  const std::string two = "load rows=1 bytes=64\nload rows=1 bytes=64 target=8";
  EXPECT_EQ(timed(two, "npu -queue=1").ends, (Cycles{105, 210}));
  EXPECT_EQ(timed(two).ends, (Cycles{105, 109}));
}

// The numbers in the name are the machine's. Latency 7: data from 8 on, 8..11, e 12. A bus of 4 bytes: 16
// steps, 101..116, e 117. Eight lanes: a word of `add` takes a second step, 4 steps in all for 2 words.
TEST(NpuCycles, TheNameChangesTheMachine) {
  EXPECT_EQ(timed("load rows=1 bytes=64", "npu -latency=7").ends, Cycles{12});
  EXPECT_EQ(timed("load rows=1 bytes=64", "npu -dram_bytes=4").ends, Cycles{117});
  const std::string program = R"(
load rows=1 bytes=64 gives=compute
set_vector scale_a=1 high=127
add rows=2 source=0 source2=1 target=2 waits=load)";
  EXPECT_EQ(compute_counts(timed(program, "npu -lanes=8")).steps, 4);
}

TEST(NpuCycles, NothingTakesNoTime) { EXPECT_EQ(timed("").result.cycles, 0); }

// The timeline is JSON with a row per queue, whose slices do not overlap.
TEST(NpuCycles, TheTraceHasARowPerQueue) {
  const Result<Code> code = parse_code(R"(
load rows=4 bytes=64
load rows=4 bytes=64 dram=64 target=8 gives=compute
pool rows=4 target=4096 stride=1 stride2=1 taps_x=1 taps_y=1 waits=load gives=store
store source=4096 rows=1 bytes=64 dram=4096 waits=compute)");
  ASSERT_TRUE(code.is_ok()) << code.message();
  const Machine machine;
  std::vector<uint8_t> dram(8192);
  std::vector<Span> timeline;
  ASSERT_FALSE(simulate(machine, *code, dram, &timeline).fault);
  const nlohmann::json trace = nlohmann::json::parse(trace_json(machine, *code, timeline), nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  std::vector<int64_t> until(kQueues, 0);
  std::vector<std::string> rows;
  size_t slices = 0;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") rows.push_back(event["args"]["name"]);
    if (event["ph"] != "X") continue;
    ++slices;
    const int queue = event["tid"];
    EXPECT_GE(event["ts"], until[queue]);
    until[queue] = event["ts"].get<int64_t>() + event["dur"].get<int64_t>();
    EXPECT_EQ(event["args"]["text"], text_of((*code)[event["args"]["instruction"]]));
  }
  EXPECT_EQ(rows, (std::vector<std::string>{"load", "compute", "store"}));
  EXPECT_EQ(slices, code->size());
}

}  // namespace
}  // namespace tuner::npu
