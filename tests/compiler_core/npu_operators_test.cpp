// Operators of networks as the NPU's instructions say them, compared with plain loops: the instructions
// serve what they were made for. Tokens are placed by the analysis.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "compiler_core/npu/simulator.h"
#include "compiler_core/npu/tokens.h"
#include "tests/compiler_core/npu_programs.h"

namespace tuner::npu::testing {
namespace {

constexpr int kSide = 9, kChannels = 16;  // of images: NHWC, N = 1
constexpr int kPadded = kSide + 2;
constexpr uint32_t kImage = 0, kWeights = 2048, kTables = 8192, kOut = 12288, kDramBytes = 16384;  // in DRAM
constexpr uint32_t kWeightWords = 4096, kTableWords = 8192,
                   kResultWords = 12288;  // a bank each; the image is in 0

// Runs code on bytes drawn for the image and the weights, and tables that requantise by `scale`.
struct Chip {
  explicit Chip(float scale = 1) : dram(kDramBytes) {
    Random random(3);
    for (uint8_t& b : dram) b = static_cast<uint8_t>(draw(random, -128, 127));
    for (int c = 0; c < kChannels; ++c) {
      const int32_t b = bias(c);
      std::memcpy(&dram[kTables + 4 * c], &b, 4);
      std::memcpy(&dram[kTables + 64 + 4 * c], &scale, 4);
    }
  }
  static int32_t bias(int channel) { return 37 * channel - 300; }

  int image(int y, int x, int c) const {  // 0 in the padding
    if (y < 0 || x < 0 || y >= kSide || x >= kSide) return 0;
    return static_cast<int8_t>(dram[kImage + (y * kSide + x) * kChannels + c]);
  }
  int weight(int at) const { return static_cast<int8_t>(dram[kWeights + at]); }
  int out(int at) const { return static_cast<int8_t>(dram[kOut + at]); }

  void run(const Code& code) {
    const Machine machine;
    const Result<Code> ordered = place_tokens(machine, code, dram.size());
    ASSERT_TRUE(ordered.is_ok()) << ordered.message();
    const Simulated s = simulate(machine, *ordered, dram);
    ASSERT_FALSE(s.fault) << s.fault->message;
  }

  std::vector<uint8_t> dram;
};

int requantized_by(int32_t sum, float scale) {
  return static_cast<int>(std::clamp(std::nearbyint(static_cast<float>(sum) * scale), -128.0f, 127.0f));
}

// The image with a border of zeros, the weights and the tables in the scratchpad.
Code loads(uint32_t weight_bytes) {
  return {{.op = Op::kSetLoad, .dram_stride = kSide * kChannels, .stride = kPadded},
          {.op = Op::kLoad,
           .dram = kImage,
           .rows = kSide,
           .bytes = kSide * kChannels,
           .left = kChannels,
           .right = kChannels,
           .top = 1,
           .bottom = 1},
          {.op = Op::kLoad, .dram = kWeights, .target = kWeightWords, .rows = 1, .bytes = weight_bytes},
          {.op = Op::kLoad, .dram = kTables, .target = kTableWords, .rows = 1, .bytes = 128},
          {.op = Op::kStoreScales, .source = kTableWords, .blocks = 1, .low = -128, .high = 127},
          {.op = Op::kSetStore, .dram_stride = kChannels, .stride = 1}};
}

class NpuConvolution : public ::testing::TestWithParam<int> {};

// One matmul per tap takes all output pixels, rows and columns, by its two strides.
TEST_P(NpuConvolution, ThreeByThreeWithPadding) {
  const uint32_t stride = static_cast<uint32_t>(GetParam()), side = (kSide - 1) / stride + 1;
  constexpr float kScale = 0x1p-10f;
  Chip chip(kScale);
  const Chip before = chip;
  Code code = loads(9 * kChannels * kChannels);
  code.push_back({.op = Op::kMatmul, .fill = true, .source2 = kWeightWords, .stride2 = 1});
  for (uint32_t tap = 0; tap < 9; ++tap)
    code.push_back({.op = Op::kMatmul,
                    .accumulate = tap > 0,
                    .swap = true,
                    .fill = tap < 8,
                    .source = tap / 3 * kPadded + tap % 3,
                    .source2 = tap < 8 ? kWeightWords + (tap + 1) * kChannels : 0,
                    .rows = side,
                    .outer = side,
                    .stride = stride,
                    .outer_stride = stride * kPadded,
                    .stride2 = tap < 8 ? 1u : 0u});
  code.push_back({.op = Op::kStoreSums, .dram = kOut, .rows = side * side, .bytes = kChannels});
  chip.run(code);
  for (int y = 0; y < static_cast<int>(side); ++y)
    for (int x = 0; x < static_cast<int>(side); ++x)
      for (int k = 0; k < kChannels; ++k) {
        int32_t sum = Chip::bias(k);
        for (int tap = 0; tap < 9; ++tap)
          for (int c = 0; c < kChannels; ++c)
            sum += before.image(y * GetParam() + tap / 3 - 1, x * GetParam() + tap % 3 - 1, c) *
                   before.weight((tap * kChannels + c) * kChannels + k);
        ASSERT_EQ(chip.out((y * static_cast<int>(side) + x) * kChannels + k), requantized_by(sum, kScale))
            << y << " " << x << " " << k;
      }
}

TEST_P(NpuConvolution, Depthwise) {
  const uint32_t stride = static_cast<uint32_t>(GetParam()), side = (kSide - 1) / stride + 1;
  constexpr float kScale = 0x1p-8f;
  Chip chip(kScale);
  const Chip before = chip;
  Code code = loads(9 * kChannels);
  for (uint32_t y = 0; y < side; ++y)
    code.push_back({.op = Op::kMacc,
                    .source = y * stride * kPadded,
                    .source2 = kWeightWords,
                    .sums = y * side,
                    .rows = side,
                    .stride = stride,
                    .taps_x = 3,
                    .taps_y = 3,
                    .step_x = 1,
                    .step_y = kPadded});
  code.push_back({.op = Op::kStoreSums, .dram = kOut, .rows = side * side, .bytes = kChannels});
  chip.run(code);
  for (int y = 0; y < static_cast<int>(side); ++y)
    for (int x = 0; x < static_cast<int>(side); ++x)
      for (int c = 0; c < kChannels; ++c) {
        int32_t sum = Chip::bias(c);
        for (int tap = 0; tap < 9; ++tap)
          sum += before.image(y * GetParam() + tap / 3 - 1, x * GetParam() + tap % 3 - 1, c) *
                 before.weight(tap * kChannels + c);
        ASSERT_EQ(chip.out((y * static_cast<int>(side) + x) * kChannels + c), requantized_by(sum, kScale));
      }
}

INSTANTIATE_TEST_SUITE_P(Strides, NpuConvolution, ::testing::Values(1, 2));

TEST(NpuOperators, MaximumPooling) {
  constexpr int kResults = 4;
  Chip chip;
  const Chip before = chip;
  Code code = loads(16);
  for (uint32_t y = 0; y < kResults; ++y)  // from inside the border
    code.push_back({.op = Op::kPool,
                    .source = (1 + 2 * y) * kPadded + 1,
                    .target = kResultWords + y * kResults,
                    .rows = kResults,
                    .stride = 2,
                    .stride2 = 1,
                    .taps_x = 2,
                    .taps_y = 2,
                    .step_x = 1,
                    .step_y = kPadded});
  code.push_back(
      {.op = Op::kStore, .dram = kOut, .source = kResultWords, .rows = kResults * kResults, .bytes = 16});
  chip.run(code);
  for (int y = 0; y < kResults; ++y)
    for (int x = 0; x < kResults; ++x)
      for (int c = 0; c < kChannels; ++c) {
        int most = -128;
        for (int tap = 0; tap < 4; ++tap)
          most = std::max(most, before.image(2 * y + tap / 2, 2 * x + tap % 2, c));
        ASSERT_EQ(chip.out((y * kResults + x) * kChannels + c), most);
      }
}

// (a - za) * sa + (b - zb) * sb, by ReLU: low is the zero point. Scales are powers of two, so that float32
// is exact.
TEST(NpuOperators, AdditionWithTwoScales) {
  constexpr int kWords = 40;
  Chip chip;
  const Chip before = chip;
  chip.run({{.op = Op::kLoad, .dram = kImage, .target = 0, .rows = 1, .bytes = 16 * kWords},
            {.op = Op::kLoad, .dram = kWeights, .target = kWeightWords, .rows = 1, .bytes = 16 * kWords},
            {.op = Op::kSetVector,
             .zero_a = -7,
             .zero_b = 11,
             .zero = -20,
             .low = -20,
             .high = 127,
             .scale_a = 0.75f,
             .scale_b = 0.5f},
            {.op = Op::kAdd, .source = 0, .source2 = kWeightWords, .target = kResultWords, .rows = kWords},
            {.op = Op::kStore, .dram = kOut, .source = kResultWords, .rows = 1, .bytes = 16 * kWords}});
  for (int n = 0; n < 16 * kWords; ++n) {
    const int a = int{0} + static_cast<int8_t>(before.dram[kImage + n]), b = before.weight(n);
    const double real = (a + 7) * 0.75 + (b - 11) * 0.5;
    ASSERT_EQ(chip.out(n), static_cast<int>(std::clamp(std::nearbyint(real) - 20, -20.0, 127.0)))
        << a << " " << b;
  }
}

// exp(-d / 16) for d = 0..255 in units of 2^-16. A result is a probability in units of 1 / 256, less 128.
TEST(NpuOperators, SoftmaxByATable) {
  constexpr int kRows = 5, kValues = 29;
  Chip chip;
  for (int d = 0; d < 256; ++d) {
    const auto entry = static_cast<int32_t>(std::lround(65536 * std::exp(-d / 16.0)));
    std::memcpy(&chip.dram[kTables + 4 * d], &entry, 4);
  }
  const Chip before = chip;
  chip.run({{.op = Op::kSetLoad, .dram_stride = kValues, .stride = 2},
            {.op = Op::kLoad, .dram = kImage, .target = 0, .rows = kRows, .bytes = kValues},
            {.op = Op::kLoad, .dram = kTables, .target = kTableWords, .rows = 1, .bytes = 1024},
            {.op = Op::kSetVector, .zero = -128, .low = -128, .high = 127, .scale_a = 256},
            {.op = Op::kSoftmax,
             .source = 0,
             .source2 = kTableWords,
             .target = kResultWords,
             .rows = kRows,
             .bytes = kValues,
             .stride = 2},
            {.op = Op::kSetStore, .dram_stride = kValues, .stride = 2},
            {.op = Op::kStore, .dram = kOut, .source = kResultWords, .rows = kRows, .bytes = kValues}});
  for (int r = 0; r < kRows; ++r) {
    double total = 0;
    const auto value = [&](int c) {
      return static_cast<int8_t>(before.dram[kImage + r * kValues + c]) / 16.0;
    };
    for (int c = 0; c < kValues; ++c) total += std::exp(value(c));
    for (int c = 0; c < kValues; ++c)
      ASSERT_NEAR(chip.out(r * kValues + c) + 128, std::min(255.0, 256 * std::exp(value(c)) / total), 0.51);
  }
}

// (x - mean) / sqrt(variance + epsilon) * gain + offset, of rows that do not fill their last word.
TEST(NpuOperators, LayerNorm) {
  constexpr int kRows = 6, kValues = 41;
  constexpr float kEpsilon = 1e-3f;
  Chip chip;
  const auto gain = [](int c) { return 20.0f + static_cast<float>(c); };
  const auto offset = [](int c) { return 3.0f - 0.5f * static_cast<float>(c); };
  for (int c = 0; c < 48; ++c) {  // by words of 16 values: 16 gains, 16 offsets
    const float numbers[2] = {gain(c), offset(c)};
    for (int half = 0; half < 2; ++half)
      std::memcpy(&chip.dram[kTables + static_cast<uint32_t>(c / 16 * 128 + half * 64 + c % 16 * 4)],
                  &numbers[half], 4);
  }
  const Chip before = chip;
  chip.run({{.op = Op::kSetLoad, .dram_stride = kValues, .stride = 3},
            {.op = Op::kLoad, .dram = kImage, .target = 0, .rows = kRows, .bytes = kValues},
            {.op = Op::kLoad, .dram = kTables, .target = kTableWords, .rows = 1, .bytes = 384},
            {.op = Op::kSetVector, .zero = 4, .low = -128, .high = 127, .scale_b = kEpsilon},
            {.op = Op::kNorm,
             .source = 0,
             .source2 = kTableWords,
             .target = kResultWords,
             .rows = kRows,
             .bytes = kValues,
             .stride = 3},
            {.op = Op::kSetStore, .dram_stride = kValues, .stride = 3},
            {.op = Op::kStore, .dram = kOut, .source = kResultWords, .rows = kRows, .bytes = kValues}});
  for (int r = 0; r < kRows; ++r) {
    const auto value = [&](int c) {
      return static_cast<double>(static_cast<int8_t>(before.dram[r * kValues + c]));
    };
    double mean = 0, variance = 0;
    for (int c = 0; c < kValues; ++c) mean += value(c) / kValues;
    for (int c = 0; c < kValues; ++c) variance += (value(c) - mean) * (value(c) - mean) / kValues;
    for (int c = 0; c < kValues; ++c) {
      const double exact = (value(c) - mean) / std::sqrt(variance + kEpsilon) * gain(c) + offset(c) + 4;
      ASSERT_NEAR(chip.out(r * kValues + c), std::clamp(exact, -128.0, 127.0), 0.501);
    }
  }
}

// Any function of one value.
TEST(NpuOperators, ATableOf256) {
  Chip chip;
  const Chip before = chip;
  chip.run({{.op = Op::kLoad, .dram = kImage, .target = 0, .rows = 1, .bytes = 160},
            {.op = Op::kLoad, .dram = kWeights, .target = kWeightWords, .rows = 1, .bytes = 256},
            {.op = Op::kTable, .source = 0, .source2 = kWeightWords, .target = kResultWords, .rows = 10},
            {.op = Op::kStore, .dram = kOut, .source = kResultWords, .rows = 1, .bytes = 160}});
  for (int n = 0; n < 160; ++n) ASSERT_EQ(chip.out(n), before.weight(before.dram[kImage + n]));
}

// Sums to int8 in the scratchpad and on to the next product, without DRAM: two layers, the second output
// stationary (its operand is the drained tile, read as columns).
TEST(NpuOperators, TwoLayersOnTheChip) {
  constexpr float kScale = 0x1p-9f;
  Chip chip(kScale);
  const Chip before = chip;
  chip.run({{.op = Op::kLoad, .dram = kImage, .target = 0, .rows = 1, .bytes = 256},
            {.op = Op::kLoad, .dram = kWeights, .target = kWeightWords, .rows = 1, .bytes = 512},
            {.op = Op::kLoad, .dram = kTables, .target = kTableWords, .rows = 1, .bytes = 128},
            {.op = Op::kStoreScales, .source = kTableWords, .blocks = 1, .low = -128, .high = 127},
            {.op = Op::kScales, .source = kTableWords, .blocks = 1, .low = 0, .high = 127},
            {.op = Op::kMatmul, .fill = true, .source2 = kWeightWords, .stride2 = 1},
            {.op = Op::kMatmul, .swap = true, .rows = 16, .outer = 1, .stride = 1},
            {.op = Op::kDrain, .target = kResultWords, .rows = 16, .blocks = 1, .stride = 1},
            {.op = Op::kMatmulOs,
             .source = kResultWords,
             .source2 = kWeightWords + 16,
             .sums = 16,
             .rows = 16,
             .stride = 1,
             .stride2 = 1},
            {.op = Op::kSetStore, .dram_stride = 16},
            {.op = Op::kStoreSums, .dram = kOut, .sums = 16, .rows = 16, .bytes = 16}});
  int hidden[16][16];
  for (int r = 0; r < 16; ++r)
    for (int c = 0; c < 16; ++c) {
      int32_t sum = Chip::bias(c);
      for (int k = 0; k < 16; ++k)
        sum += static_cast<int8_t>(before.dram[r * 16 + k]) * before.weight(k * 16 + c);
      hidden[r][c] = std::max(0, requantized_by(sum, kScale));
    }
  for (int r = 0; r < 16; ++r)
    for (int c = 0; c < 16; ++c) {
      int32_t sum = Chip::bias(c);
      for (int k = 0; k < 16; ++k) sum += hidden[k][r] * before.weight(256 + k * 16 + c);
      ASSERT_EQ(chip.out(r * 16 + c), requantized_by(sum, kScale)) << r << " " << c;
    }
}

}  // namespace
}  // namespace tuner::npu::testing
