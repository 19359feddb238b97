// Reference answers: written, read back, and what they catch.
#include "measure_server/runner/reference_file.h"
#include "compiler_core/base/elements.h"
#include "tests/random_seed.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <set>

namespace tuner {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr CheckSpec kSpec{1e-4, 1e-4};

// The hash at the end of a file, as bytes: reference_file.cpp has another copy on purpose.
std::string hash_of(const std::string& bytes) {
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t lane[4] = {0xcbf29ce484222325, 1, 2, 3}, hash = bytes.size();
  for (size_t i = 0; i < bytes.size() / 8; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + 8 * i, 8);
    lane[i % 4] = (lane[i % 4] ^ word) * kPrime;
    lane[i % 4] ^= lane[i % 4] >> 29;
  }
  for (const uint64_t l : lane) hash = ((hash ^ l) * kPrime) ^ (hash >> 31);
  return {reinterpret_cast<const char*>(&hash), 8};
}

class ReferenceFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / ("reference_file_test_" + std::to_string(getpid())))
                .string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // Writes and reads back `answer`; the bytes live in words_ (aligned).
  ReferenceView round_trip(const std::vector<double>& answer, const std::vector<int64_t>& shape,
                           ReferenceKind kind) {
    const Status written = write_reference(path_, answer, shape, kind);
    EXPECT_TRUE(written.is_ok()) << written.message();
    load();
    const Result<ReferenceView> view = parse_reference(bytes());
    EXPECT_TRUE(view.is_ok()) << view.message();
    return view.is_ok() ? *view : ReferenceView{};
  }
  void load() {
    size_ = std::filesystem::file_size(path_);
    words_.assign(size_ / 8 + 1, 0);
    std::ifstream(path_, std::ios::binary).read(reinterpret_cast<char*>(words_.data()), size_);
  }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(words_.data()), size_}; }

  static std::vector<double> random_answer(int64_t n, unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<double> a(n);
    for (double& x : a) x = std::uniform_real_distribution<double>(-4, 4)(random);
    return a;
  }
  // As a kernel would: float32, each element off by rounding noise well inside the tolerance.
  static std::vector<float> noisy(const std::vector<double>& answer) {
    std::mt19937_64 random(5);
    std::vector<float> out;
    for (double x : answer)
      out.push_back(static_cast<float>(x + std::normal_distribution<double>(0, 2e-5)(random)));
    return out;
  }

  std::string path_;
  std::vector<uint64_t> words_;
  size_t size_ = 0;
};

TEST_F(ReferenceFile, AnOutputsOwnToleranceCountsInPlaceOfTheTasks) {
  const std::vector<double> answer = random_answer(400, 1);
  std::vector<float> out(answer.begin(), answer.end());
  out[7] += 0.5f;
  for (const ReferenceKind kind : {ReferenceKind::kFull, ReferenceKind::kChecksums}) {
    const auto right = [&](std::optional<CheckSpec> own, const CheckSpec& told) {
      EXPECT_TRUE(write_reference(path_, answer, {20, 20}, kind, {.tolerance = own}).is_ok());
      load();
      const Result<ReferenceView> view = parse_reference(bytes());
      EXPECT_TRUE(view.is_ok()) << view.message();
      return check_output(*view, out.data(), DType::kFloat32, told, "out").ok;
    };
    const CheckSpec tight{1e-6, 0}, loose{1, 0};
    EXPECT_FALSE(right(std::nullopt, tight));
    EXPECT_TRUE(right(loose, tight));
    EXPECT_FALSE(right(tight, loose));
    EXPECT_TRUE(right(std::nullopt, loose));
  }
  EXPECT_TRUE(write_reference(path_, answer, {20, 20}, ReferenceKind::kFull, {.tolerance = CheckSpec{-1, 0}})
                  .is_ok());
  load();
  EXPECT_THAT(parse_reference(bytes()).message(), ::testing::HasSubstr("impossible tolerance"));
}

TEST_F(ReferenceFile, APartIsComparedFromAPlaceThatIsDrawn) {
  const std::vector<double> answer = random_answer(100, 1);
  const ReferenceView view = round_trip(answer, {10, 10}, ReferenceKind::kFull);
  std::vector<float> out = noisy(answer);
  out[42] += 1;
  const auto right = [&](int64_t most, uint64_t random) {
    return check_part(view, out.data(), DType::kFloat32, kSpec, "out", most, random).ok;
  };
  EXPECT_FALSE(right(100, 7));
  EXPECT_FALSE(right(1000, 7)) << "more than there are";
  int found = 0;
  for (uint64_t from = 0; from <= 90; ++from) found += right(10, from) ? 0 : 1;
  EXPECT_EQ(found, 10) << "the places from 33 to 42";
  out[42] -= 1;
  for (const size_t end : {size_t{0}, size_t{99}}) {
    out[end] += 1;
    found = 0;
    for (uint64_t from = 0; from <= 90; ++from) found += right(10, from) ? 0 : 1;
    EXPECT_EQ(found, 1) << "the first and the last element are in one part of the 91 each: " << end;
    out[end] -= 1;
  }
}

TEST_F(ReferenceFile, FullHoldsEveryElement) {
  const std::vector<double> answer = random_answer(2 * 3 * 5, 1);
  const ReferenceView view = round_trip(answer, {2, 3, 5}, ReferenceKind::kFull);
  EXPECT_EQ(view.shape, (std::vector<int64_t>{2, 3, 5}));
  EXPECT_TRUE(std::equal(answer.begin(), answer.end(), view.full.begin(), view.full.end()));
  const std::vector<float> out = noisy(answer);
  const CheckResult r = check_output(view, out.data(), DType::kFloat32, kSpec, "out");
  EXPECT_TRUE(r.ok) << r.message;
  EXPECT_GT(r.max_error, 0);
  EXPECT_LE(r.max_error, 1);
}

TEST_F(ReferenceFile, EveryElementCountsWhereverItStands) {
  const std::vector<double> answer = random_answer(333, 3);
  const ReferenceView view = round_trip(answer, {333}, ReferenceKind::kFull);
  const auto tolerance = [&](size_t i) { return kSpec.absolute + kSpec.relative * std::fabs(answer[i]); };
  std::vector<float> out = noisy(answer);
  double furthest = 0;
  for (size_t i = 0; i < out.size(); ++i)
    furthest = std::max(furthest, std::fabs(static_cast<double>(out[i]) - answer[i]) / tolerance(i));
  EXPECT_EQ(check_output(view, out.data(), DType::kFloat32, kSpec, "out").max_error, furthest);
  for (size_t i = 0; i < out.size(); ++i) {
    const float right = std::exchange(out[i], static_cast<float>(answer[i] + 1.05 * tolerance(i)));
    const CheckResult r = check_output(view, out.data(), DType::kFloat32, kSpec, "out");
    EXPECT_FALSE(r.ok) << i;
    EXPECT_NEAR(r.max_error, 1.05, 0.01) << i;
    out[i] = right;
  }
}

TEST_F(ReferenceFile, FirstWrongElementIsNamed) {
  std::vector<double> answer(1 * 4 * 20 * 6, 1.5);
  const ReferenceView view = round_trip(answer, {1, 4, 20, 6}, ReferenceKind::kFull);
  std::vector<float> out(answer.begin(), answer.end());
  out[(3 * 20 + 17) * 6 + 5] = 1.25f;
  out[(3 * 20 + 18) * 6 + 5] = 7.0f;
  const CheckResult r = check_output(view, out.data(), DType::kFloat32, {1e-4, 0}, "out");
  EXPECT_FALSE(r.ok);
  EXPECT_EQ(r.message, "out[0, 3, 17, 5] is 1.25, reference 1.5, tolerance 0.0001");
  EXPECT_NEAR(r.max_error, 5.5e4, 1);
  EXPECT_EQ(r.index, (std::vector<int64_t>{0, 3, 17, 5}));
  EXPECT_EQ(r.found, "1.25");
  EXPECT_EQ(r.expected, "1.5");
}

TEST_F(ReferenceFile, NanAndInfinityAreWrongEverywhere) {
  const std::vector<double> answer = random_answer(64 * 128, 2);
  for (ReferenceKind kind : {ReferenceKind::kFull, ReferenceKind::kChecksums}) {
    const ReferenceView view = round_trip(answer, {64, 128}, kind);
    for (float bad : {std::nanf(""), -INFINITY}) {
      std::vector<float> out = noisy(answer);
      out[77 * 31] = bad;
      const CheckResult r = check_output(view, out.data(), DType::kFloat32, kSpec, "out");
      EXPECT_FALSE(r.ok) << bad;
      EXPECT_TRUE(std::isinf(r.max_error));
    }
  }
}

// The reference is computed in double precision, and goes on where float32 has no numbers any more.
TEST_F(ReferenceFile, WhatAnOutputCannotHoldIsInfinite) {
  for (ReferenceKind kind : {ReferenceKind::kFull, ReferenceKind::kChecksums}) {
    const ReferenceView view = round_trip({1, 1e39, -3.5e38, 3.4028234663852886e38}, {4}, kind);
    const auto is_right = [&](std::vector<float> out) {
      return check_output(view, out.data(), DType::kFloat32, kSpec, "out").ok;
    };
    const float most = std::numeric_limits<float>::max();
    EXPECT_TRUE(is_right({1, INFINITY, -INFINITY, most}));
    EXPECT_FALSE(is_right({1, most, -INFINITY, most}));
    EXPECT_FALSE(is_right({1, INFINITY, INFINITY, most}));
    EXPECT_FALSE(is_right({1, INFINITY, -INFINITY, INFINITY}));
  }
}

TEST_F(ReferenceFile, ZeroToleranceAsksForEquality) {
  const ReferenceView view = round_trip({1, 2, 3}, {3}, ReferenceKind::kFull);
  const int32_t right[] = {1, 2, 3}, wrong[] = {1, 2, 4};
  EXPECT_TRUE(check_output(view, right, DType::kInt32, {0, 0}, "out").ok);
  EXPECT_EQ(check_output(view, wrong, DType::kInt32, {0, 0}, "out").message,
            "out[2] is 4, reference 3, tolerance 0");
}

TEST_F(ReferenceFile, HalfPrecisionIsReadRight) {
  const ReferenceView view = round_trip({1.5, -2, 0.0000152587890625, 65504}, {4}, ReferenceKind::kFull);
  const uint16_t half[] = {0x3E00, 0xC000, 0x0100, 0x7BFF};
  EXPECT_TRUE(check_output(view, half, DType::kFloat16, {0, 0}, "out").ok);
  const ReferenceView brains = round_trip({1.5, -2, 0.0, 256}, {4}, ReferenceKind::kFull);
  const uint16_t brain[] = {0x3FC0, 0xC000, 0x8000, 0x4380};
  EXPECT_TRUE(check_output(brains, brain, DType::kBFloat16, {0, 0}, "out").ok);
}

TEST_F(ReferenceFile, ChecksumsAcceptRoundingNoise) {
  const std::vector<double> answer = random_answer(300 * 700, 3);
  const ReferenceView view = round_trip(answer, {3, 100, 700}, ReferenceKind::kChecksums);
  EXPECT_LT(size_, answer.size() * 8 / 8) << "small beside the answer";
  const std::vector<float> out = noisy(answer);
  const CheckResult r = check_output(view, out.data(), DType::kFloat32, kSpec, "out");
  EXPECT_TRUE(r.ok) << r.message;
}

TEST_F(ReferenceFile, ChecksumsSeeAnySingleWrongElement) {
  const std::vector<double> answer = random_answer(300 * 700, 4);
  const ReferenceView view = round_trip(answer, {3, 100, 700}, ReferenceKind::kChecksums);
  const RandomSeed seed(6);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    std::vector<float> out = noisy(answer);
    const size_t at = random() % out.size();
    out[at] += 0.1f;
    const CheckResult r = check_output(view, out.data(), DType::kFloat32, kSpec, "out");
    EXPECT_FALSE(r.ok) << "element " << at;
  }
}

TEST_F(ReferenceFile, ChecksumsNameTheRowWhenTheElementIsNotSampled) {
  const std::vector<double> answer = random_answer(200 * 300, 4);
  const ReferenceView view = round_trip(answer, {200, 300}, ReferenceKind::kChecksums);
  std::set<uint64_t> sampled;
  for (const auto& s : view.samples) sampled.insert(s.index);
  uint64_t at = 57 * 300 + 100;
  while (sampled.contains(at)) ++at;
  std::vector<float> out = noisy(answer);
  out[at] += 1;
  const CheckResult r = check_output(view, out.data(), DType::kFloat32, kSpec, "out");
  EXPECT_THAT(r.message, StartsWith("sum of row 57 of out (from out[57, 0]) is "));
}

// Rounding to 16 bits is off by up to the tolerance of an element, evenly: sums of exact values would be off
// by more than theirs in some of a thousand rows.
TEST_F(ReferenceFile, SumsAreOfWhatAnOutputOf16BitsStores) {
  constexpr int64_t kRows = 1024, kColumns = 1024;
  const CheckSpec spec{1e-6, 0x1p-8};
  const std::vector<double> answer = random_answer(kRows * kColumns, 7);
  std::vector<uint16_t> out;
  for (const double x : answer)
    out.push_back(
        static_cast<uint16_t>(std::bit_cast<uint32_t>(rounded_to_bfloat16(static_cast<float>(x))) >> 16));
  const auto checked = [&](const OutputFacts& facts) {
    EXPECT_TRUE(write_reference(path_, answer, {kRows, kColumns}, ReferenceKind::kChecksums, facts));
    load();
    const Result<ReferenceView> view = parse_reference(bytes());
    EXPECT_TRUE(view.is_ok()) << view.message();
    return check_output(*view, out.data(), DType::kBFloat16, spec, "out");
  };
  EXPECT_FALSE(checked({}).ok) << "or this test shows nothing";
  const CheckResult right = checked({.stored_as = DType::kBFloat16});
  EXPECT_TRUE(right.ok) << right.message;
  EXPECT_LT(right.max_error, 1.01) << "of single elements, which are held against exact ones";
}

// A row divided by one sum that is off: each element is right, and so is the row.
TEST_F(ReferenceFile, ElementsMayShareAnError) {
  constexpr int64_t kRows = 300, kColumns = 700;
  const CheckSpec spec{1e-9, 1e-5};
  std::vector<double> answer = random_answer(kRows * kColumns, 8);
  for (double& x : answer) x = std::fabs(x) + 0.1;
  std::vector<float> out;
  for (size_t i = 0; i < answer.size(); ++i)
    out.push_back(static_cast<float>(answer[i] * (1 + (i / kColumns % 2 == 0 ? 8e-6 : -8e-6))));
  const auto checked = [&](bool shares) {
    EXPECT_TRUE(write_reference(path_, answer, {kRows, kColumns}, ReferenceKind::kChecksums,
                                {.shares_errors = shares}));
    load();
    const Result<ReferenceView> view = parse_reference(bytes());
    EXPECT_TRUE(view.is_ok()) << view.message();
    return check_output(*view, out.data(), DType::kFloat32, spec, "out");
  };
  EXPECT_THAT(checked(false).message, StartsWith("sum of row 0 of out"));
  const CheckResult right = checked(true);
  EXPECT_TRUE(right.ok) << right.message;
  for (int64_t c = 0; c < kColumns; ++c) out[static_cast<size_t>(5 * kColumns + c)] *= 1.00002f;
  EXPECT_FALSE(checked(true).ok) << "more than an element may be off";
}

// However the dimensions lie: sums of few rows or of few columns would take as much room as the answer.
TEST_F(ReferenceFile, ChecksumsAreSmallWhateverTheShape) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1'000'000},
                                            {1, 1'000'003},
                                            {1'000'003, 1},
                                            {8, 512, 16, 16},
                                            {2048, 16, 7, 7}}) {
    size_t count = 1;
    for (const int64_t d : shape) count *= static_cast<size_t>(d);
    const std::vector<double> answer = random_answer(count, 11);
    const ReferenceView view = round_trip(answer, shape, ReferenceKind::kChecksums);
    EXPECT_LT(size_, 250'000u) << count;
    std::vector<float> out = noisy(answer);
    EXPECT_TRUE(check_output(view, out.data(), DType::kFloat32, kSpec, "out").ok);
    // The last element of a shorter last row, and one that lies anywhere.
    for (const size_t at : {count - 1, count / 3 + 1}) {
      std::vector<float> wrong = out;
      wrong[at] += 0.2f;
      EXPECT_FALSE(check_output(view, wrong.data(), DType::kFloat32, kSpec, "out").ok)
          << at << " of " << count;
    }
  }
}

// As it was written before the number of columns was: caches are full of them.
TEST_F(ReferenceFile, ChecksumsByTheLastDimensionAreStillRead) {
  const std::vector<double> answer = random_answer(64 * 128, 12);
  (void)round_trip(answer, {64, 128}, ReferenceKind::kChecksums);
  // Kind 2, and no word for the columns, which are the last dimension here, too.
  std::string old(bytes().substr(0, size_ - 8));
  old[12] = 2;
  constexpr size_t kHeader = 8 + 4 + 4 + 8 + 2 * 8;
  old.erase(kHeader, 8);
  old += hash_of(old);
  words_.assign((old.size() + 7) / 8, 0);
  std::memcpy(words_.data(), old.data(), old.size());
  size_ = old.size();
  const Result<ReferenceView> view = parse_reference(bytes());
  ASSERT_TRUE(view.is_ok()) << view.message();
  EXPECT_EQ(view->columns.size(), 128u);
  std::vector<float> out = noisy(answer);
  EXPECT_TRUE(check_output(*view, out.data(), DType::kFloat32, kSpec, "out").ok);
  out[5000] += 1;
  EXPECT_FALSE(check_output(*view, out.data(), DType::kFloat32, kSpec, "out").ok);
}

TEST_F(ReferenceFile, SamplesLieOnEveryBorderAndCorner) {
  const std::vector<int64_t> shape = {2, 64, 30, 40};
  const ReferenceView view = round_trip(random_answer(2 * 64 * 30 * 40, 7), shape, ReferenceKind::kChecksums);
  EXPECT_EQ(view.samples.size(), 4096u);
  std::set<uint64_t> distinct;
  std::vector<int> first(4), last(4);
  int corners = 0;
  for (const auto& s : view.samples) {
    distinct.insert(s.index);
    uint64_t index = s.index;
    int borders = 0;
    for (int d = 3; d >= 0; index /= shape[d--]) {
      const int64_t at = index % shape[d];
      first[d] += at == 0;
      last[d] += at == shape[d] - 1;
      borders += at == 0 || at == shape[d] - 1;
    }
    corners += borders == 4;
  }
  EXPECT_EQ(distinct.size(), 4096u);
  EXPECT_GE(corners, 16);
  for (int d = 0; d < 4; ++d) {
    EXPECT_GT(first[d], 50) << "dimension " << d;
    EXPECT_GT(last[d], 50) << "dimension " << d;
  }
}

TEST_F(ReferenceFile, SmallAnswersAreSampledWhole) {
  const ReferenceView view = round_trip(random_answer(60, 8), {60}, ReferenceKind::kChecksums);
  EXPECT_EQ(view.samples.size(), 60u);
}

TEST_F(ReferenceFile, AnyAlteredByteAndAnyTruncationIsRefused) {
  for (ReferenceKind kind : {ReferenceKind::kFull, ReferenceKind::kChecksums}) {
    (void)round_trip(random_answer(5 * 7, 9), {5, 7}, kind);
    char* raw = reinterpret_cast<char*>(words_.data());
    for (size_t i = 0; i < size_; ++i) {
      raw[i] ^= 0x20;
      EXPECT_FALSE(parse_reference(bytes()).is_ok()) << "byte " << i;
      raw[i] ^= 0x20;
    }
    const size_t whole = size_;
    for (size_ = 0; size_ < whole; ++size_) {
      EXPECT_FALSE(parse_reference(bytes()).is_ok()) << size_ << " bytes";
      EXPECT_FALSE(parse_verified_reference(bytes()).is_ok()) << size_ << " bytes";
    }
    EXPECT_TRUE(parse_reference(bytes()).is_ok());
    EXPECT_TRUE(parse_verified_reference(bytes()).is_ok());
  }
}

TEST_F(ReferenceFile, SizeIsKnownBeforeItIsWritten) {
  const std::vector<std::vector<int64_t>> shapes = {{}, {7}, {5000}, {70, 90}, {3, 5, 7, 11}};
  for (const std::vector<int64_t>& shape : shapes)
    for (const ReferenceKind kind : {ReferenceKind::kFull, ReferenceKind::kChecksums}) {
      int64_t count = 1;
      for (const int64_t d : shape) count *= d;
      const std::string path = str(path_, ".size");
      ASSERT_TRUE(
          write_reference(path, std::vector<double>(static_cast<size_t>(count), 1), shape, kind).is_ok());
      EXPECT_EQ(reference_file_bytes(shape, kind), static_cast<int64_t>(std::filesystem::file_size(path)));
      std::filesystem::remove(path);
    }
}

TEST_F(ReferenceFile, WriterRefusesWhatDoesNotFit) {
  EXPECT_THAT(write_reference(path_, std::vector<double>(5), {2, 3}, ReferenceKind::kFull).message(),
              HasSubstr("the shape has 6 elements, the answer 5"));
  EXPECT_THAT(
      write_reference("/nonexistent/r", std::vector<double>(6), {2, 3}, ReferenceKind::kFull).message(),
      HasSubstr("/nonexistent/r: cannot be written: No such file"));
}

}  // namespace
}  // namespace tuner
