// Configs of one template as machine code, against the oracle: of this host, and of hosts without its
// instructions.
#pragma once

#include "compiler_core/codegen/compile.h"
#include "tests/compiler_core/kernel_testing.h"
#include "tests/templates/template_check.h"

namespace tuner {

// The default and `samples` random configs as machine code, within the template's tolerance of the oracle's
// answer.
inline void expect_code_right(const AnyTemplate& t, const Workload& w, const Target& target, int samples,
                              uint32_t fixed_seed) {
  const RandomSeed seed(fixed_seed);
  SCOPED_TRACE(str(t.name(), " ", w.key(), " on ", target.name()));
  const auto instance = t.apply(w, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const Program math = w.compute();
  auto expected = testing::random_args(math, seed);
  ASSERT_TRUE(interpret(math, expected).is_ok());
  const Tolerance tolerance = t.tolerance(w);
  std::mt19937_64 rng(seed);
  const DrawnSamples drawn(samples, seed);
  for (int i = drawn.first; i < drawn.end; ++i) {
    const Config config = space.at(i == 0 ? space.default_index() : space.sample(rng));
    SCOPED_TRACE(config.to_text());
    const auto program = (*instance)->instantiate(config);
    ASSERT_TRUE(program.is_ok()) << program.message();
    auto found = testing::random_args(math, seed);
    const Status status = testing::run_compiled(*program, found, target, target.threads);
    ASSERT_TRUE(status.is_ok()) << status.message();
    for (size_t e = 0; e < expected.back().size(); ++e)
      ASSERT_LE(std::abs(found.back()[e] - expected.back()[e]),
                tolerance.absolute + tolerance.relative * std::abs(expected.back()[e]))
          << "out[" << e << "] is " << found.back()[e] << ", expected " << expected.back()[e];
  }
}

// This host as it is, and as if it had no dot products and narrow vectors.
inline std::vector<Target> hosts(int threads) {
  std::vector<Target> found = {host_target(threads)};
#if defined(__x86_64__)
  for (const auto& [name, here] :
       {std::pair{"x86-64", true}, {"haswell", __builtin_cpu_supports("avx2") != 0}})
    if (here) found.push_back(*parse_target(str("llvm -mcpu=", name, " -threads=", threads)));
#endif
  return found;
}

}  // namespace tuner
