// matmul_npu: its loops, and random configs on odd shapes, whose programs run on the simulator, against the
// oracle.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <string>

#include "compiler_core/codegen_npu/lower_npu.h"
#include "compiler_core/codegen_npu/npu_family.h"
#include "compiler_core/npu/device.h"
#include "templates/npu/npu_templates.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

Target npu_target(const std::string& name = "npu") {
  const Result<Target> target = parse_target(name);
  EXPECT_TRUE(target.is_ok()) << target.message();
  return *target;
}

MatmulWorkload product(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w{.m = m, .n = n, .k = k, .bias = true, .dtype = DType::kInt8};
  w.narrow_out = DType::kUInt8;
  return w;
}

// Elements of the buffer's type, as they lie in memory.
std::vector<uint8_t> bytes_of(const Buffer& buffer, const std::vector<double>& values) {
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

// `args` are those of the math, whose constants the Program may pack.
Ran run_on_device(const Program& program, const Program& math, const Target& target,
                  const std::vector<std::vector<double>>& args) {
  const Result<NpuProgram> lowered = lower_to_npu(program, machine_of(target));
  EXPECT_TRUE(lowered.is_ok()) << lowered.message() << "\n" << to_text(program);
  if (!lowered.is_ok()) return {};
  Result<npu::Device> device = npu::Device::load(npu::write_kernel(lowered->kernel));
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

// Returns how many configs ran.
int expect_configs_equal(const MatmulWorkload& w, const Target& target, int samples, uint32_t fixed_seed) {
  const RandomSeed seed(fixed_seed);
  SCOPED_TRACE(str(Workload(w).key(), " on ", target.name()));
  EXPECT_TRUE(validate(Workload(w)).is_ok()) << validate(Workload(w)).message();
  const Support support = matmul_npu().supports(Workload(w), target);
  EXPECT_TRUE(support.yes) << support.reason;
  if (!support.yes) return 0;
  const auto instance = matmul_npu().apply(Workload(w), target);
  EXPECT_TRUE(instance.is_ok()) << instance.message();
  if (!instance.is_ok()) return 0;
  const ConfigSpace& space = (*instance)->space();
  const Program math = Workload(w).compute();
  const std::vector<std::vector<double>> expected = oracle_arguments(math, seed);
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

TEST(MatmulNpu, TwoHundredConfigsOnOddShapes) {
  const std::vector<std::array<int64_t, 3>> shapes = {
      {37, 23, 29}, {1, 16, 16}, {64, 64, 64},   {5, 100, 33},  {130, 17, 65},
      {33, 2, 70},  {77, 50, 2}, {16, 129, 200}, {51, 66, 128}, {200, 31, 47}};
  int ran = 0;
  for (size_t n = 0; n < shapes.size(); ++n) {
    MatmulWorkload w = product(shapes[n][0], shapes[n][1], shapes[n][2]);
    w.transpose_a = n % 3 == 2;
    w.bias = n % 4 != 1;
    w.narrow_out = n % 2 == 0 ? DType::kUInt8 : DType::kInt8;
    if (n % 3 == 0) w.activation = {ActivationKind::kRelu};
    if (n % 3 == 1) w.constant = {"b"};
    w.transpose_b = n % 6 == 4;
    if (n == 4) w.activation = {ActivationKind::kClip, -3.5, 20};
    ran += expect_configs_equal(w, npu_target(), 20, static_cast<uint32_t>(100 + n));
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(ran, 200);
}

TEST(MatmulNpu, OtherMachines) {
  int ran = 0;
  for (const char* name :
       {"npu -array=32x32", "npu -array=16x32 -banks=2", "npu -array=8x8 -bank_bytes=8 -scratchpad=32KiB",
        "npu -accumulators=16KiB -lanes=4 -queue=2",
        "npu -array=4x16 -bank_bytes=4 -burst=16 -dram_bytes=4"}) {
    MatmulWorkload w = product(45, 70, 39);
    ran += expect_configs_equal(w, npu_target(name), 6, 7);
    w.transpose_a = true;
    ran += expect_configs_equal(w, npu_target(name), 6, 8);
  }
  EXPECT_EQ(ran, 60);
}

double utilization(const TemplateInstance& instance, const Config& config, const Target& target) {
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

TEST(MatmulNpu, TheArrayIsBusy) {
  const Target target = npu_target();
  const auto instance = matmul_npu().apply(Workload(product(512, 512, 512)), target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const Config first = space.at(space.default_index());
  const double of_default = utilization(**instance, first, target);
  std::printf("512^3: %s: %.3f of the peak\n", first.to_text().c_str(), of_default);
  EXPECT_GE(of_default, 0.5);
  std::mt19937_64 rng(1);
  double best = of_default;
  for (int i = 0; i < 12; ++i) {
    const Config config = space.at(space.sample(rng));
    const double found = utilization(**instance, config, target);
    std::printf("%s: %.3f\n", config.to_text().c_str(), found);
    best = std::max(best, found);
  }
  EXPECT_GE(best, 0.85);
}

}  // namespace
}  // namespace tuner
