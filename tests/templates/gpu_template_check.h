// What every template for GPUs is checked for: random configs, lowered, run in the emulator with all its
// checks, against the oracle; and schedules that replay from their text.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/base/elements.h"
#include "compiler_core/codegen/emulated_run.h"
#include "compiler_core/lower/gpu.h"
#include "compiler_core/oracle/oracle.h"
#include "compiler_core/target.h"
#include "templates/schedule_template.h"
#include "templates/workload/tolerance.h"
#include "tests/random_seed.h"
#include "tests/templates/drawn_samples.h"

namespace tuner {

inline Target gpu(const std::string& arch = "sm_90a") {
  const Result<Target> target = parse_target("cuda -arch=" + arch);
  CHECK(target.is_ok()) << target.message();
  return *target;
}

// Random inputs in [-1, 1) as float32, each a number of its type, and the answer of the oracle in double
// precision.
struct GpuTaskData {
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<double>> outputs;
};
inline GpuTaskData gpu_task_data(const Program& math, uint64_t seed) {
  std::mt19937_64 rng(seed);
  GpuTaskData data;
  std::vector<std::vector<double>> args;
  for (const Buffer& b : math.args) {
    std::vector<double>& values = args.emplace_back();
    if (b->role == BufferRole::kOutput) continue;
    std::vector<float>& input = data.inputs.emplace_back();
    for (int64_t i = 0; i < b->elements(); ++i) {
      const float x = static_cast<float>(rng() >> 40) / static_cast<float>(1 << 23) - 1;
      if (!is_float(b->dtype)) {  // all of a byte; sums and offsets as large
        const auto byte = static_cast<float>(rng() % 256);
        input.push_back(b->dtype == DType::kUInt8 ? byte : byte - 128);
        continue;
      }
      input.push_back(b->dtype == DType::kBFloat16  ? rounded_to_bfloat16(x)
                      : b->dtype == DType::kFloat16 ? rounded_to_float16(x)
                                                    : x);
    }
    values.assign(input.begin(), input.end());
  }
  const Status status = interpret(math, args);
  EXPECT_TRUE(status.is_ok()) << status.message();
  for (size_t i = 0; i < args.size(); ++i)
    if (math.args[i]->role == BufferRole::kOutput) data.outputs.push_back(args[i]);
  return data;
}

// The scheduled Program, lowered and emulated, answers right and shows no fault.
inline void expect_gpu_answer(const Program& scheduled, const GpuTaskData& expected, const Tolerance& tol) {
  const Result<GpuProgram> lowered = lower_gpu(scheduled);
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  const Result<EmulatedRun> run = run_emulated(*lowered, expected.inputs);
  ASSERT_TRUE(run.is_ok()) << run.message();
  for (const std::string& fault : run->faults) ADD_FAILURE() << fault;
  ASSERT_EQ(run->outputs.size(), expected.outputs.size());
  for (size_t o = 0; o < expected.outputs.size(); ++o) {
    ASSERT_EQ(run->outputs[o].size(), expected.outputs[o].size());
    for (size_t i = 0; i < expected.outputs[o].size(); ++i) {
      const double reference = expected.outputs[o][i];
      ASSERT_NEAR(run->outputs[o][i], reference, tol.absolute + tol.relative * std::abs(reference))
          << "output " << o << ", element " << i;
    }
  }
}

// The loops of one config as a thread sees them, or what refused it.
inline std::string kernels_of(const AnyTemplate& t, const Workload& w, const std::string& config) {
  const auto instance = t.apply(w, gpu());
  if (!instance) return instance.message();
  const Result<Config> values = config_from_text(config);
  if (!values) return values.message();
  const Result<Program> program = (*instance)->instantiate(*values);
  if (!program) return program.message();
  const Result<GpuProgram> lowered = lower_gpu(*program);
  return lowered ? "\n" + to_text(*lowered) : lowered.message();
}

// The default and `samples` random configs of one template for one task.
inline void expect_gpu_configs_right(const AnyTemplate& t, const Workload& w, const Target& target,
                                     int samples, uint32_t fixed_seed) {
  const RandomSeed seed(fixed_seed);
  SCOPED_TRACE(str(w.key(), " on ", target.name()));
  ASSERT_TRUE(validate(w).is_ok()) << validate(w).message();
  const auto instance = t.apply(w, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const GpuTaskData expected = gpu_task_data(w.compute(), seed);
  std::mt19937_64 rng(seed);
  const DrawnSamples drawn(samples, seed);
  for (int i = drawn.first; i < drawn.end; ++i) {
    const Config config = space.at(i == 0 ? space.default_index() : space.sample(rng));
    SCOPED_TRACE(space.describe(config));
    const Result<Program> program = (*instance)->instantiate(config);
    ASSERT_TRUE(program.is_ok()) << program.message();
    ASSERT_NO_FATAL_FAILURE(expect_gpu_answer(*program, expected, tolerance_of(w)));
  }
}

// Random configs give the same Program again from the text of their schedule.
inline void expect_gpu_schedules_replay(const AnyTemplate& t, const Workload& w, const Target& target,
                                        int samples, uint32_t fixed_seed) {
  const RandomSeed seed(fixed_seed);
  SCOPED_TRACE(str(w.key(), " on ", target.name()));
  const auto instance = t.apply(w, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  std::mt19937_64 rng(seed);
  const DrawnSamples drawn(samples, seed);
  for (int i = drawn.first; i < drawn.end; ++i) {
    const Config config = space.at(i == 0 ? space.default_index() : space.sample(rng));
    SCOPED_TRACE(space.describe(config));
    const Result<Program> program = (*instance)->instantiate(config);
    const Result<std::string> text = (*instance)->schedule_text(config);
    ASSERT_TRUE(program.is_ok() && text.is_ok()) << program.message() << text.message();
    const Result<Program> again = replay((*instance)->math(), *text);
    ASSERT_TRUE(again.is_ok()) << again.message() << "\n" << *text;
    ASSERT_EQ(to_text(*again), to_text(*program));
  }
}

}  // namespace tuner
