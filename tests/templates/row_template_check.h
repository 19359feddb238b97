// What the templates on rows are checked for beside gpu_template_check.h: defaults for every shape, and
// chosen configs.
#pragma once

#include <functional>

#include "tests/templates/gpu_template_check.h"

namespace tuner {

// The default config for all pairs of these sizes, odd and large ones among them: the space seals, the
// schedule finishes, and it lowers to kernels within the limits of the GPU.
inline void expect_row_defaults_valid(
    const AnyTemplate& t, const std::function<Workload(int64_t rows, int64_t columns)>& workload) {
  constexpr int64_t kSizes[] = {1, 2, 3, 31, 32, 33, 127, 768, 1000, 4096, 12'345, 65'536, 1'000'003};
  for (const char* arch : {"sm_80", "sm_90a"})
    for (const int64_t rows : kSizes)
      for (const int64_t columns : kSizes) {
        const Workload w = workload(rows, columns);
        SCOPED_TRACE(str(w.key(), " on ", arch));
        const Target target = gpu(arch);
        const auto instance = t.apply(w, target);
        ASSERT_TRUE(instance.is_ok()) << instance.message();
        const ConfigSpace& space = (*instance)->space();
        const Config config = space.at(space.first_index());
        const Result<Program> program = (*instance)->instantiate(config);
        ASSERT_TRUE(program.is_ok()) << space.describe(config) << ": " << program.message();
        const Result<GpuProgram> lowered = lower_gpu(*program);
        ASSERT_TRUE(lowered.is_ok()) << space.describe(config) << ": " << lowered.message();
        for (const GpuKernel& kernel : lowered->kernels) {
          EXPECT_LE(kernel.block[0] * kernel.block[1] * kernel.block[2], 1024) << space.describe(config);
          EXPECT_LE(kernel.shared_bytes, target.shared_bytes_per_block) << space.describe(config);
          EXPECT_LT(kernel.grid[0], int64_t{1} << 31) << space.describe(config);
          EXPECT_LT(kernel.grid[1], 1 << 16) << space.describe(config);
        }
      }
}

// One config, given as text ("rows=2 threads=64 ..."), is right. Returns its Program; empty when there is
// none.
inline Program expect_gpu_config_right(const AnyTemplate& t, const Workload& w, const std::string& text) {
  SCOPED_TRACE(str(w.key(), " ", text));
  const auto instance = t.apply(w, gpu());
  const Result<Config> config = config_from_text(text);
  EXPECT_TRUE(instance.is_ok() && config.is_ok()) << instance.message() << config.message();
  if (!instance || !config) return {};
  const Result<Program> program = (*instance)->instantiate(*config);
  EXPECT_TRUE(program.is_ok()) << program.message();
  if (!program) return {};
  expect_gpu_answer(*program, gpu_task_data(w.compute(), 1), tolerance_of(w));
  return *program;
}

// Its loops as scheduled, and what one thread sees of them.
inline std::string scheduled_loops(const Program& program) { return "\n" + to_text(program); }
inline std::string thread_loops(const Program& program) {
  const Result<GpuProgram> lowered = lower_gpu(program);
  return lowered ? "\n" + to_text(*lowered) : lowered.message();
}

}  // namespace tuner
