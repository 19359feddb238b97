// Templates as machine code of this host: random configs on odd shapes, run and compared with the
// interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/thread_pool.h"
#include "tests/random_seed.h"
#include "tests/templates/attention_workloads.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

int64_t elements(const Buffer& b) {
  int64_t n = 1;
  for (const int64_t extent : b->shape) n *= extent;
  return n;
}

// Runs the artifact, packing first, on float copies of `args`; outputs are poisoned before. Returns the last
// argument.
std::vector<float> run(const Artifact& artifact, const Program& math,
                       const std::vector<std::vector<double>>& args, ThreadPool& pool) {
  const Result<Kernel> kernel = Kernel::load(artifact);
  EXPECT_TRUE(kernel.is_ok()) << kernel.message();
  if (!kernel) return {};
  std::map<std::string, AlignedBuffer> buffers;
  for (size_t i = 0; i < math.args.size(); ++i) {
    AlignedBuffer& b = buffers[math.args[i]->name] = AlignedBuffer(elements(math.args[i]) * 4);
    const bool output = math.args[i]->role == BufferRole::kOutput;
    if (output) std::memset(b.data(), 0xff, static_cast<size_t>(b.bytes()));
    for (size_t k = 0; !output && k < args[i].size(); ++k) b.as<float>()[k] = static_cast<float>(args[i][k]);
  }
  const auto pointers = [&](const std::vector<ArgInfo>& infos) {
    std::vector<void*> found;
    for (const ArgInfo& info : infos) {
      const auto [at, fresh] = buffers.try_emplace(info.name);
      if (fresh) at->second = AlignedBuffer(info.bytes);
      found.push_back(at->second.data());
    }
    return found;
  };
  AlignedBuffer workspace(std::max<int64_t>(kernel->workspace_bytes(pool.threads()), 64));
  const tuner_runtime rt = pool.runtime(workspace.data());
  if (kernel->pack_entry() != nullptr) {
    const Status packed = kernel->pack(pointers(artifact.manifest.pack_args).data(), rt);
    EXPECT_TRUE(packed.is_ok()) << packed.message();
  }
  const Status called = kernel->call(pointers(artifact.manifest.args).data(), rt);
  EXPECT_TRUE(called.is_ok()) << called.message();
  const float* out = buffers[math.args.back()->name].as<float>();
  return {out, out + elements(math.args.back())};
}

void expect_code_right(const Workload& w, int threads, int samples, uint32_t fixed_seed) {
  const RandomSeed seed(fixed_seed);
  SCOPED_TRACE(str(w.key(), ", ", threads, " threads"));
  const Target target = host_target(threads);
  const auto templates = templates_for(w, target);
  ASSERT_TRUE(templates.is_ok()) << templates.message();
  const Program math = w.compute();
  const auto expected = oracle_arguments(math, seed);
  ThreadPool pool(threads);
  std::mt19937_64 rng(seed);
  for (const AnyTemplate* t : *templates) {
    const auto instance = t->apply(w, target);
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    for (int i = 0; i <= samples; ++i) {
      const Config config = space.at(i == 0 ? space.default_index() : space.sample(rng));
      SCOPED_TRACE(str(t->name(), " ", config.to_text()));
      const Result<Program> program = (*instance)->instantiate(config);
      ASSERT_TRUE(program.is_ok()) << program.message();
      const Result<Artifact> artifact = compile(*program, target);
      ASSERT_TRUE(artifact.is_ok()) << artifact.message();
      const std::vector<float> out = run(*artifact, math, expected, pool);
      ASSERT_EQ(out.size(), expected.back().size());
      for (size_t k = 0; k < out.size(); ++k)
        ASSERT_NEAR(out[k], expected.back()[k], 1e-4 * (1 + std::abs(expected.back()[k])))
            << "out[" << k << "]";
    }
  }
}

MatmulWorkload matmul(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m;
  w.n = n;
  w.k = k;
  return w;
}

TEST(CompiledTemplates, MatmulOfOddShapes) {
  expect_code_right(matmul(1, 1, 1), 1, 3, 1);
  expect_code_right(matmul(7, 13, 29), 1, 6, 2);
  expect_code_right(matmul(127, 1, 255), 1, 6, 3);
  expect_code_right(matmul(127, 255, 3), 2, 3, 4);
}

TEST(CompiledTemplates, MatmulForms) {
  MatmulWorkload w = matmul(19, 37, 11);
  w.batch = 2;
  w.transpose_a = w.transpose_b = w.bias = true;
  w.activation = Activation::kRelu;
  expect_code_right(w, 2, 5, 5);
  w.constant = {"a", "b"};
  expect_code_right(w, 1, 5, 6);
}

TEST(CompiledTemplates, ConvolutionOfOddShapes) {
  Conv2dWorkload w;
  w.in_channels = 3;
  w.in_height = 17;
  w.in_width = 19;
  w.out_channels = 5;
  w.kernel_height = w.kernel_width = 2;
  w.stride = {3, 3};
  w.padding = {2, 2, 2, 2};
  w.dilation = {2, 2};
  expect_code_right(w, 1, 6, 7);
  w.out_channels = 1;
  w.constant = {"weight"};
  expect_code_right(w, 2, 4, 8);
  w.in_channels = 8;
  w.out_channels = 37;
  w.kernel_height = 3;
  w.stride = {2, 1};
  w.padding = {1, 0, 0, 2};
  w.dilation = {1, 1};
  w.bias = true;
  w.activation = Activation::kRelu;
  w.batch = 2;
  expect_code_right(w, 2, 6, 9);
}

TEST(CompiledTemplates, Pooling) {
  uint64_t seed = 400;
  for (const char* layout : {"NCHW", "NHWC", "NCHW16c"})
    for (const auto& [size, kernel, stride, pad] : std::vector<std::array<int64_t, 4>>{
             {21, 3, 2, 1}, {12, 2, 2, 0}, {9, 3, 1, 1}, {7, 7, 1, 0}, {40, 3, 3, 2}})
      for (const Pooling pooling : {Pooling::kMax, Pooling::kAverage}) {
        Pool2dWorkload w;
        w.channels = 16;
        w.in_height = w.in_width = size;
        w.kernel_height = w.kernel_width = kernel;
        w.stride = {stride, stride};
        w.padding = {pad, pad, pad, pad};
        w.pooling = pooling;
        w.layout = layout;
        expect_code_right(w, 1 + static_cast<int>(seed % 2), 3, seed);
        ++seed;
      }
}

TEST(CompiledTemplates, Attention) {
  const RandomSeed seed(40);
  testing::AttentionDraws draws(seed);
  for (uint32_t k = 0; k < 8; ++k) expect_code_right(draws.workload(33), 1 + static_cast<int>(k % 2), 4, k);
}

TEST(CompiledTemplates, Rows) {
  uint64_t seed = 20;
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {5, 1}, {1, 1000}, {19, 70}, {33, 5}, {3, 300}})
    for (const int threads : {1, 2}) {
      expect_code_right(SoftmaxWorkload{rows, columns}, threads, 4, seed++);
      expect_code_right(LayerNormWorkload{rows, columns}, threads, 3, seed++);
      for (const RowReduction r : {RowReduction::kSum, RowReduction::kMax, RowReduction::kMin})
        expect_code_right(ReduceWorkload{rows, columns, r}, threads, 3, seed++);
      expect_code_right(TransposeWorkload{rows, columns}, threads, 4, seed++);
      expect_code_right(ElementwiseWorkload{rows, columns, true, true, true, Activation::kRelu}, threads, 3,
                        seed++);
      expect_code_right(RmsNormWorkload{rows, columns}, threads, 3, seed++);
    }
}

}  // namespace
}  // namespace tuner
