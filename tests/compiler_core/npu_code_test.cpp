// Words, files and texts of NPU instructions: what is written is read back, and anything else gives one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/npu/encoding.h"
#include "compiler_core/npu/fields.h"
#include "compiler_core/npu/machine.h"
#include "compiler_core/npu/text.h"
#include "tests/compiler_core/npu_programs.h"
#include "tests/random_seed.h"

namespace tuner::npu {
namespace {

using testing::draw;
using testing::draw_instruction;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// One line for people.
bool is_one_line(const std::string& message) {
  return !message.empty() && message.size() < 300 && message.find('\n') == std::string::npos;
}

// Every word decodes or gives one line; one that decodes is the only word of its instruction.
void expect_total(const Word128& word, int64_t& decoded) {
  const Result<Instruction> i = decode(word);
  if (!i.is_ok()) {
    ASSERT_TRUE(is_one_line(i.message())) << i.message();
    return;
  }
  ++decoded;
  ASSERT_TRUE(check(*i).is_ok()) << check(*i).message();
  ASSERT_EQ(encode(*i), word) << text_of(*i);
}

TEST(NpuCode, AMillionInstructionsComeBack) {
  const RandomSeed seed(1);
  testing::Random random(seed);
  for (int n = 0; n < 1'000'000; ++n) {
    const Instruction i = draw_instruction(random);
    const Result<Instruction> back = decode(encode(i));
    ASSERT_TRUE(back.is_ok()) << text_of(i) << ": " << back.message();
    ASSERT_EQ(*back, i) << text_of(i);
  }
}

TEST(NpuCode, AnyWordDecodesOrGivesOneLine) {
  const RandomSeed seed(2);
  testing::Random random(seed);
  int64_t of_random = 0, of_damaged = 0, of_masked = 0;
  for (int n = 0; n < 300'000 && !HasFatalFailure(); ++n) {
    expect_total({random(), random()}, of_random);
    // A valid word with one to three bits turned.
    Word128 damaged = encode(draw_instruction(random));
    for (int64_t bits = draw(random, 1, 3); bits > 0; --bits) {
      const int64_t at = draw(random, 0, 127);
      damaged[at / 64] ^= uint64_t{1} << at % 64;
    }
    expect_total(damaged, of_damaged);
    // A valid opcode and nothing beyond a few low bits: fields at their bounds.
    expect_total({random() & random() & 0xff00ff00ff003fu, random() & random() & random()}, of_masked);
  }
  EXPECT_GT(of_damaged, 30'000) << "hardly a damaged word decodes: the test says nothing about those that do";
  EXPECT_LT(of_damaged, 290'000) << "hardly a damaged word is refused";
  EXPECT_GT(of_masked, 100);
}

// The bits of version 1, put together by hand: opcode 2, waits for store (bit 8), gives compute (bit 10),
// dram from bit 16, target from 48, rows from 68, bytes from 78, left from 92, right from 102, top 112,
// bottom 116, fill 120.
TEST(NpuCode, TheBitsOfALoad) {
  const Instruction load{.op = Op::kLoad,
                         .waits = bit(Queue::kStore),
                         .gives = bit(Queue::kCompute),
                         .dram = 0x12345678,
                         .target = 0xabcde,
                         .rows = 5,
                         .bytes = 64,
                         .left = 3,
                         .right = 7,
                         .top = 1,
                         .bottom = 2,
                         .fill_value = -1};
  const uint64_t low = 2u | 1u << 8 | 1u << 10 | 0x12345678ull << 16 | 0xbcdeull << 48;
  const uint64_t high =
      0xaull | 5ull << 4 | 64ull << 14 | 3ull << 28 | 7ull << 38 | 1ull << 48 | 2ull << 52 | 0xffull << 56;
  EXPECT_EQ(encode(load), (Word128{low, high}));
}

// Bit 15: of `scales` the numbers are bytes from 0 to 255, at 40 behind the source and the blocks.
TEST(NpuCode, TheBitsOfUnsignedNumbers) {
  const Instruction scales{
      .op = Op::kScales, .is_unsigned = true, .source = 1, .blocks = 2, .zero = 200, .low = 0, .high = 255};
  EXPECT_EQ(encode(scales),
            (Word128{6u | 1u << 15 | 1u << 16 | 2ull << 36 | 200ull << 40 | 255ull << 56, 0}));
  const Result<Instruction> back = decode(encode(scales));
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_TRUE(*back == scales);
  EXPECT_EQ(text_of(scales), "scales source=1 blocks=2 zero=200 high=255 unsigned");
}

TEST(NpuCode, RefusedWordsAreNamed) {
  EXPECT_EQ(decode({0, 0}).message(), "bits 0-5: opcode 0 is none; they go from 1 to 17");
  EXPECT_EQ(decode({63, 0}).message(), "bits 0-5: opcode 63 is none; they go from 1 to 17");
  const Word128 set = encode({.op = Op::kSetLoad, .stride = 1});
  EXPECT_EQ(decode({set[0] | 1u << 13, set[1]}).message(),
            "set_load: bits 12-15: flags 2, of which it takes 0");
  EXPECT_EQ(decode({set[0], set[1] | uint64_t{1} << 63}).message(), "set_load: bits 64-127: expected zeros");
  EXPECT_EQ(decode({set[0] | 1u << 6, set[1]}).message(),
            "set_load: waits or gives names its own queue, load, which is in order without tokens");
  const Word128 load = encode({.op = Op::kLoad, .rows = 1, .bytes = 1});
  EXPECT_EQ(decode({load[0], load[1] & ~uint64_t{0x3ff0}}).message(),
            "load: rows: expected a number from 1 to 1023, found 0");
}

TEST(NpuCode, TextsComeBack) {
  const RandomSeed seed(3);
  testing::Random random(seed);
  Code code;
  for (int n = 0; n < 20'000; ++n) code.push_back(draw_instruction(random));
  const Result<Code> back = parse_code(text_of(code));
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_TRUE(*back == code);
}

TEST(NpuCode, TextsAreReadable) {
  const Result<Code> code = parse_code(R"(
# weights, then rows
matmul fill source2=64 stride2=1 waits=load   # the first
matmul rows=8 outer=1 stride=1 swap accumulate gives=load,store
set_vector scale_a=0.25 zero_a=-3
)");
  ASSERT_TRUE(code.is_ok()) << code.message();
  EXPECT_EQ(text_of(*code), R"(matmul source2=64 stride2=1 fill waits=load
matmul rows=8 outer=1 stride=1 accumulate swap gives=load,store
set_vector scale_a=0.25 zero_a=-3
)");
}

TEST(NpuCode, WrongTextsNameLineAndWord) {
  const auto refusal = [](const char* text) { return parse_code(text).message(); };
  EXPECT_EQ(refusal("\nlaod rows=1"), "line 2: unknown operation \"laod\"; did you mean load?");
  EXPECT_EQ(refusal("load row=1"), "line 1: load has no field \"row\"; did you mean rows?");
  EXPECT_EQ(refusal("load rows=x"), "line 1: rows: expected a number, found \"x\"");
  EXPECT_EQ(refusal("load rows=1024 bytes=1"),
            "line 1: load: rows: expected a number from 1 to 1023, found 1024");
  EXPECT_EQ(refusal("load rows=1 bytes=1 fast"),
            "line 1: load: expected KEY=NUMBER or a flag, found \"fast\"");
  EXPECT_EQ(refusal("load rows=1 bytes=1 waits=dma"),
            "line 1: waits: expected queues such as load,store, found \"dma\"");
  EXPECT_EQ(refusal("load rows=1 bytes=1 swap"),
            "line 1: load: a field or flag is set that it does not have");
  EXPECT_EQ(refusal("matmul rows=1 swap"),
            "line 1: matmul: expected rows and outer both 0, or neither, found 1 and 0");
  EXPECT_EQ(refusal("matmul swap"),
            "line 1: matmul: one without rows only fills weights: expected fill, and no accumulate");
  EXPECT_EQ(refusal("scales blocks=1 low=3 high=2"), "line 1: scales: expected low <= high, found 3 and 2");
  EXPECT_EQ(refusal("set_vector scale_a=inf"), "line 1: set_vector: scale_a: expected a finite number");
  EXPECT_EQ(refusal("set_vector zero=200"),
            "line 1: set_vector: zero: expected a number from -128 to 127, found 200");
}

Binary small_binary() {
  testing::Random random(4);
  Binary binary{.machine = "npu -banks=8", .code = {}};
  for (int n = 0; n < 5; ++n) binary.code.push_back(draw_instruction(random));
  return binary;
}

TEST(NpuCode, FilesComeBack) {
  const Binary binary = small_binary();
  const Result<Binary> back = read_binary(write_binary(binary));
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(back->machine, binary.machine);
  EXPECT_TRUE(back->code == binary.code);
  EXPECT_TRUE(read_binary(write_binary({})).is_ok());
}

// Each cut and each changed byte.
TEST(NpuCode, DamagedFilesGiveOneLine) {
  const std::string bytes = write_binary(small_binary());
  for (size_t n = 0; n < bytes.size(); ++n) {
    const Result<Binary> cut = read_binary(bytes.substr(0, n));
    ASSERT_FALSE(cut.is_ok()) << "cut at " << n;
    EXPECT_TRUE(is_one_line(cut.message())) << cut.message();
    std::string changed = bytes;
    changed[n] = static_cast<char>(changed[n] ^ 0x10);
    const Result<Binary> damaged = read_binary(changed);
    ASSERT_FALSE(damaged.is_ok()) << "changed at " << n;
    EXPECT_TRUE(is_one_line(damaged.message())) << damaged.message();
  }
  std::string newer = bytes;
  newer[8] = 2;
  EXPECT_EQ(read_binary(newer).message(), "NPU binary: version 2, expected 1: compile the program again");
}

TEST(NpuCode, NamesOfMachines) {
  EXPECT_EQ(Machine().name(), "npu");
  const std::string full =
      "npu -array=32x8 -scratchpad=1MiB -banks=8 -bank_bytes=32 -accumulators=32KiB -dram_bytes=32 "
      "-burst=128 "
      "-latency=7 -lanes=8 -queue=3";
  const Result<Machine> m = parse_machine(full);
  ASSERT_TRUE(m.is_ok()) << m.message();
  EXPECT_EQ(m->name(), full);
  EXPECT_EQ(parse_machine("npu -latency=100 -array=16x16 -scratchpad=262144")->name(), "npu")
      << "defaults go";
  testing::Random random(5);
  for (int n = 0; n < 1000; ++n) {
    const Machine drawn = testing::draw_machine(random);
    const Result<Machine> back = parse_machine(drawn.name());
    ASSERT_TRUE(back.is_ok()) << back.message();
    EXPECT_EQ(*back, drawn) << drawn.name();
  }
}

TEST(NpuCode, WrongNamesOfMachinesAreRefused) {
  const auto refusal = [](const char* name) { return parse_machine(name).message(); };
  EXPECT_EQ(refusal("gpu"), "npu: expected a name that begins with \"npu\", found \"gpu\"");
  EXPECT_EQ(refusal("npu -bank=4"), "npu: unknown option \"-bank\"; did you mean -banks?");
  EXPECT_EQ(refusal("npu -banks=3"), "npu: -banks: expected a power of two from 1 to 32, found 3");
  EXPECT_EQ(refusal("npu -array=16"), "npu: -array: expected ROWSxCOLUMNS, such as 16x16, found \"16\"");
  EXPECT_THAT(refusal("npu -array=128x16"), HasSubstr("powers of two from 2 to 64, found 128x16"));
  EXPECT_THAT(refusal("npu -scratchpad=4x"), StartsWith("npu: -scratchpad: expected a size, such as 256KiB"));
  EXPECT_THAT(refusal("npu -burst=8"), HasSubstr("expected at least -dram_bytes, 16, found 8"));
}

}  // namespace
}  // namespace tuner::npu
