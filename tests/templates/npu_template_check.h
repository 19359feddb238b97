// What templates for the NPU are checked for: configs, whose programs run on the simulator, against the
// oracle.
#pragma once

#include <cstring>
#include <map>
#include <string>

#include "compiler_core/codegen_npu/lower_npu.h"
#include "compiler_core/codegen_npu/npu_family.h"
#include "compiler_core/npu/device.h"
#include "templates/npu/npu_templates.h"
#include "tests/templates/template_check.h"

namespace tuner {

inline Target npu_target(const std::string& name = "npu") {
  const Result<Target> target = parse_target(name);
  EXPECT_TRUE(target.is_ok()) << target.message();
  return *target;
}

// 8 bits, NHWC, uint8 out, with a border of half the kernel.
inline Conv2dWorkload npu_convolution(int64_t channels, int64_t side, int64_t out_channels, int64_t kernel,
                                      int64_t stride, int64_t groups = 1) {
  Conv2dWorkload w{.in_channels = channels,
                   .in_height = side,
                   .in_width = side,
                   .out_channels = out_channels,
                   .kernel_height = kernel,
                   .kernel_width = kernel,
                   .stride = {stride, stride},
                   .groups = groups,
                   .bias = true,
                   .dtype = DType::kInt8};
  w.padding = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  w.narrow_out = DType::kUInt8;
  w.layout = w.out_layout = "NHWC";
  w.constant = {"weight"};
  return w;
}

// Elements of the buffer's type, as they lie in memory.
inline std::vector<uint8_t> bytes_of(const Buffer& buffer, const std::vector<double>& values) {
  std::vector<uint8_t> bytes(static_cast<size_t>(buffer->bytes()));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto size = static_cast<size_t>(dtype_bytes(buffer->dtype));
    if (buffer->dtype == DType::kFloat32) {
      const auto value = static_cast<float>(values[i]);
      std::memcpy(&bytes[i * size], &value, size);
    } else {
      const auto value = static_cast<int64_t>(values[i]);
      std::memcpy(&bytes[i * size], &value, size);
    }
  }
  return bytes;
}

struct Ran {
  npu::Simulated result;
  std::vector<uint8_t> out;
};

// Runs a kernel on these operands, whose constants it may pack.
inline Ran run_kernel(const npu::KernelFile& kernel, const Program& program, const Program& math,
                      const std::vector<std::vector<double>>& args) {
  Result<npu::Device> device = npu::Device::load(npu::write_kernel(kernel));
  EXPECT_TRUE(device.is_ok()) << device.message();
  if (!device.is_ok()) return {};
  std::map<std::string, std::vector<uint8_t>> memory;
  for (size_t i = 0; i < args.size(); ++i)
    if (is_given(math.args[i]->role)) memory[math.args[i]->name] = bytes_of(math.args[i], args[i]);
  const auto pointers_of = [&](const std::vector<Buffer>& buffers) {
    std::vector<void*> pointers;
    for (const Buffer& b : buffers) {
      std::vector<uint8_t>& bytes = memory[b->name];
      bytes.resize(static_cast<size_t>(b->bytes()), 0xA7);  // what nobody gave is poisoned
      pointers.push_back(bytes.data());
    }
    return pointers;
  };
  if (program.packing != nullptr) {
    EXPECT_TRUE(npu::run_packing(device->kernel(), pointers_of(program.packing->args).data()));
  }
  Ran ran{.result = device->run(pointers_of(program.args).data()), .out = {}};
  ran.out = memory[program.args.back()->name];
  return ran;
}

// `args` are those of the math, whose constants the Program may pack.
inline Ran run_on_device(const Program& program, const Program& math, const Target& target,
                         const std::vector<std::vector<double>>& args) {
  const Result<NpuProgram> lowered = lower_to_npu(program, machine_of(target));
  EXPECT_TRUE(lowered.is_ok()) << lowered.message() << "\n" << to_text(program);
  if (!lowered.is_ok()) return {};
  return run_kernel(lowered->kernel, program, math, args);
}

// Returns how many configs ran. `factor`: of drawn floats.
inline int expect_configs_equal(const AnyTemplate& t, const Workload& w, const Target& target, int samples,
                                uint32_t fixed_seed, double factor = 1) {
  const RandomSeed seed(fixed_seed);
  SCOPED_TRACE(str(w.key(), " on ", target.name()));
  EXPECT_TRUE(validate(w).is_ok()) << validate(w).message();
  const Support support = t.supports(w, target);
  EXPECT_TRUE(support.yes) << support.reason;
  if (!support.yes) return 0;
  const auto instance = t.apply(w, target);
  EXPECT_TRUE(instance.is_ok()) << instance.message();
  if (!instance.is_ok()) return 0;
  const ConfigSpace& space = (*instance)->space();
  const Program math = w.compute();
  std::vector<std::vector<double>> expected = random_arguments(math, seed);
  for (size_t i = 0; i < expected.size(); ++i)
    if (math.args[i]->dtype == DType::kFloat32)
      for (double& value : expected[i]) value = static_cast<float>(factor * value);
  EXPECT_TRUE(interpret(math, expected).is_ok());
  const std::vector<uint8_t> wanted = bytes_of(math.args.back(), expected.back());
  std::mt19937_64 rng(seed);
  for (int i = 0; i < samples; ++i) {
    const Config config = space.at(i == 0 ? space.default_index() : space.sample(rng));
    SCOPED_TRACE(config.to_text());
    const Result<Program> program = (*instance)->instantiate(config);
    EXPECT_TRUE(program.is_ok()) << program.message();
    if (!program.is_ok()) return i;
    if (i < 2 && program->packing == nullptr) expect_same_answer(*program, expected);
    const Ran ran = run_on_device(*program, math, target, expected);
    EXPECT_FALSE(ran.result.fault) << ran.result.fault->message;
    EXPECT_EQ(ran.out, wanted);
    if (::testing::Test::HasFailure()) return i;
  }
  return samples;
}

inline double utilization(const TemplateInstance& instance, const Config& config, const Target& target) {
  const Result<Program> program = instance.instantiate(config);
  EXPECT_TRUE(program.is_ok()) << program.message();
  const Result<NpuProgram> lowered = lower_to_npu(*program, machine_of(target));
  EXPECT_TRUE(lowered.is_ok()) << lowered.message();
  if (!lowered.is_ok()) return 0;
  std::vector<uint8_t> dram(lowered->kernel.dram_bytes);
  const npu::Simulated run = npu::simulate(machine_of(target), lowered->kernel.code, dram);
  EXPECT_FALSE(run.fault) << run.fault->message;
  return run.utilization(machine_of(target));
}

}  // namespace tuner
