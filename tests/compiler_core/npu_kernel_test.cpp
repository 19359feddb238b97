// Kernels of the NPU as files, and the device that runs them: what is written comes back, anything else gives
// one line, and zero points come from operands.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "compiler_core/npu/device.h"
#include "compiler_core/npu/kernel_file.h"
#include "compiler_core/npu/text.h"
#include "tests/compiler_core/npu_programs.h"
#include "tests/random_seed.h"

namespace tuner::npu {
namespace {

// Adds the bias to nothing: 16 sums of 0 times 0, stored with a zero point from operand 1. Operand 0 has
// weights and rows, operand 2 is the result.
KernelFile small_kernel(bool is_unsigned) {
  KernelFile k{.machine = "npu",
               .operands = {{0, 64, true, false}, {64, 1, true, false}, {128, 16, false, true}}};
  k.dram_bytes = 4096;
  k.constants_at = 1024;
  k.constants = std::string(128, '\0');
  const float scale = 1;
  for (size_t c = 0; c < 16; ++c) {
    k.constants[4 * c] = static_cast<char>(10 * c);
    std::memcpy(&k.constants[64 + 4 * c], &scale, 4);
  }
  const Result<Code> code = parse_code(R"(
load dram=1024 rows=1 bytes=128 gives=store
set_load dram_stride=0 stride=1
load dram=2048 target=64 rows=32 bytes=16 gives=compute
matmul source2=80 stride2=1 fill waits=load
matmul source=64 rows=1 outer=1 stride=1 swap gives=store
store_scales source=0 blocks=1 low=-128 high=127 waits=load
store_sums dram=128 rows=1 bytes=16 outer_stride=1 waits=compute
)");
  EXPECT_TRUE(code.is_ok()) << code.message();
  k.code = *code;
  Instruction& scales = k.code[5];
  scales.is_unsigned = is_unsigned;
  scales.low = is_unsigned ? 0 : -128;
  scales.high = is_unsigned ? 255 : 127;
  k.patches = {{5, 1, KernelPatch::Field::kZero, 0}, {5, 1, KernelPatch::Field::kLow, 30}};
  return k;
}

std::vector<uint8_t> answer(bool is_unsigned, uint8_t zero_point) {
  Result<Device> device = Device::load(write_kernel(small_kernel(is_unsigned)));
  EXPECT_TRUE(device.is_ok()) << device.message();
  std::vector<uint8_t> weights(64), zero = {zero_point}, out(16, 0xA7);
  void* const args[] = {weights.data(), zero.data(), out.data()};
  const Simulated run = device->run(args);
  EXPECT_FALSE(run.fault) << run.fault->message;
  return out;
}

// 10 * c + zero point, not below 30 above it, within the type.
TEST(NpuKernel, ZeroPointsComeFromOperands) {
  const std::vector<uint8_t> from_hundred = answer(true, 100), from_below = answer(false, 256 - 20);
  for (int c = 0; c < 16; ++c) {
    EXPECT_EQ(from_hundred[static_cast<size_t>(c)], std::min(std::max(10 * c, 30) + 100, 255)) << c;
    EXPECT_EQ(static_cast<int8_t>(from_below[static_cast<size_t>(c)]),
              std::min(std::max(10 * c, 30) - 20, 127))
        << c;
  }
  // The same device again: nothing stays of the call before.
  Result<Device> device = Device::load(write_kernel(small_kernel(true)));
  std::vector<uint8_t> weights(64), zero = {100}, out(16);
  void* const args[] = {weights.data(), zero.data(), out.data()};
  const int64_t cycles = device->run(args).cycles;
  zero[0] = 3;
  EXPECT_EQ(device->run(args).cycles, cycles) << "cycles do not depend on operands";
  EXPECT_EQ(out[0], 33);
  EXPECT_EQ(ns_of_cycles(1500), 1500) << "1 GHz";
}

TEST(NpuKernel, FilesComeBack) {
  const KernelFile k = small_kernel(true);
  const std::string bytes = write_kernel(k);
  const Result<KernelFile> back = read_kernel(bytes);
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(back->machine, k.machine);
  EXPECT_TRUE(back->code == k.code);
  EXPECT_TRUE(back->operands == k.operands);
  EXPECT_TRUE(back->patches == k.patches);
  EXPECT_EQ(back->constants, k.constants);
  EXPECT_EQ(back->constants_at, k.constants_at);
  EXPECT_EQ(back->dram_bytes, k.dram_bytes);
  EXPECT_EQ(write_kernel(*back), bytes);
}

std::string refusal(const KernelFile& k) { return read_kernel(write_kernel(k)).message(); }

// A constant of 3 x 5 in blocks of two columns: [3 blocks][3][2], zeros in the sixth column.
KernelFile packing_kernel() {
  KernelFile k = small_kernel(true);
  k.pack_bytes = {15, 18};
  k.packing = {{.from = 0,
                .to = 1,
                .extents = {3, 3, 2},
                .source = {0, {2, 5, 1}},
                .target = {0, {6, 2, 1}},
                .at_least_zero = {{4, {-2, 0, -1}}}}};
  return k;
}

TEST(NpuKernel, ConstantsArePacked) {
  const Result<KernelFile> k = read_kernel(write_kernel(packing_kernel()));
  ASSERT_TRUE(k.is_ok()) << k.message();
  EXPECT_TRUE(k->packing == packing_kernel().packing);
  EXPECT_EQ(k->pack_bytes, packing_kernel().pack_bytes);
  std::vector<uint8_t> constant, packed(18, 0xA7);
  for (uint8_t n = 1; n <= 15; ++n) constant.push_back(n);
  void* const args[] = {constant.data(), packed.data()};
  ASSERT_TRUE(run_packing(*k, args));
  EXPECT_EQ(packed, (std::vector<uint8_t>{1, 2, 6, 7, 11, 12, 3, 4, 8, 9, 13, 14, 5, 0, 10, 0, 15, 0}));
}

// Where a copy would reach outside it stops, whatever its file says.
TEST(NpuKernel, PackingStaysInside) {
  std::vector<uint8_t> constant(15), packed(18);
  void* const args[] = {constant.data(), packed.data()};
  for (const int64_t far : {int64_t{1}, int64_t{-1}, int64_t{1} << 62}) {
    KernelFile k = packing_kernel();
    k.packing[0].target.base = far;
    EXPECT_FALSE(run_packing(k, args)) << far;
    k = packing_kernel();
    k.packing[0].source.by[1] = std::abs(far) > 1 ? far : far * 100;
    EXPECT_FALSE(run_packing(k, args)) << far;
  }
  KernelFile k = packing_kernel();
  k.packing[0].to = 2;
  EXPECT_EQ(read_kernel(write_kernel(k)).message(),
            "NPU kernel: a copy of the packing has argument 0 or 2 of 2, 1 bytes per element or 3 loops");
}

TEST(NpuKernel, RefusedFilesAreNamed) {
  EXPECT_EQ(read_kernel("").message(), "NPU kernel: expected a file that begins with NPUKERN");
  std::string other = write_kernel(small_kernel(true));
  other[8] = 9;
  EXPECT_EQ(read_kernel(other).message(), "NPU kernel: version 9, expected 1: compile the program again");
  KernelFile k = small_kernel(true);
  k.operands[2].dram = 4090;
  EXPECT_EQ(refusal(k), "NPU kernel: operand 2 lies outside of its 4096 bytes of DRAM");
  k = small_kernel(true);
  k.operands[0].bytes = ~uint64_t{0};
  EXPECT_EQ(refusal(k), "NPU kernel: operand 0 lies outside of its 4096 bytes of DRAM");
  k = small_kernel(true);
  k.constants_at = 4000;
  EXPECT_EQ(refusal(k), "NPU kernel: the constants lie outside of its 4096 bytes of DRAM");
  k = small_kernel(true);
  k.dram_bytes = uint64_t{1} << 40;
  EXPECT_EQ(refusal(k), "NPU kernel: 1099511627776 bytes of DRAM, expected at most 4294967296");
  k = small_kernel(true);
  k.patches[0].operand = 3;
  EXPECT_EQ(refusal(k), "NPU kernel: a patch of instruction 5 from operand 3, which it does not have");
  k = small_kernel(true);
  k.patches[1].instruction = 4;
  EXPECT_EQ(refusal(k),
            "NPU kernel: a patch of instruction 4, expected one of scales or store_scales, from an operand "
            "of a byte "
            "or more");
}

// Any bytes at all: one line, or a file that can be run without touching anything outside.
TEST(NpuKernel, DamagedFilesGiveOneLine) {
  const RandomSeed seed(5);
  testing::Random random(seed);
  const std::string whole = write_kernel(small_kernel(true));
  int read = 0;
  for (int n = 0; n < 20'000; ++n) {
    std::string bytes = whole;
    const int64_t damages = testing::draw(random, 1, 3);
    for (int64_t d = 0; d < damages; ++d)
      bytes[static_cast<size_t>(testing::draw(random, 0, static_cast<int64_t>(bytes.size()) - 1))] =
          static_cast<char>(random());
    if (testing::draw(random, 0, 3) == 0) bytes.resize(static_cast<size_t>(testing::draw(random, 0, 300)));
    Result<Device> device = Device::load(bytes);
    if (!device.is_ok()) {
      EXPECT_EQ(device.message().find('\n'), std::string::npos);
      continue;
    }
    ++read;
    if (device->kernel().operands.size() != 3 || device->kernel().dram_bytes > 1 << 20) continue;
    std::vector<std::vector<uint8_t>> memory;
    std::vector<void*> args;
    for (const KernelOperand& o : device->kernel().operands)
      memory.emplace_back(std::max<uint64_t>(o.bytes, 1));
    for (std::vector<uint8_t>& m : memory) args.push_back(m.data());
    (void)device->run(args.data());
  }
  EXPECT_GT(read, 100) << "hardly any damage is let through: the test says nothing about running";
}

}  // namespace
}  // namespace tuner::npu
