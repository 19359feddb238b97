// Windows, mel bands and Fourier transforms, held against plain loops over complex numbers and against the
// standard's example.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <numbers>
#include <random>

#include "tests/compiler_core/graph_answer.h"

namespace tuner::graph {
namespace {

using testing::Answer;
using testing::Dims;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::floats;
using ::testing::HasSubstr;
using testing::kNone;
using testing::Numbers;
using testing::of;
using testing::Operand;
using ::testing::Pointwise;
using testing::run;
using testing::word;
using Complex = std::complex<double>;
using std::numbers::pi;

Operand whole(int64_t number) { return {{DType::kInt64, {}}, {static_cast<double>(number)}, true}; }
Operand real(double number) { return {{DType::kFloat32, {}}, {number}, true}; }
Numbers random_numbers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> drawn(-1, 1);
  Numbers numbers(count);
  for (double& x : numbers) x = static_cast<float>(drawn(random));
  return numbers;
}
// The sum that defines a transform; elements behind the signal are 0.
std::vector<Complex> transform(const std::vector<Complex>& x, size_t length, size_t bins, bool inverse) {
  std::vector<Complex> result;
  for (size_t k = 0; k < bins; ++k) {
    Complex sum = 0;
    for (size_t n = 0; n < std::min(x.size(), length); ++n) {
      const double angle =
          2 * pi * static_cast<double>(k) * static_cast<double>(n) / static_cast<double>(length);
      sum += x[n] * std::polar(1.0, inverse ? angle : -angle);
    }
    result.push_back(inverse ? sum / static_cast<double>(length) : sum);
  }
  return result;
}
Numbers parts(const std::vector<Complex>& values) {
  Numbers numbers;
  for (const Complex& x : values) {
    numbers.push_back(x.real());
    numbers.push_back(x.imag());
  }
  return numbers;
}
auto near(const Numbers& expected) { return Pointwise(DoubleNear(1e-5), expected); }

TEST(GraphSignal, WindowsAreTheirFormulas) {
  struct Case {
    const char* op;
    double a0, a1, a2;
  };
  for (const auto& [op, a0, a1, a2] :
       {Case{"HannWindow", 0.5, 0.5, 0}, Case{"HammingWindow", 25.0 / 46, 21.0 / 46, 0},
        Case{"BlackmanWindow", 0.42, 0.5, 0.08}})
    for (const int64_t periodic : {0, 1}) {
      Numbers expected;
      for (int k = 0; k < 7; ++k) {
        const double angle = 2 * pi * k / (periodic != 0 ? 7 : 6);
        expected.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
      }
      const Answer window = run(17, op, {whole(7)}, {{"periodic", of(periodic)}});
      EXPECT_THAT(window.numbers, near(expected)) << op << window.refusal;
      EXPECT_EQ(run(17, op, {whole(7)}).numbers == window.numbers, periodic != 0) << op;
    }
  EXPECT_THAT(run(17, "HannWindow", {whole(1)}, {{"periodic", of(0)}}).numbers, ElementsAre(1));
  EXPECT_EQ(run(17, "HannWindow", {whole(4)}, {{"output_datatype", word("float64")}}).dtype, DType::kFloat64);
  EXPECT_THAT(run(17, "HannWindow", {whole(0)}).refusal,
              HasSubstr("a window of 0 numbers, expected 1 to 2^22"));
  EXPECT_THAT(run(17, "HannWindow", {{{DType::kInt64, {}}, {4}}}).refusal, HasSubstr("expected a constant"));
}

// The example of the standard: rows are bins, columns bands.
TEST(GraphSignal, MelBandsAreThoseOfTheStandardsExample) {
  const Answer mel =
      run(17, "MelWeightMatrix", {whole(8), whole(16), whole(8192), real(0), real(8192.0 / 2)});
  EXPECT_EQ(mel.refusal, "");
  EXPECT_THAT(mel.shape, ElementsAre(9, 8));
  EXPECT_THAT(mel.numbers, near({1, 1, 0, 0, 0, 0, 0, 0,  //
                                 0, 0, 1, 1, 0, 0, 0, 0,  //
                                 0, 0, 0, 0, 1, 0, 0, 0,  //
                                 0, 0, 0, 0, 0, 1, 0, 0,  //
                                 0, 0, 0, 0, 0, 0, 1, 0,  //
                                 0, 0, 0, 0, 0, 0, 0, 1,  //
                                 0, 0, 0, 0, 0, 0, 0, 0,  //
                                 0, 0, 0, 0, 0, 0, 0, 0,  //
                                 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_THAT(run(17, "MelWeightMatrix", {whole(8), whole(16), whole(8192), real(9), real(3)}).refusal,
              HasSubstr("a band from 9 to 3 Hertz, expected 0 or more, in order"));
}

// Wide bands rise and fall in even steps, and bins beyond the spectrum do not count.
TEST(GraphSignal, WideMelBandsAreTriangles) {
  const Answer mel = run(17, "MelWeightMatrix", {whole(2), whole(30), whole(3000), real(0), real(3000)});
  ASSERT_EQ(mel.refusal, "");
  ASSERT_THAT(mel.shape, ElementsAre(16, 2));
  Dims edges;
  const double top = 2595 * std::log10(1 + 3000.0 / 700);
  for (int k = 0; k < 4; ++k)
    edges.push_back(static_cast<int64_t>(31 * 700 * (std::pow(10, top / 4 * k / 2595) - 1) / 3000));
  for (int64_t band = 0; band < 2; ++band)
    for (int64_t bin = 0; bin < 16; ++bin) {
      const auto low = static_cast<double>(edges[band]), peak = static_cast<double>(edges[band + 1]),
                 high = static_cast<double>(edges[band + 2]), x = static_cast<double>(bin);
      const double expected =
          std::max(0.0, x <= peak ? (x - low) / (peak - low) : (high - x) / (high - peak));
      EXPECT_NEAR(mel.numbers[static_cast<size_t>(2 * bin + band)], expected, 1e-6) << band << " " << bin;
    }
}

TEST(GraphSignal, TransformsAreTheSumsThatDefineThem) {
  for (const int64_t extent : {1, 2, 5, 8})
    for (const int64_t length : {extent, extent + 3, std::max<int64_t>(1, extent - 2)})
      for (const bool is_complex : {false, true})
        for (const int64_t inverse : {0, 1}) {
          const Numbers x = random_numbers(static_cast<size_t>(2 * extent * (is_complex ? 2 : 1)), 7);
          const Answer found =
              run(20, "DFT", {floats({2, extent, is_complex ? 2 : 1}, x), whole(length), whole(1)},
                  {{"inverse", of(inverse)}});
          ASSERT_EQ(found.refusal, "");
          ASSERT_THAT(found.shape, ElementsAre(2, length, 2));
          Numbers expected;
          for (int64_t b = 0; b < 2; ++b) {
            std::vector<Complex> signal;
            for (int64_t n = 0; n < extent; ++n) {
              const auto at = static_cast<size_t>((b * extent + n) * (is_complex ? 2 : 1));
              signal.emplace_back(x[at], is_complex ? x[at + 1] : 0);
            }
            const auto size = static_cast<size_t>(length);
            const Numbers row = parts(transform(signal, size, size, inverse != 0));
            expected.insert(expected.end(), row.begin(), row.end());
          }
          EXPECT_THAT(found.numbers, near(expected))
              << extent << " " << length << " " << is_complex << inverse;
        }
}

// Up to set 19 an attribute that counts from 1 by default, since then an input that is the last but one.
TEST(GraphSignal, TheAxisOfATransformBecameAnInput) {
  const Operand x = floats({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(run(17, "DFT", {x}).numbers, near({5, 0, 7, 0, 9, 0, -3, 0, -3, 0, -3, 0}));
  EXPECT_EQ(run(17, "DFT", {x}).numbers, run(20, "DFT", {x, kNone, whole(1)}).numbers);
  EXPECT_EQ(run(17, "DFT", {x}, {{"axis", of(2)}}).numbers, run(20, "DFT", {x}).numbers);
  EXPECT_THAT(run(20, "DFT", {x}, {{"onesided", of(1)}}).shape, ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(run(20, "DFT", {x, kNone, whole(-1)}).refusal,
              HasSubstr("axis -1 is no signal of float32[1, 2, 3, 1]"));
  EXPECT_THAT(run(20, "DFT", {floats({2, 2}, {1, 2, 3, 4})}, {{"onesided", of(1)}}).refusal,
              HasSubstr("onesided = 1 needs a real signal"));
  EXPECT_THAT(run(20, "DFT", {floats({2, 3}, {1, 2, 3, 4, 5, 6})}).refusal,
              HasSubstr("needs a last dimension of 1 or 2"));
}

// A length whose matrix of angles would be large reads one turn.
TEST(GraphSignal, LongTransformsAreRight) {
  constexpr int64_t kLength = 2048;
  const Numbers x = random_numbers(3, 11);
  const Answer found = run(20, "DFT", {floats({3, 1}, x), whole(kLength)}, {{"onesided", of(1)}});
  ASSERT_EQ(found.refusal, "");
  EXPECT_THAT(found.numbers, near(parts(transform({x[0], x[1], x[2]}, kLength, kLength / 2 + 1, false))));
  const Numbers y = random_numbers(kLength, 12);
  const Answer whole_one = run(20, "DFT", {floats({kLength, 1}, y)}, {{"onesided", of(1)}});
  const std::vector<Complex> signal(y.begin(), y.end());
  EXPECT_THAT(whole_one.numbers,
              Pointwise(DoubleNear(1e-3), parts(transform(signal, kLength, kLength / 2 + 1, false))));
}

// Lengths that are taken apart into two factors, also along an axis that is not the last one.
TEST(GraphSignal, LengthsThatArePartedAreRight) {
  for (const int64_t length : {60, 64, 400, 512})
    for (const bool is_complex : {false, true})
      for (const int64_t way : {0, 1, 2}) {  // whole, inverse, one side
        if (way == 2 && is_complex) continue;
        const int64_t width = is_complex ? 2 : 1;
        const Numbers x = random_numbers(static_cast<size_t>(2 * length * 3 * width), 13);
        const Answer found = run(20, "DFT", {floats({2, length, 3, width}, x), kNone, whole(1)},
                                 {{way == 2 ? "onesided" : "inverse", of(static_cast<int64_t>(way > 0))}});
        ASSERT_EQ(found.refusal, "");
        const auto bins = static_cast<size_t>(way == 2 ? length / 2 + 1 : length);
        Numbers expected(2 * bins * 3 * 2);
        for (size_t b = 0; b < 2; ++b)
          for (size_t c = 0; c < 3; ++c) {
            std::vector<Complex> signal;
            for (size_t n = 0; n < static_cast<size_t>(length); ++n) {
              const size_t at = ((b * static_cast<size_t>(length) + n) * 3 + c) * static_cast<size_t>(width);
              signal.emplace_back(x[at], is_complex ? x[at + 1] : 0);
            }
            const Numbers row = parts(transform(signal, static_cast<size_t>(length), bins, way == 1));
            for (size_t k = 0; k < bins; ++k)
              for (size_t part = 0; part < 2; ++part)
                expected[((b * bins + k) * 3 + c) * 2 + part] = row[2 * k + part];
          }
        EXPECT_THAT(found.numbers, Pointwise(DoubleNear(1e-4), expected)) << length << is_complex << way;
      }
}

TEST(GraphSignal, FramesOverlapAndAreWeighted) {
  const Numbers x = random_numbers(2 * 11, 3), w = random_numbers(5, 4);
  for (const bool weighted : {false, true})
    for (const int64_t onesided : {0, 1}) {
      std::vector<Operand> operands{floats({2, 11, 1}, x), whole(3), weighted ? floats({5}, w) : kNone,
                                    whole(5)};
      const Answer found = run(17, "STFT", operands, {{"onesided", of(onesided)}});
      ASSERT_EQ(found.refusal, "");
      const size_t bins = onesided != 0 ? 3 : 5;
      ASSERT_THAT(found.shape, ElementsAre(2, 3, bins, 2));
      Numbers expected;
      for (size_t b = 0; b < 2; ++b)
        for (size_t f = 0; f < 3; ++f) {
          std::vector<Complex> frame;
          for (size_t n = 0; n < 5; ++n) frame.emplace_back(x[b * 11 + 3 * f + n] * (weighted ? w[n] : 1));
          const Numbers row = parts(transform(frame, 5, bins, false));
          expected.insert(expected.end(), row.begin(), row.end());
        }
      EXPECT_THAT(found.numbers, near(expected));
    }
  EXPECT_THAT(run(17, "STFT", {floats({1, 4, 1}, {1, 2, 3, 4}), whole(1)}).refusal,
              HasSubstr("has neither a window nor a frame_length"));
  EXPECT_THAT(run(17, "STFT", {floats({1, 4, 1}, {1, 2, 3, 4}), whole(1), kNone, whole(5)}).refusal,
              HasSubstr("frames of 5 each 1 of a signal of 4"));
  EXPECT_THAT(run(17, "STFT", {floats({1, 2, 2}, {1, 2, 3, 4}), whole(1), kNone, whole(2)}).refusal,
              HasSubstr("onesided = 1 needs a real signal"));
}

}  // namespace
}  // namespace tuner::graph
