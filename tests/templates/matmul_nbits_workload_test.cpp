// The operator matmul_nbits: its key and job file, what it refuses, what it counts, and its math against the
// formula, with weights taken out of their bytes by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler_core/oracle/oracle.h"
#include "templates/workload/tolerance.h"
#include "templates/workload/workload_json.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using Numbers = std::vector<double>;

MatmulNBitsWorkload full() {
  return {.m = 3,
          .n = 10,
          .k = 70,
          .group = 32,
          .zero_points = true,
          .bias = true,
          .activation = Activation::kRelu,
          .constant = {"b", "scales", "zero_points"}};
}

TEST(MatmulNBitsWorkload, HasAKey) {
  const Workload w(full());
  EXPECT_EQ(w.key(),
            "v1 matmul_nbits m=3 n=10 k=70 b_dtype=int4 group=32 zero_points=1 bias=1 act=relu dtype=float32 "
            "const=b,scales,zero_points");
  const Result<Workload> read = workload_from_key(w.key());
  ASSERT_TRUE(read.is_ok()) << read.message();
  EXPECT_EQ(read->key(), w.key());
}

std::string answer_to(const char* text) {
  const Result<Workload> read = workload_from_json(text);
  if (!read) return read.message();
  const Status valid = validate(*read);
  return valid.is_ok() ? read->key() : valid.message();
}

TEST(MatmulNBitsWorkload, RefusesWhatHasNoMeaning) {
  EXPECT_EQ(answer_to(R"({"op":"matmul_nbits","a":[1,64],"b":[8,64],"b_dtype":"int4","group":32})"),
            "v1 matmul_nbits m=1 n=8 k=64 b_dtype=int4 group=32 zero_points=0 bias=0 act=none dtype=float32 "
            "const=none");
  EXPECT_EQ(answer_to(R"({"op":"matmul_nbits","a":[1,64],"b":[8,32],"b_dtype":"int4","group":32})"),
            "b: expected K = 64 as in a, found K = 32 in [8, 32]. Order is [N, K], of single weights.");
  EXPECT_EQ(answer_to(R"({"op":"matmul_nbits","a":[1,64],"b":[8,64],"b_dtype":"int3","group":32})"),
            "b_dtype: expected \"int4\", found \"int3\".");
  EXPECT_EQ(answer_to(R"({"op":"matmul_nbits","a":[1,64],"b":[8,64],"b_dtype":"int4","group":48})"),
            "group: expected a power of two from 16 to 256, found 48");
  EXPECT_EQ(answer_to(R"({"op":"matmul_nbits","a":[1,64],"b":[8,64],"b_dtype":"int4","group":512})"),
            "group: expected a power of two from 16 to 256, found 512");
  EXPECT_EQ(answer_to(R"({"op":"matmul_nbits","a":[1,64],"b":[8,64],"b_dtype":"int4","group":8})"),
            "group: expected an integer from 16 to 2147483648, found 8.");
  EXPECT_EQ(answer_to(R"({"op":"matmul_nbits","a":[1,64],"b":[8,64],"b_dtype":"int4"})"),
            "group: expected a value, found nothing.");
}

TEST(MatmulNBitsWorkload, CountsItsWork) {
  const Workload w(full());
  EXPECT_EQ(w.flops(), 2 * 3 * 10 * 70);
  // a, three groups of 16 bytes a column, their scales, zero points in two bytes, bias, out.
  EXPECT_EQ(w.bytes(), 4 * 3 * 70 + 10 * 3 * 16 + 4 * 10 * 3 + 10 * 2 + 4 * 10 + 4 * 3 * 10);
  EXPECT_EQ(w.shape_name(), "3x10x70_g32");
  EXPECT_FALSE(w.memory_bound());
}

// The weight, or zero point, at `place` of a row of bytes: the first of two lies in the low half.
double half(const Numbers& bytes, size_t row, size_t place) {
  const auto byte = static_cast<unsigned>(bytes[row + place / 2]);
  return place % 2 == 0 ? byte % 16 : byte / 16;
}

Numbers plain_product(const MatmulNBitsWorkload& w, const std::vector<Numbers>& args) {
  const auto m = static_cast<size_t>(w.m), n = static_cast<size_t>(w.n), k = static_cast<size_t>(w.k),
             group = static_cast<size_t>(w.group), groups = (k + group - 1) / group;
  const Numbers &a = args[0], &b = args[1], &scales = args[2];
  const Numbers none, &zeros = w.zero_points ? args[3] : none,
                      &bias = w.bias ? args[w.zero_points ? 4 : 3] : none;
  Numbers out;
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t at = 0; at < k; ++at) {
        const double zero = zeros.empty() ? 8 : half(zeros, j * ((groups + 1) / 2), at / group);
        const double weight = half(b, j * groups * group / 2, at) - zero;
        sum += a[i * k + at] * weight * scales[j * groups + at / group];
      }
      if (!bias.empty()) sum += bias[j];
      out.push_back(w.activation == Activation::kRelu ? std::max(sum, 0.0) : sum);
    }
  return out;
}

TEST(MatmulNBitsWorkload, MultipliesByScaledDifferences) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/60)) {
    std::mt19937_64 random(seed);
    const auto number = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    MatmulNBitsWorkload w{.m = number(1, 5), .n = number(1, 9), .k = number(1, 150)};
    w.group = int64_t{16} << number(0, 4);
    w.zero_points = number(0, 1) == 1;
    w.bias = number(0, 1) == 1;
    if (number(0, 1) == 1) w.activation = Activation::kRelu;
    ASSERT_TRUE(validate(w).is_ok()) << validate(w).message();
    const Program math = Workload(w).compute(), words = matmul_nbits_of_words(w);
    std::vector<Numbers> args;
    std::uniform_real_distribution<double> value(-1, 1);
    for (const Buffer& arg : math.args) {
      Numbers& values = args.emplace_back();
      if (!is_given(arg->role)) continue;
      for (int64_t e = 0; e < arg->elements(); ++e)
        values.push_back(arg->dtype == DType::kUInt8 ? static_cast<double>(number(0, 255)) : value(random));
    }
    std::vector<Numbers> others = args;
    const Numbers expected = plain_product(w, args);
    ASSERT_TRUE(interpret(math, args).is_ok());
    ASSERT_TRUE(interpret(words, others).is_ok());
    ASSERT_EQ(args.back().size(), expected.size());
    for (size_t at = 0; at < expected.size(); ++at) {
      ASSERT_NEAR(args.back()[at], expected[at], 1e-9) << Workload(w).key() << ", out[" << at << "]";
      ASSERT_NEAR(others.back()[at], expected[at], 1e-9) << Workload(w).key() << ", out[" << at << "]";
    }
  }
}

}  // namespace
}  // namespace tuner
