// CPU templates on other CPUs than this one: every template of the registry compiles for each of them; code
// for older x86 runs here, code for AArch64 under qemu-user, and all of it computes what the operator says.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "compiler_core/base/elements.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/thread_pool.h"
#include "tests/random_seed.h"
#include "tests/templates/aarch64_run.h"
#include "tests/templates/schedule_templates.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

// Small and odd: what a template does with tails, borders and borders of tails. Every CPU template serves
// one.
std::vector<Workload> portable_workloads() {
  std::vector<Workload> all;
  const auto matmul = [&](DType dtype, std::optional<DType> out = {}) {
    MatmulWorkload w;
    w.m = 7;
    w.n = 37;
    w.k = 20;
    w.dtype = dtype;
    w.narrow_out = out;
    w.constant = {"b"};
    all.emplace_back(w);
    if (dtype != DType::kFloat32) return;
    w.batch = 2;
    w.bias = w.residual = true;
    w.activation = Activation::kRelu;
    w.constant.clear();
    all.emplace_back(w);
  };
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt8}) matmul(dtype);
  matmul(DType::kBFloat16, DType::kBFloat16);
  matmul(DType::kFloat16);
  matmul(DType::kFloat16, DType::kFloat16);
  matmul(DType::kInt8, DType::kUInt8);

  Conv2dWorkload conv;
  conv.in_channels = 16;
  conv.in_height = 9;
  conv.in_width = 11;
  conv.out_channels = 32;
  conv.kernel_height = conv.kernel_width = 3;
  conv.padding = {1, 1, 1, 1};
  conv.bias = conv.residual = true;
  conv.activation = Activation::kRelu;
  conv.constant = {"weight"};
  all.emplace_back(conv);
  Conv2dWorkload blocked = conv;
  blocked.layout = "NCHW4c";
  blocked.out_layout = "NCHW16c";
  all.emplace_back(blocked);
  Conv2dWorkload pointwise = conv;
  pointwise.kernel_height = pointwise.kernel_width = 1;
  pointwise.padding = {0, 0, 0, 0};
  all.emplace_back(pointwise);
  pointwise.layout = pointwise.out_layout = "NCHW16c";
  all.emplace_back(pointwise);
  for (const DType dtype : {DType::kBFloat16, DType::kInt8}) {
    Conv2dWorkload dots = blocked;
    dots.dtype = dtype;
    dots.narrow_out = dtype == DType::kInt8 ? DType::kInt8 : DType::kBFloat16;
    all.emplace_back(dots);
    dots.layout = dots.out_layout = "NCHW";
    dots.kernel_height = dots.kernel_width = 1;
    dots.padding = {0, 0, 0, 0};
    all.emplace_back(dots);
    dots.kernel_height = dots.kernel_width = 3;
    dots.out_channels = dots.groups = dots.in_channels;
    all.emplace_back(dots);
  }
  Conv2dWorkload first;  // of a network in int8: windows wider than the channels fill a dot product
  first.in_channels = 3;
  first.in_height = first.in_width = 14;
  first.out_channels = 16;
  first.kernel_height = first.kernel_width = 7;
  first.stride = {2, 2};
  first.padding = {3, 3, 3, 3};
  first.dtype = DType::kInt8;
  first.constant = {"weight"};
  all.emplace_back(first);
  Conv2dWorkload odd = conv;  // stride, dilation, uneven padding, channels that fill no vector
  odd.in_channels = 3;
  odd.out_channels = 5;
  odd.stride = {2, 1};
  odd.dilation = {1, 2};
  odd.padding = {0, 2, 1, 1};
  odd.residual = false;
  all.emplace_back(odd);
  Conv2dWorkload grouped = conv;
  grouped.groups = 2;
  all.emplace_back(grouped);
  Conv2dWorkload depthwise = conv;
  depthwise.out_channels = depthwise.groups = depthwise.in_channels;
  all.emplace_back(depthwise);
  depthwise.layout = depthwise.out_layout = "NCHW16c";
  all.emplace_back(depthwise);

  Pool2dWorkload pool;
  pool.channels = 16;
  pool.in_height = 9;
  pool.in_width = 11;
  pool.kernel_height = pool.kernel_width = 3;
  pool.stride = {2, 2};
  pool.padding = {1, 1, 1, 1};
  all.emplace_back(pool);
  pool.pooling = Pooling::kAverage;
  pool.layout = "NCHW16c";
  all.emplace_back(pool);

  const auto rows = [&](auto w) {
    w.rows = 5;
    w.columns = 37;
    all.emplace_back(w);
  };
  all.emplace_back(MatmulNBitsWorkload{.m = 5, .n = 37, .k = 70, .zero_points = true});
  rows(SoftmaxWorkload{});
  rows(LayerNormWorkload{});
  rows(RmsNormWorkload{});
  rows(TransposeWorkload{});
  rows(ReduceWorkload{});
  rows(ReduceWorkload{.reduction = RowReduction::kMax});
  all.emplace_back(AttentionWorkload{.heads = 4,
                                     .kv_heads = 2,
                                     .queries = 7,
                                     .keys = 19,
                                     .size = 5,
                                     .v_size = 11,
                                     .mask = "1x4x1",
                                     .q_layout = "BSHD:7:3",
                                     .out_layout = "BSHD"});
  rows(ElementwiseWorkload{.scale = true, .bias = true, .residual = true, .activation = Activation::kRelu});
  for (const char* text :
       {"in=float32[3,5,7],float32[5,1] Mul(0,1) Relu(2)", "in=float32[2,33,3] ReduceSum(0,int64[1](1))",
        "in=float32[3,11] ArgMax(0){axis=1}",
        "in=float32[3,2,36],float32[1,9,36] tuner.Recurrence(0,1){cell=\"LSTM\",packed=1,results=[0;1;2]}",
        "in=float32[3,2,42],float32[2,7,21] "
        "tuner.Recurrence(0,1){cell=\"GRU\",direction=\"bidirectional\",packed=1,results=[0]}"})
    all.push_back(*program_from_text(text));
  return all;
}

// Draws of one template for one workload on one target.
struct Draw {
  const AnyTemplate* schedule_template;
  std::string workload;  // its key
  Config config;
  Program program;
};

// The default config and `samples` random ones of each CPU template that serves it.
std::vector<Draw> draws(const Workload& w, const Target& target, int samples, uint32_t seed) {
  std::vector<Draw> all;
  std::mt19937_64 rng(seed);
  for (const AnyTemplate* t : all_templates()) {
    if (!t->supports(w, target).yes) continue;
    const auto instance = t->apply(w, target);
    EXPECT_TRUE(instance.is_ok()) << instance.message();
    if (!instance.is_ok()) continue;
    const ConfigSpace& space = (*instance)->space();
    for (int i = 0; i <= samples; ++i) {
      Config config = space.at(i == 0 ? space.default_index() : space.sample(rng));
      const Result<Program> program = (*instance)->instantiate(config);
      EXPECT_TRUE(program.is_ok()) << t->name() << " " << config.to_text() << ": " << program.message();
      if (program.is_ok()) all.push_back({t, w.key(), std::move(config), *program});
    }
  }
  return all;
}

Target target_of(const std::string& text) {
  const Result<Target> target = parse_target(text);
  EXPECT_TRUE(target.is_ok()) << target.message();
  return *target;
}

// Transforms of other algorithms round more, results of 16 bits most; all are far from what a misplaced
// element would make.
double allowed_error(const AnyTemplate& t, DType out) {
  if (out == DType::kBFloat16) return 0x1p-8;
  if (out == DType::kFloat16) return 0x1p-11;
  return t.algorithm() == "direct" ? 1e-4 : 1e-3;
}

void expect_answer(const std::vector<double>& out, const std::vector<double>& expected, double allowed) {
  ASSERT_EQ(out.size(), expected.size());
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_NEAR(out[i], expected[i], allowed * (1 + std::abs(expected[i]))) << "out[" << i << "]";
}

// Runs code of this host's family in this process.
Result<std::vector<double>> run_here(const Artifact& artifact, const Program& math,
                                     const std::vector<std::vector<double>>& args) {
  ASSIGN_OR_RETURN(const Kernel kernel, Kernel::load(artifact));
  std::map<std::string, AlignedBuffer> buffers;
  for (size_t i = 0; i < math.args.size(); ++i) {
    const Buffer& arg = math.args[i];
    AlignedBuffer& b = buffers[arg->name] = AlignedBuffer(arg->bytes());
    if (arg->role == BufferRole::kOutput)
      std::memset(b.data(), 0xff, static_cast<size_t>(b.bytes()));
    else
      store_elements(args[i].data(), static_cast<int64_t>(args[i].size()), arg->dtype, b.data());
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
  ThreadPool pool(1);
  const AlignedBuffer workspace(std::max<int64_t>(kernel.workspace_bytes(1), 64));
  const tuner_runtime runtime = pool.runtime(workspace.data());
  if (kernel.pack_entry() != nullptr)
    RETURN_IF_ERROR(kernel.pack(pointers(artifact.manifest.pack_args).data(), runtime));
  RETURN_IF_ERROR(kernel.call(pointers(artifact.manifest.args).data(), runtime));
  const Buffer& out = math.args.back();
  return load_elements(buffers[out->name].data(), out->elements(), out->dtype);
}

enum class Which : uint8_t { kEveryWorkload, kFirstWorkloadOfATemplate };

// `use(draw, target, math, args)` of each draw; in `args` the oracle's answer is the last one.
template <class Use>
void for_each_draw(const std::string& target_text, Which which, int samples, uint32_t seed, const Use& use) {
  const Target target = target_of(target_text);
  std::set<std::string_view> used;
  for (const Workload& w : portable_workloads()) {
    SCOPED_TRACE(str(w.key(), " on ", target.name()));
    const Program math = w.compute();
    const auto args = oracle_arguments(math, seed);
    for (const Draw& d : draws(w, target, samples, seed)) {
      if (!used.insert(d.schedule_template->name()).second && which == Which::kFirstWorkloadOfATemplate)
        continue;
      SCOPED_TRACE(str(d.schedule_template->name(), " ", d.config.to_text()));
      ASSERT_NO_FATAL_FAILURE(use(d, target, math, args));
    }
  }
}

class CompilesFor : public ::testing::TestWithParam<const char*> {};

TEST_P(CompilesFor, EveryTemplateThatServesIt) {
  const Target target = target_of(GetParam());
  std::set<std::string_view> served;
  const RandomSeed seed(11);
  for (const Workload& w : portable_workloads()) {
    SCOPED_TRACE(str(w.key(), " on ", target.name()));
    for (const Draw& d : draws(w, target, /*samples=*/1, seed)) {
      served.insert(d.schedule_template->name());
      const Result<Artifact> artifact = compile(d.program, target);
      ASSERT_TRUE(artifact.is_ok()) << d.schedule_template->name() << " " << d.config.to_text() << ": "
                                    << artifact.message();
    }
  }
  // A template that no workload above reaches is not tested: add one that it serves.
  for (const AnyTemplate* t : testing::schedule_templates()) {
    if (!t->name().ends_with("_cpu")) continue;
    if (t->name().ends_with("_tile_cpu") && !target.has_tiles(DType::kInt8)) continue;
    EXPECT_TRUE(served.contains(t->name())) << t->name();
  }
}

INSTANTIATE_TEST_SUITE_P(PortableTemplates, CompilesFor,
                         ::testing::Values("llvm -mcpu=haswell", "llvm -mcpu=x86-64",
                                           "llvm -mcpu=skylake-avx512", "llvm -mcpu=sapphirerapids",
                                           "llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu",
                                           "llvm -mcpu=neoverse-v1 -mtriple=aarch64-linux-gnu"));

#if defined(__x86_64__)
void expect_all_right_here(const std::string& target_text, int samples, uint32_t fixed_seed) {
  const RandomSeed seed(fixed_seed);
  for_each_draw(target_text, Which::kEveryWorkload, samples, seed,
                [](const Draw& d, const Target& target, const Program& math, const auto& args) {
                  const Result<Artifact> artifact = compile(d.program, target);
                  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
                  const Result<std::vector<double>> out = run_here(*artifact, math, args);
                  ASSERT_TRUE(out.is_ok()) << out.message();
                  expect_answer(*out, args.back(),
                                allowed_error(*d.schedule_template, math.args.back()->dtype));
                });
}

TEST(PortableTemplates, Avx2CodeRunsHere) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    GTEST_SKIP() << "this CPU has no AVX2 with FMA";
  expect_all_right_here("llvm -mcpu=haswell", /*samples=*/2, /*fixed_seed=*/21);
}

TEST(PortableTemplates, PlainX86CodeRunsHere) {
  expect_all_right_here("llvm -mcpu=x86-64", /*samples=*/1, /*fixed_seed=*/22);
}
#endif

void expect_all_right_under_qemu(const std::string& target_text, Which which, uint32_t fixed_seed) {
  const RandomSeed seed(fixed_seed);
  Aarch64Batch batch(target_of(target_text));
  struct Expected {
    std::string what;
    std::vector<double> answer;
    double allowed;
  };
  std::vector<Expected> expected;
  for_each_draw(
      target_text, which, /*samples=*/0, seed,
      [&](const Draw& d, const Target&, const Program& math, const auto& args) {
        const std::string what = str(d.schedule_template->name(), " ", d.workload, " ", d.config.to_text());
        const Status added = batch.add(d.program, math, args, /*before=*/{}, what);
        ASSERT_TRUE(added) << added.message();
        expected.push_back({what, args.back(), allowed_error(*d.schedule_template, math.args.back()->dtype)});
      });
  const auto outputs = batch.run();
  ASSERT_TRUE(outputs.is_ok()) << outputs.message();
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(expected[i].what);
    ASSERT_NO_FATAL_FAILURE(expect_answer((*outputs)[i], expected[i].answer, expected[i].allowed));
  }
}

// The defaults; aarch64_templates_test draws configs.
TEST(PortableTemplates, Aarch64CodeRunsUnderQemu) {
  if (const Status tools = aarch64_tools(); !tools) GTEST_SKIP() << tools.message();
  expect_all_right_under_qemu("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu", Which::kEveryWorkload,
                              /*fixed_seed=*/23);
  expect_all_right_under_qemu("llvm -mcpu=neoverse-v1 -mtriple=aarch64-linux-gnu",
                              Which::kFirstWorkloadOfATemplate, /*fixed_seed=*/24);
}

}  // namespace
}  // namespace tuner
