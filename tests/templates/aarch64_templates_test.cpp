// Every CPU template on AArch64: random configs of random odd shapes, as machine code under qemu, equal the
// oracle. Of each type that a template serves 12 configs are drawn, 100 in the long suite
// (TUNER_TEST_ROUNDS). Targets are drawn, too: cores without dot products, with them, and with products of
// matrices.
#include <gtest/gtest.h>

#include <map>

#include "tests/templates/aarch64_run.h"
#include "tests/templates/attention_workloads.h"
#include "tests/templates/random_epilogue.h"
#include "tests/templates/schedule_templates.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

constexpr const char* kTargets[] = {"llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu",
                                    "llvm -mcpu=cortex-a76 -mtriple=aarch64-linux-gnu",
                                    "llvm -mcpu=neoverse-n1 -mtriple=aarch64-linux-gnu -threads=2",
                                    "llvm -mcpu=neoverse-n2 -mtriple=aarch64-linux-gnu"};

// Those with products of matrices, for templates that need them.
constexpr const char* kTileTargets[] = {
    "llvm -mcpu=neoverse-n2 -mtriple=aarch64-linux-gnu",
    "llvm -mcpu=neoverse-v1 -mtriple=aarch64-linux-gnu -threads=2",
    "llvm -mcpu=cortex-a76 -mattr=+bf16,+i8mm -mtriple=aarch64-linux-gnu"};

// Workloads that are small and odd, of any operator.
class Draws {
 public:
  explicit Draws(uint32_t seed) : random_(seed) {}
  std::mt19937_64& random() { return random_; }

  Workload workload(DType dtype) {
    switch (number(0, 10)) {
      case 0:
      case 1:
        return matmul(dtype);
      case 2:
      case 3:
        return convolution(dtype);
      case 4:
        return pooling();
      case 5:
        return flag() ? rows(SoftmaxWorkload{}) : matmul_nbits();
      case 6:
        return flag() ? rows(LayerNormWorkload{}) : rows(RmsNormWorkload{});
      case 7:
        return rows(ReduceWorkload{.reduction = one_of<RowReduction>(
                                       {RowReduction::kSum, RowReduction::kMax, RowReduction::kMean})});
      case 8:
        return flag() ? rows(TransposeWorkload{})
                      : rows(ElementwiseWorkload{.scale = flag(),
                                                 .bias = flag(),
                                                 .residual = flag(),
                                                 .activation = one_of<Activation>(testing::kActivations)});
      case 9:
        return testing::AttentionDraws(random_()).workload(13, 9);
      default:
        return program();
    }
  }
  template <class T>
  T one_of(std::span<const T> from) {
    return from[static_cast<size_t>(number(0, static_cast<int64_t>(from.size()) - 1))];
  }
  template <class T>
  T one_of(std::initializer_list<T> from) {
    return one_of(std::span<const T>(from.begin(), from.size()));
  }

 private:
  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool flag() { return number(0, 1) == 1; }

  template <class Product>
  void finish_product(Product& w, DType dtype) {
    w.dtype = dtype;
    if (const DType out = one_of(out_dtypes(dtype)); out != sum_dtype(dtype)) w.narrow_out = out;
    testing::draw_epilogue(w, one_of<Activation>(testing::kActivations), /*in_place=*/true, random_);
  }
  Workload matmul(DType dtype) {
    MatmulWorkload w;
    w.batch = number(1, 2);
    w.m = number(1, 33);
    w.n = number(1, 45);
    w.k = number(1, 40);
    w.transpose_a = flag();
    w.transpose_b = flag();
    if (flag()) w.constant = {"b"};
    finish_product(w, dtype);
    return w;
  }
  Workload matmul_nbits() {
    MatmulNBitsWorkload w{.m = number(1, 9), .n = number(1, 45), .k = number(1, 150)};
    w.group = int64_t{16} << number(0, 4);
    w.zero_points = flag();
    w.bias = flag();
    w.activation = one_of<Activation>(testing::kActivations);
    if (flag()) w.constant = {"b", "scales"};
    return w;
  }
  Workload convolution(DType dtype) {
    Conv2dWorkload w;
    const int64_t kernel = one_of({1, 1, 2, 3, 3});
    w.kernel_height = w.kernel_width = kernel;
    w.in_height = number(kernel, 11);
    w.in_width = number(kernel, 13);
    const int64_t in_block = one_of({1, 1, 1, 4, 16}), out_block = one_of({1, 1, 1, 4, 16});
    if (in_block == 1 && number(0, 2) == 0) w.layout = "NHWC";
    if (out_block == 1 && number(0, 2) == 0) w.out_layout = "NHWC";
    w.in_channels = in_block * number(1, in_block > 1 ? 2 : 19);
    w.out_channels = out_block * number(1, out_block > 1 ? 2 : 21);
    if (in_block > 1) w.layout = str("NCHW", in_block, "c");
    if (out_block > 1) w.out_layout = str("NCHW", out_block, "c");
    if (one_of({0, 0, 1}) == 1) w.out_channels = w.groups = w.in_channels, w.out_layout = w.layout;
    if (one_of({0, 0, 1}) == 1) w.stride = {number(1, 2), number(1, 2)};
    if (one_of({0, 0, 1}) == 1) w.dilation = {number(1, 2), number(1, 2)};
    if (kernel > 1) w.padding = {number(0, 1), number(0, 1), number(0, 1), number(0, 1)};
    if (one_of({0, 1, 1}) == 1) w.constant = {"weight"};
    finish_product(w, dtype);
    return w;
  }
  Workload pooling() {
    Pool2dWorkload w;
    w.channels = flag() ? 16 : number(1, 7);
    if (number(0, 2) == 0) w.layout = "NHWC";
    if (w.channels == 16 && flag()) w.layout = "NCHW16c";
    w.in_height = number(3, 11);
    w.in_width = number(3, 13);
    w.kernel_height = w.kernel_width = number(2, 3);
    w.stride = {number(1, 2), number(1, 2)};
    w.padding = {number(0, 1), number(0, 1), number(0, 1), number(0, 1)};
    w.pooling = flag() ? Pooling::kMax : Pooling::kAverage;
    return w;
  }
  template <class Rows>
  Workload rows(Rows w) {
    w.rows = number(1, 9);
    w.columns = number(1, 70);
    return w;
  }
  Workload program() {
    const int64_t n = number(1, 5), m = number(1, 37);
    const std::string text =
        one_of<std::string>({str("in=float32[3,", n, ",", m, "],float32[", n, ",1] Mul(0,1) Relu(2)"),
                             str("in=float32[2,", m, ",3] ReduceSum(0,int64[1](1))"),
                             str("in=float32[", n, ",", m, "] ArgMax(0){axis=1}"),
                             str("in=float32[3,", n, ",", 4 * m, "],float32[1,", m, ",", 4 * m,
                                 "] tuner.Recurrence(0,1){cell=\"LSTM\",packed=1,results=[0;2]}")});
    return *program_from_text(text);
  }

  std::mt19937_64 random_;
};

// Kernels of one target and what is expected of them.
struct Checks {
  struct Check {
    std::string what;
    std::vector<double> answer;
    Tolerance tolerance;
  };
  explicit Checks(const Target& target) : batch(target) {}

  Aarch64Batch batch;
  std::vector<Check> all;
};

void expect_right(const Checks& checks) {
  const auto outputs = checks.batch.run();
  ASSERT_TRUE(outputs.is_ok()) << outputs.message();
  for (size_t i = 0; i < checks.all.size(); ++i) {
    const auto& [what, answer, tolerance] = checks.all[i];
    const std::vector<double>& found = (*outputs)[i];
    ASSERT_EQ(found.size(), answer.size()) << what;
    for (size_t e = 0; e < answer.size(); ++e)
      ASSERT_LE(std::abs(found[e] - answer[e]), tolerance.absolute + tolerance.relative * std::abs(answer[e]))
          << what << ": out[" << e << "] is " << found[e] << ", expected " << answer[e];
  }
}

class Aarch64Templates : public ::testing::TestWithParam<const AnyTemplate*> {
 protected:
  static bool needs_tiles() { return GetParam()->name().ends_with("_tile_cpu"); }

  // A workload of this type that the template serves; nothing if none is found.
  std::optional<Workload> served(Draws& draws, DType dtype, const Target& target) const {
    constexpr int kMostTries = 3000;
    for (int i = 0; i < kMostTries; ++i) {
      Workload w = draws.workload(dtype);
      const bool is_of_type = dtype == DType::kFloat32 || w.get_if<MatmulWorkload>() != nullptr ||
                              w.get_if<Conv2dWorkload>() != nullptr;
      if (is_of_type && validate(w).is_ok() && GetParam()->supports(w, target).yes) return w;
    }
    return std::nullopt;
  }

  // Adds some configs for the workload, `most` at most; returns how many.
  uint32_t add_configs(Draws& draws, const Workload& w, const Target& target, uint32_t most) {
    constexpr uint32_t kConfigs = 4;
    const AnyTemplate& t = *GetParam();
    const Program math = w.compute();
    const uint64_t seed = draws.random()();
    const auto args = oracle_arguments(math, seed);
    const std::vector<double> before = random_arguments(math, seed).back();
    const auto instance = t.apply(w, target);
    EXPECT_TRUE(instance.is_ok()) << instance.message();
    if (!instance.is_ok()) return most;
    const ConfigSpace& space = (*instance)->space();
    Checks& checks = checks_.try_emplace(target.name(), target).first->second;
    const uint32_t configs = std::min(kConfigs, most);
    for (uint32_t i = 0; i < configs; ++i) {
      const Config config = space.at(space.sample(draws.random()));
      const std::string what = str(t.name(), " ", w.key(), " ", config.to_text(), " on ", target.name());
      const Result<Program> program = (*instance)->instantiate(config);
      EXPECT_TRUE(program.is_ok()) << what << ": " << program.message();
      if (!program.is_ok()) continue;
      const Status added = checks.batch.add(*program, math, args, before, what);
      EXPECT_TRUE(added) << what << ": " << added.message();
      if (added) checks.all.push_back({what, args.back(), t.tolerance(w)});
    }
    return configs;
  }

  std::map<std::string, Checks> checks_;  // by the target's name
};

TEST_P(Aarch64Templates, RandomConfigsEqualTheOracleUnderQemu) {
  if (const Status tools = aarch64_tools(); !tools) GTEST_SKIP() << tools.message();
  const uint32_t seed = first_seed(31), rounds = wanted_rounds(12);
  std::printf("seed %u, %u configs of each type\n", seed, rounds);
  const RepeatOnFailure repeat(seed, rounds);
  Draws draws(seed);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8}) {
    uint32_t configs = 0;
    while (configs < rounds && !HasFailure()) {
      const Target target = *parse_target(needs_tiles() ? draws.one_of<const char*>(kTileTargets)
                                                        : draws.one_of<const char*>(kTargets));
      const std::optional<Workload> w = served(draws, dtype, target);
      if (!w) break;
      configs += add_configs(draws, *w, target, rounds - configs);
    }
    if (configs > 0) std::printf("%s: %u configs\n", std::string(dtype_name(dtype)).c_str(), configs);
  }
  EXPECT_FALSE(checks_.empty()) << "no workload is drawn that it serves";
  for (const auto& [name, checks] : checks_) ASSERT_NO_FATAL_FAILURE(expect_right(checks));
}

std::vector<const AnyTemplate*> templates_of_cpus() {
  std::vector<const AnyTemplate*> found;
  for (const AnyTemplate* t : testing::schedule_templates())
    if (t->name().ends_with("_cpu")) found.push_back(t);
  return found;
}

INSTANTIATE_TEST_SUITE_P(All, Aarch64Templates, ::testing::ValuesIn(templates_of_cpus()),
                         [](const auto& info) { return std::string(info.param->name()); });

}  // namespace
}  // namespace tuner
