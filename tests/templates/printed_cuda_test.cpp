// Every template for GPUs, printed: the CUDA text of its default and of random configs gives the answer of
// the oracle when this host's compiler runs it, and NVRTC compiles it without spills.
//
// TUNER_CUDA_CONFIGS=50 in the environment draws as many random configs a template for NVRTC (2 otherwise).
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "compiler_core/base/elements.h"
#include "compiler_core/codegen/emulated_run.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/oracle/oracle.h"
#include "templates/registry/registry.h"
#include "templates/workload/tolerance.h"
#include "tests/compiler_core/host_cuda.h"
#include "tests/random_seed.h"

namespace tuner::testing {
namespace {

constexpr uint64_t kSeed = 20261121;

Target target(const std::string& arch = "sm_90a") { return *parse_target("cuda -arch=" + arch); }

// 16 bits, TF32, images with channels innermost: rows of whole vectors for asynchronous copies, and others.
std::vector<Workload> small_workloads_of_tensor_cores() {
  std::vector<Workload> result;
  MatmulWorkload half{.m = 40, .n = 48, .k = 72, .bias = true, .dtype = DType::kBFloat16};
  result.push_back(half);
  half = {.m = 37, .n = 45, .k = 61, .transpose_a = true, .transpose_b = true, .dtype = DType::kFloat16};
  half.narrow_out = DType::kFloat16;
  result.push_back(half);
  half = {.batch = 2,
          .m = 48,
          .n = 34,
          .k = 96,
          .transpose_a = true,
          .residual = true,
          .dtype = DType::kBFloat16};
  half.narrow_out = DType::kBFloat16;
  half.constant = {"b"};
  result.push_back(half);
  MatmulWorkload tf32{.m = 40, .n = 36, .k = 80, .transpose_a = true};
  tf32.allow_tf32 = true;
  result.push_back(tf32);
  Conv2dWorkload conv;
  conv.batch = 2, conv.in_channels = 16, conv.in_height = 9, conv.in_width = 7, conv.out_channels = 24;
  conv.kernel_height = conv.kernel_width = 3;
  conv.padding = {1, 1, 1, 1};
  conv.bias = true, conv.activation = Activation::kRelu;
  conv.layout = conv.out_layout = "NHWC";
  conv.constant = {"weight"};
  for (const DType t : {DType::kBFloat16, DType::kInt8, DType::kFloat32}) {
    conv.dtype = t;
    result.push_back(conv);
  }
  conv.dtype = DType::kFloat16;
  conv.groups = 2;
  conv.stride = {2, 1};
  result.push_back(conv);
  conv.groups = conv.out_channels = conv.in_channels;
  result.push_back(conv);
  conv.groups = 1;
  conv.in_channels = 32;
  conv.dilation = {1, 2};
  conv.kernel_height = 1;
  conv.padding = {0, 1, 0, 2};
  conv.constant = {};
  result.push_back(conv);
  return result;
}

// Odd shapes, each with tails somewhere; small, for the oracle. Keys as in the database.
std::vector<Workload> small_workloads() {
  std::vector<Workload> result;
  result.push_back(MatmulWorkload{.m = 37, .n = 45, .k = 29, .bias = true, .activation = Activation::kRelu});
  result.push_back(
      MatmulWorkload{.batch = 2, .m = 16, .n = 24, .k = 40, .transpose_a = true, .transpose_b = true});
  Conv2dWorkload conv;
  conv.batch = 1, conv.in_channels = 6, conv.in_height = 9, conv.in_width = 7, conv.out_channels = 10;
  conv.kernel_height = conv.kernel_width = 3;
  conv.padding = {1, 1, 1, 1};
  conv.bias = true, conv.activation = Activation::kRelu;
  result.push_back(conv);
  conv.in_channels = 9;
  conv.constant = {"weight"};
  result.push_back(conv);
  result.push_back(
      MatmulWorkload{.m = 21, .n = 35, .k = 27, .transpose_b = true, .bias = true, .constant = {"a", "b"}});
  result.push_back(SoftmaxWorkload{.rows = 5, .columns = 130});
  result.push_back(LayerNormWorkload{.rows = 7, .columns = 96});
  result.push_back(ReduceWorkload{.rows = 9, .columns = 200});
  result.push_back(TransposeWorkload{.rows = 35, .columns = 50});
  result.push_back(ElementwiseWorkload{.rows = 11, .columns = 30});
  // Bytes: words along k, or across the rows; rows that are no whole words; packed; every kind of output.
  MatmulWorkload bytes{.m = 37, .n = 40, .k = 64, .transpose_b = true, .bias = true, .dtype = DType::kInt8};
  result.push_back(bytes);
  bytes = {.m = 36, .n = 44, .k = 52, .transpose_a = true, .residual = true, .dtype = DType::kInt8};
  bytes.narrow_out = DType::kUInt8;
  result.push_back(bytes);
  bytes = {.batch = 2, .m = 21, .n = 30, .k = 27, .activation = Activation::kRelu, .dtype = DType::kInt8};
  bytes.constant = {"b"};
  bytes.narrow_out = DType::kInt8;
  result.push_back(bytes);
  bytes.constant = {"a", "b"};
  result.push_back(bytes);
  // A row of 16 bits, which tensor cores do not serve.
  result.push_back(MatmulWorkload{.m = 1, .n = 45, .k = 64, .bias = true, .dtype = DType::kBFloat16});
  result.push_back(MatmulWorkload{
      .m = 36, .n = 1, .k = 50, .transpose_a = true, .dtype = DType::kFloat16, .constant = {"b"}});
  for (const Workload& w : small_workloads_of_tensor_cores()) result.push_back(w);
  return result;
}

// What a tuner would meet, for NVRTC.
std::vector<Workload> large_workloads() {
  std::vector<Workload> result;
  result.push_back(MatmulWorkload{.m = 1024, .n = 1000, .k = 1024});
  result.push_back(MatmulWorkload{.m = 1024, .n = 1000, .k = 1024, .dtype = DType::kBFloat16});
  result.push_back(
      MatmulWorkload{.m = 250, .n = 333, .k = 777, .transpose_a = true, .dtype = DType::kFloat16});
  result.push_back(MatmulWorkload{.m = 250, .n = 333, .k = 777, .transpose_a = true, .constant = {"b"}});
  MatmulWorkload bytes{.m = 1024, .n = 1000, .k = 1024, .transpose_b = true, .bias = true};
  bytes.dtype = DType::kInt8;
  bytes.narrow_out = DType::kUInt8;
  bytes.residual = true;
  result.push_back(bytes);
  bytes.transpose_a = true, bytes.transpose_b = false;
  result.push_back(bytes);
  bytes.constant = {"b"};
  result.push_back(bytes);
  result.push_back(MatmulWorkload{.m = 1, .n = 4096, .k = 4096, .dtype = DType::kFloat16});
  Conv2dWorkload conv;
  conv.batch = 1, conv.in_channels = 512, conv.in_height = conv.in_width = 7, conv.out_channels = 512;
  conv.kernel_height = conv.kernel_width = 3;
  conv.padding = {1, 1, 1, 1};
  conv.bias = true, conv.activation = Activation::kRelu;
  result.push_back(conv);
  conv.groups = 512;
  result.push_back(conv);
  conv.layout = conv.out_layout = "NHWC";
  result.push_back(conv);
  conv.groups = 2;
  conv.dtype = DType::kBFloat16;
  conv.constant = {"weight"};
  result.push_back(conv);
  conv.groups = 1;
  conv.dtype = DType::kInt8;
  conv.in_channels = 3;
  conv.activation = Activation::kNone;
  result.push_back(conv);
  result.push_back(SoftmaxWorkload{.rows = 4096, .columns = 1000});
  result.push_back(LayerNormWorkload{.rows = 4096, .columns = 768});
  result.push_back(ReduceWorkload{.rows = 4096, .columns = 4096});
  result.push_back(TransposeWorkload{.rows = 4096, .columns = 4000});
  result.push_back(ElementwiseWorkload{.rows = 4096, .columns = 4096});
  return result;
}

struct Case {
  std::string what;
  int number = 0;  // in HostCuda
  size_t workload = 0;
};

std::vector<std::vector<float>> run_oracle(const Workload& w, std::vector<std::vector<double>>& answers) {
  std::mt19937_64 rng(kSeed);
  const Program math = w.compute();
  std::vector<std::vector<float>> args;
  for (const Buffer& b : math.args) {
    std::vector<float>& values = args.emplace_back(static_cast<size_t>(b->elements()));
    if (b->role != BufferRole::kOutput)
      for (float& v : values) {
        v = static_cast<float>(rng() >> 40) / static_cast<float>(1 << 23) - 1;
        if (b->dtype == DType::kBFloat16) v = rounded_to_bfloat16(v);
        if (b->dtype == DType::kFloat16) v = rounded_to_float16(v);
        if (!is_float(b->dtype))  // all of a byte
          v = static_cast<float>(static_cast<int>(rng() % 256) - (b->dtype == DType::kUInt8 ? 0 : 128));
      }
    answers.emplace_back(values.begin(), values.end());
  }
  const Status status = interpret(math, answers);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return args;
}

TEST(PrintedCuda, TextOfTemplatesRunsRight) {
  const std::vector<Workload> workloads = small_workloads();
  HostCuda host;
  std::vector<Case> cases;
  const RandomSeed seed(kSeed);
  std::mt19937_64 rng(seed);
  for (size_t w = 0; w < workloads.size(); ++w) {
    const Target gpu = target();
    const auto serving = templates_for(workloads[w], gpu);
    ASSERT_TRUE(serving.is_ok()) << serving.message();
    for (const AnyTemplate* t : *serving) {
      const auto instance = t->apply(workloads[w], gpu);
      ASSERT_TRUE(instance.is_ok()) << instance.message();
      const ConfigSpace& space = (*instance)->space();
      for (int i = 0; i < 3; ++i) {
        const Config config = space.at(i == 0 ? space.default_index() : space.sample(rng));
        const auto program = (*instance)->instantiate(config);
        ASSERT_TRUE(program.is_ok()) << program.message();
        const auto lowered = lower_gpu(*program);
        ASSERT_TRUE(lowered.is_ok()) << lowered.message();
        cases.push_back(
            {str(t->name(), " ", workloads[w].key(), " ", config.to_text()), host.add(*lowered, gpu), w});
      }
    }
  }
  std::cout << cases.size() << " configs\n";
  ASSERT_GE(cases.size(), 3 * 30u) << "templates are missing";
  bool is_text = false;
  const Status built = host.build(&is_text);
  if (!built.is_ok() && !is_text) GTEST_SKIP() << built.message();
  ASSERT_TRUE(built.is_ok()) << built.message();
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const Workload& w = workloads[c.workload];
    std::vector<std::vector<double>> answers;
    std::vector<std::vector<float>> args = run_oracle(w, answers);
    host.run(c.number, args);
    const Tolerance tolerance = tolerance_of(w);
    const Program math = w.compute();
    for (size_t a = 0; a < args.size(); ++a) {
      if (math.args[a]->role != BufferRole::kOutput) continue;
      for (size_t i = 0; i < args[a].size(); ++i)
        ASSERT_NEAR(args[a][i], answers[a][i],
                    tolerance.absolute + tolerance.relative * std::abs(answers[a][i]))
            << "element " << i;
    }
  }
}

// Products by wgmma whose tiles come by TMA, of odd shapes: two minds that share neither the boxes (a map
// read by the emulator, the bytes that a driver encodes), nor barriers, nor descriptors. Of numbers whose
// sums are exact the bits must be the same.
TEST(PrintedCuda, FetchedProductsHaveTheBitsOfTheEmulator) {
  std::vector<Workload> workloads;
  const auto add = [&](int64_t m, int64_t n, int64_t k, int form, DType dtype) {
    MatmulWorkload w{.m = m, .n = n, .k = k, .dtype = dtype};
    w.transpose_a = (form & 1) != 0, w.transpose_b = (form & 2) != 0;
    if ((form & 4) != 0) w.constant = {"b"};
    w.batch = (form & 8) != 0 ? 2 : 1;
    workloads.emplace_back(w);
  };
  add(37, 60, 168, 2, DType::kBFloat16);
  add(37, 60, 168, 4, DType::kFloat16);
  add(72, 128, 200, 1, DType::kFloat16);
  add(184, 136, 328, 3, DType::kBFloat16);
  add(130, 56, 136, 8, DType::kBFloat16);
  const RandomSeed seed(kSeed);
  std::mt19937_64 rng(seed);
  struct Case {
    std::string what;
    int number;
    GpuProgram program;
  };
  HostCuda host;
  std::vector<Case> cases;
  for (const Workload& w : workloads) {
    const auto instance = find_template("matmul_wgmma_cuda")->apply(w, target());
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    for (int found = 0, tries = 0; found < 4 && tries < 200; ++tries) {
      const Config config = space.at(tries == 0 ? space.default_index() : space.sample(rng));
      if (config.values().at("tma") == 0) continue;
      const auto lowered = lower_gpu(*(*instance)->instantiate(config));
      ASSERT_TRUE(lowered.is_ok()) << lowered.message();
      cases.push_back({str(w.key(), " ", config.to_text()), host.add(*lowered, target()), *lowered});
      ++found;
    }
  }
  ASSERT_EQ(cases.size(), 20u);
  bool is_text = false;
  const Status built = host.build(&is_text);
  if (!built.is_ok() && !is_text) GTEST_SKIP() << built.message();
  ASSERT_TRUE(built.is_ok()) << built.message();
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    std::vector<std::vector<float>> inputs, args;
    for (const Buffer& b : c.program.args) {
      // What is packed of a constant has as many numbers of it.
      const Buffer of = b->role == BufferRole::kPacked ? packed_source(*c.program.packing, b) : b;
      std::vector<float> values(static_cast<size_t>(of->elements()), std::numeric_limits<float>::quiet_NaN());
      if (b->role != BufferRole::kOutput) {
        for (float& v : values) v = static_cast<float>(static_cast<int>(rng() % 33) - 16) / 16;
        inputs.push_back(values);
      }
      args.push_back(std::move(values));
    }
    const auto emulated = run_emulated(c.program, inputs);
    ASSERT_TRUE(emulated.is_ok()) << emulated.message();
    ASSERT_TRUE(emulated->faults.empty()) << emulated->faults[0];
    host.run(c.number, args);
    for (size_t a = 0, output = 0; a < args.size(); ++a) {
      if (c.program.args[a]->role != BufferRole::kOutput) continue;
      EXPECT_EQ(args[a], emulated->outputs[output]) << "output " << output;
      ++output;
    }
  }
}

// What would be wrong on a device and is not seen in a kernel's loops, but in its text.
TEST(PrintedCuda, TheHostSeesFencesAndWaitsThatAreMissing) {
  const Workload w = MatmulWorkload{.m = 64, .n = 64, .k = 256, .dtype = DType::kBFloat16};
  const auto instance = find_template("matmul_wgmma_cuda")->apply(w, target());
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  std::map<std::string, int64_t> knobs =
      (*instance)->space().at((*instance)->space().default_index()).values();
  knobs["tma"] = 1, knobs["stages"] = 2, knobs["overlap"] = 0, knobs["split_k"] = 1, knobs["columns"] = 64;
  const auto lowered = lower_gpu(*(*instance)->instantiate(Config(knobs)));
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  const std::pair<const char*, const char*> kDamages[] = {
      {"host_cuda::show_barriers();", ""},         // the fence behind the begin of barriers
      {"await_phase(&full[stage], parity);", ""},  // the wait in the loop
      {"await_phase(&full[stage], parity);", "await_phase(&full[stage], 0);"},
      {"host_cuda::expect_bytes(barrier, bytes);", "host_cuda::expect_bytes(barrier, bytes + 128);"},
      {"host_cuda::fetch(map, at, 2, to, barrier);",
       "host_cuda::fetch(map, at, 2, to, barrier); host_cuda::fetch(map, at, 2, to, barrier);"},
      {"begin_arrivals(&full[0], 2, 1);", "begin_arrivals(&full[0], 2, 2);"},
      {"if (warp == 0 && elect_one())", "if (warp == 0)"}};
  HostCuda host;
  host.add(*lowered, target());
  for (const auto& [from, to] : kDamages) host.add(*lowered, target(), from, to);
  const Status built = host.build();
  if (!built.is_ok()) GTEST_SKIP() << built.message();
  const auto run = [&](int number) {
    std::vector<std::vector<float>> args = {std::vector<float>(64 * 256, 1), std::vector<float>(256 * 64, 1),
                                            std::vector<float>(64 * 64)};
    const std::string fault = host.fault_of(number, args);
    return fault.empty() && args[2] == std::vector<float>(64 * 64, 256);
  };
  EXPECT_TRUE(run(0));
  for (int i = 0; i < static_cast<int>(std::size(kDamages)); ++i)
    EXPECT_FALSE(run(i + 1)) << kDamages[i].first << " became " << kDamages[i].second;
}

// 64 x 64 sums of 256 terms, `knobs` on top of the default.
GpuProgram product_of_warpgroups(std::map<std::string, int64_t> knobs) {
  const Workload w = MatmulWorkload{.m = 64, .n = 64, .k = 256, .dtype = DType::kBFloat16};
  const auto instance = find_template("matmul_wgmma_cuda")->apply(w, target());
  CHECK(instance.is_ok()) << instance.message();
  for (const auto& [knob, value] : std::map<std::string, int64_t>{
           {"columns", 64}, {"groups_m", 1}, {"groups_n", 1}, {"steps", 1}, {"split_k", 1}, {"group_m", 1}})
    knobs.emplace(knob, value);
  knobs.emplace("min_blocks", 1);
  const auto program = (*instance)->instantiate(Config(knobs));
  CHECK(program.is_ok()) << program.message();
  const auto lowered = lower_gpu(*program);
  CHECK(lowered.is_ok()) << lowered.message();
  return *lowered;
}

// Each call of a kernel that has to do with copies and products under way, and each fence, left out at one
// place after the other.
TEST(PrintedCuda, TheHostMissesEachCallAtEachPlace) {
  using Places = std::set<size_t>;
  const struct {
    const char* what;
    std::map<std::string, int64_t> knobs;
    std::map<std::string, Places> calls;  // and at which places each must be missed; nowhere else
  } cases[] = {
      {"fetched",
       {{"tma", 1}, {"overlap", 0}, {"stages", 2}},
       {{"begin_arrivals(", {0}},
        {"expect_bytes(", {0, 1}},
        {"fetch_box_2(", {0, 1, 2, 3}},
        {"await_phase(", {0}},
        {"begin_products(", {0}},
        {"finish_products(", {0}}}},
      {"fetched while products go on",
       {{"tma", 1}, {"overlap", 1}, {"stages", 2}},
       {{"begin_arrivals(", {0}},
        {"expect_bytes(", {0, 1}},
        {"fetch_box_2(", {0, 1, 2, 3}},
        {"await_phase(", {0}},
        {"begin_products(", {0}},
        {"commit_products(", {0}},
        {"await_products(", {0}},
        {"await_earlier_products(", {0}}}},
      // Behind the loop no product reads what threads write.
      {"copied by threads",
       {{"tma", 0}, {"overlap", 0}, {"stages", 3}},
       {{"host_cuda::fence_async(", {0}}, {"begin_products(", {0}}, {"finish_products(", {0}}}},
  };
  std::vector<float> a(64 * 256), sums(64 * 64);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i / 7 % 5);
  for (size_t i = 0; i < sums.size(); ++i)
    for (size_t k = 0; k < 256; ++k) sums[i] += a[i / 64 * 256 + k];
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const GpuProgram program = product_of_warpgroups(c.knobs);
    HostCuda host;
    host.add(program, target());
    std::map<std::string, std::vector<int>> damaged;
    for (const auto& [call, places] : c.calls)
      damaged[call] = host.add_each(program, target(), "  " + call, "  if (false) " + call);
    const Status built = host.build();
    if (!built.is_ok()) GTEST_SKIP() << built.message();
    const auto is_wrong = [&](int number) {
      std::vector<std::vector<float>> args = {a, std::vector<float>(256 * 64, 1),
                                              std::vector<float>(64 * 64)};
      return !host.fault_of(number, args).empty() || args[2] != sums;
    };
    EXPECT_FALSE(is_wrong(0));
    for (const auto& [call, numbers] : damaged) {
      Places missed;
      for (size_t place = 0; place < numbers.size(); ++place)
        if (is_wrong(numbers[place])) missed.insert(place);
      EXPECT_EQ(missed, c.calls.at(call)) << call << ") of " << numbers.size();
    }
  }
}

TEST(PrintedCuda, TemplatesCompileWithoutSpills) {
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  const char* wanted = std::getenv("TUNER_CUDA_CONFIGS");
  const int configs = wanted == nullptr ? 2 : std::atoi(wanted);
  const RandomSeed seed(kSeed);
  std::mt19937_64 rng(seed);
  std::cout << configs << " random configs a template and architecture\n";
  for (const Workload& w : large_workloads())
    for (const char* arch : {"sm_75", "sm_80", "sm_90a"}) {
      const auto serving = templates_for(w, target(arch));
      if (!serving) std::cout << "not served: " << w.key() << "\n";
      if (!serving) continue;
      for (const AnyTemplate* t : *serving) {
        const auto instance = t->apply(w, target(arch));
        ASSERT_TRUE(instance.is_ok()) << instance.message();
        const ConfigSpace& space = (*instance)->space();
        for (int i = 0; i <= configs; ++i) {
          const Config config = space.at(i == 0 ? space.default_index() : space.sample(rng));
          const auto program = (*instance)->instantiate(config);
          ASSERT_TRUE(program.is_ok()) << program.message();
          const auto artifact = compile_cuda(*program, target(arch));
          // Refused by the filter is what a random config may be; not compiling is not.
          const bool refused = !artifact.is_ok() && artifact.status().code() == StatusCode::kInvalidConfig;
          if (refused && i > 0) continue;
          ASSERT_TRUE(artifact.is_ok())
              << t->name() << " on " << arch << " " << config.to_text() << ": " << artifact.message();
          for (const LaunchInfo& launch : artifact->manifest.launches)
            EXPECT_LE(launch.spill_bytes, 64) << config.to_text();
        }
      }
    }
}

}  // namespace
}  // namespace tuner::testing
