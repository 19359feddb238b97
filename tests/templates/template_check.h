// What every template is checked for: its loops as text, and its configs against the oracle.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/lower/lower.h"
#include "compiler_core/oracle/oracle.h"
#include "compiler_core/target.h"
#include "templates/schedule_template.h"
#include "tests/random_numbers.h"
#include "tests/random_seed.h"
#include "tests/templates/drawn_samples.h"

namespace tuner {

// A target as parse_target would fill it, with the numbers that templates ask for given here.
inline Target cpu(int vector_bits, int registers, int threads = 1) {
  Target t;
  t.mcpu = vector_bits == 512 ? "skylake-avx512" : "haswell";
  t.threads = threads;
  t.vector_bits = vector_bits;
  t.vector_registers_n = registers;
  return t;
}

// Random values for the arguments of `math` that are given; one that is inout, too.
inline std::vector<std::vector<double>> random_arguments(const Program& math, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<std::vector<double>> args;
  for (const Buffer& b : math.args) {
    int64_t n = 1;
    for (const int64_t extent : b->shape) n *= extent;
    std::vector<double>& values = args.emplace_back();
    if (!is_given(b->role)) continue;
    const double factor = testing::drawn_factor(math.args, b);
    for (int64_t i = 0; i < n; ++i) values.push_back(factor * testing::random_number(rng, b->dtype));
  }
  return args;
}

// The same with the answer of `math` by the oracle in the last place.
inline std::vector<std::vector<double>> oracle_arguments(const Program& math, uint64_t seed) {
  std::vector<std::vector<double>> args = random_arguments(math, seed);
  const Status status = interpret(math, args);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return args;
}

// The scheduled Program computes what the math says, read and written in bounds, in double precision.
// `before`: what the last argument holds before, where it is inout.
inline void expect_same_answer(const Program& scheduled, const std::vector<std::vector<double>>& expected,
                               const std::vector<double>& before = {}) {
  std::vector<std::vector<double>> args = expected;
  args.back() = before;
  const Status status = interpret(scheduled, args);
  ASSERT_TRUE(status.is_ok()) << status.message();
  ASSERT_EQ(args.back().size(), expected.back().size());
  for (size_t i = 0; i < expected.back().size(); ++i)
    ASSERT_NEAR(args.back()[i], expected.back()[i], 1e-9 * (1 + std::abs(expected.back()[i])))
        << "out[" << i << "]";
}

// The Program of one config, given as text; null: of the default.
inline Program program_of(const AnyTemplate& serving, const Workload& w, const Target& t,
                          const char* config = nullptr) {
  const auto instance = serving.apply(w, t);
  EXPECT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const Result<Program> program =
      (*instance)->instantiate(config == nullptr ? space.at(space.first_index()) : *config_from_text(config));
  EXPECT_TRUE(program.is_ok()) << program.message();
  return *program;
}

// The default and `samples` random configs of one template for one task, as scheduled and as lowered. With
// `flag` named, the random ones are of those where it is set.
inline void expect_configs_right(const AnyTemplate& t, const Workload& w, const Target& target, int samples,
                                 uint32_t fixed_seed, std::string_view flag = {}) {
  const RandomSeed seed(fixed_seed);
  SCOPED_TRACE(str(w.key(), " on ", target.name(), ", ", target.vector_bits, "-bit vectors"));
  ASSERT_TRUE(validate(w).is_ok()) << validate(w).message();
  const auto instance = t.apply(w, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const auto expected = oracle_arguments(w.compute(), seed);
  const std::vector<double> before = random_arguments(w.compute(), seed).back();
  std::mt19937_64 rng(seed);
  const DrawnSamples drawn(samples, flag.empty() ? uint32_t{seed} : 1);
  for (int i = drawn.first; i < drawn.end; ++i) {
    Config config = space.at(i == 0 ? space.first_index() : space.sample(rng));
    for (int tries = 0; i > 0 && !flag.empty() && config.at(flag) == 0; ++tries) {
      ASSERT_LT(tries, 1000) << "no config with " << flag;
      config = space.at(space.sample(rng));
    }
    SCOPED_TRACE(config.to_text());
    const Result<Program> program = (*instance)->instantiate(config);
    ASSERT_TRUE(program.is_ok()) << program.message();
    ASSERT_NO_FATAL_FAILURE(expect_same_answer(*program, expected, before));
    const Result<Program> lowered = lower(*program, /*max_unrolled_stores=*/4096);
    ASSERT_TRUE(lowered.is_ok()) << lowered.message();
    ASSERT_NO_FATAL_FAILURE(expect_same_answer(*lowered, expected, before)) << "after lowering";
  }
}

}  // namespace tuner
