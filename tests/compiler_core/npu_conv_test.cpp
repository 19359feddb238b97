// Convolutions written as straight code, their buffers and tokens placed by the analyses, beside plain
// loops: whatever the side, kernel, stride and channels, the numbers are those of the loops.
#include "tests/compiler_core/npu_conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compiler_core/npu/simulator.h"
#include "compiler_core/npu/tokens.h"
#include "tests/compiler_core/npu_model.h"
#include "tests/compiler_core/npu_programs.h"
#include "tests/random_seed.h"

namespace tuner::npu::testing {
namespace {

constexpr float kScale = 0x1p-10f;

std::vector<uint8_t> draw_operands(Random& random, const ConvCase& c) {
  std::vector<uint8_t> dram(c.dram_bytes());
  for (uint64_t at = 0; at < c.tables(); ++at) dram[at] = static_cast<uint8_t>(random());
  for (int64_t oc = 0; oc < c.out_channels; ++oc) {
    const int32_t bias = static_cast<int32_t>(draw(random, -5000, 5000));
    const uint64_t block = c.tables() + static_cast<uint64_t>(oc / 16 * 128 + oc % 16 * 4);
    std::memcpy(&dram[block], &bias, 4);
    std::memcpy(&dram[block + 64], &kScale, 4);
  }
  return dram;
}

int expected(const ConvCase& c, const std::vector<uint8_t>& dram, int64_t y, int64_t x, int64_t oc) {
  int32_t sum = 0;
  std::memcpy(&sum, &dram[c.tables() + static_cast<uint64_t>(oc / 16 * 128 + oc % 16 * 4)], 4);
  for (int64_t tap = 0; tap < c.kernel * c.kernel; ++tap) {
    const int64_t iy = y * c.stride + tap / c.kernel - c.pad(), ix = x * c.stride + tap % c.kernel - c.pad();
    if (iy < 0 || ix < 0 || iy >= c.side || ix >= c.side) continue;
    for (int64_t ic = 0; ic < c.channels; ++ic)
      sum += static_cast<int8_t>(dram[static_cast<size_t>((iy * c.side + ix) * c.channels + ic)]) *
             static_cast<int8_t>(dram[c.weights() + static_cast<uint64_t>(c.weight_at(tap, ic, oc))]);
  }
  return static_cast<int>(
      std::min(127.0f, std::max(-128.0f, std::nearbyint(static_cast<float>(sum) * kScale))));
}

TEST(NpuConv, RandomShapesAreThoseOfPlainLoops) {
  Seeds seeds(/*fixed=*/1, /*rounds=*/12);
  const Machine machine;
  for (const uint32_t seed : seeds) {
    Random random(seed);
    ConvCase c;
    c.kernel = 1 + 2 * draw(random, 0, 2);
    c.stride = draw(random, 1, 2);
    c.side = draw(random, 3, 13);
    c.channels = 16 * draw(random, 1, 3);
    c.out_channels = draw(random, 0, 1) == 0 ? 16 * draw(random, 1, 4) : 128;
    const std::vector<uint8_t> operands = draw_operands(random, c);
    ConvWriter writer(machine, c);
    const Code straight = writer.code();
    const Result<Allocation> placed = allocate_scratchpad(machine, straight, writer.buffers());
    ASSERT_TRUE(placed.is_ok()) << placed.message();
    const Result<Code> code = place_tokens(machine, placed->code, operands.size());
    ASSERT_TRUE(code.is_ok()) << code.message();
    std::vector<uint8_t> dram = operands;
    const Simulated s = simulate(machine, *code, dram);
    ASSERT_FALSE(s.fault) << s.fault->message;
    EXPECT_EQ(s.macs, c.macs());
    for (int64_t at = 0; at < c.out_side() * c.out_side() * c.out_channels; ++at) {
      const int64_t pixel = at / c.out_channels;
      ASSERT_EQ(static_cast<int8_t>(dram[c.out() + static_cast<uint64_t>(at)]),
                expected(c, operands, pixel / c.out_side(), pixel % c.out_side(), at % c.out_channels))
          << "pixel " << pixel << ", channel " << at % c.out_channels;
    }
  }
}

}  // namespace
}  // namespace tuner::npu::testing
