// Epilogues: every activation, and parts in any order, in every template of products for CPUs; interpreted,
// lowered and as machine code of this host. And how far a right answer may be off behind each activation.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "templates/registry/registry.h"
#include "templates/workload/tolerance.h"
#include "templates/workload/winograd_math.h"
#include "tests/templates/compiled_template_check.h"
#include "tests/templates/random_epilogue.h"

namespace tuner {
namespace {

using testing::draw_epilogue;
using testing::kActivations;

struct Types {
  DType dtype = DType::kFloat32;
  std::optional<DType> out = {};
};

MatmulWorkload matmul(const Types& types, int64_t batch, int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w{.batch = batch, .m = m, .n = n, .k = k, .dtype = types.dtype, .constant = {"b"}};
  w.narrow_out = types.out;
  return w;
}

Conv2dWorkload conv(const Types& types, int64_t channels, int64_t size, int64_t out_channels, int64_t kernel,
                    const std::string& layout = "NCHW") {
  Conv2dWorkload w{.in_channels = channels,
                   .in_height = size,
                   .in_width = size + 2,
                   .out_channels = out_channels,
                   .kernel_height = kernel,
                   .kernel_width = kernel,
                   .padding = {kernel / 2, kernel / 2, kernel / 2, kernel / 2},
                   .dtype = types.dtype,
                   .layout = layout,
                   .out_layout = layout,
                   .constant = {"weight"}};
  w.narrow_out = types.out;
  return w;
}
Conv2dWorkload depthwise(const Types& types, int64_t channels, int64_t size,
                         const std::string& layout = "NCHW") {
  Conv2dWorkload w = conv(types, channels, size, channels, 3, layout);
  w.groups = channels;
  return w;
}

// Targets in an order that the seed says. The last of the interpreted ones has tiles, whose code needs a CPU
// that has them.
std::vector<Target> shuffled(std::vector<Target> targets, uint32_t seed) {
  std::ranges::shuffle(targets, std::mt19937(seed));
  return targets;
}

// Random configs of every template that serves the workload, each on one of the targets where it does:
// interpreted, and as machine code of this host. `seen`: whose.
void expect_all_right(const Workload& w, uint32_t seed, std::set<std::string_view>& seen) {
  std::set<std::string_view> interpreted, compiled;
  for (const Target& target : shuffled(
           {cpu(256, 16), cpu(512, 32, /*threads=*/2), *parse_target("llvm -mcpu=graniterapids")}, seed)) {
    const auto serving = templates_for(w, target);
    ASSERT_TRUE(serving.is_ok()) << serving.message();
    for (const AnyTemplate* t : *serving) {
      if (!interpreted.insert(t->name()).second) continue;
      SCOPED_TRACE(t->name());
      ASSERT_NO_FATAL_FAILURE(expect_configs_right(*t, w, target, /*samples=*/1, seed));
    }
  }
  for (const Target& target : shuffled(hosts(/*threads=*/2), seed)) {
    const auto serving = templates_for(w, target);
    ASSERT_TRUE(serving.is_ok()) << serving.message();
    for (const AnyTemplate* t : *serving) {
      if (t->name().ends_with("_tile_cpu"))
        continue;  // their own tests run them, emulated where they must be
      if (!compiled.insert(t->name()).second) continue;
      ASSERT_NO_FATAL_FAILURE(expect_code_right(*t, w, target, /*samples=*/1, seed));
    }
  }
  seen.merge(interpreted);
}

// All activations that the type takes, in turn.
template <class Product>
void expect_epilogues_right(const Product& product, uint32_t fixed_seed, std::set<std::string_view>& seen) {
  const RandomSeed seed(fixed_seed);
  std::mt19937_64 random(seed);
  int drawn = 0;
  for (const Activation& activation : kActivations) {
    Product w = product;
    draw_epilogue(w, activation, /*in_place=*/true, random);
    if (!validate(w)) continue;
    ++drawn;
    ASSERT_NO_FATAL_FAILURE(expect_all_right(w, static_cast<uint32_t>(random()), seen));
  }
  EXPECT_EQ(drawn, product.dtype != DType::kInt8 ? std::ssize(kActivations) : requantises(product) ? 3 : 2);
}

std::set<std::string_view> templates_of_products(const Workload& w) {
  std::set<std::string_view> names;
  for (const AnyTemplate* t : all_templates())
    if (t->name().ends_with("_cpu") && !t->supports(w, cpu(256, 16)).other_operator) names.insert(t->name());
  return names;
}

const Types kTypes[] = {{DType::kFloat32},
                        {DType::kBFloat16},
                        {DType::kBFloat16, DType::kBFloat16},
                        {DType::kInt8},
                        {DType::kInt8, DType::kUInt8}};

TEST(Epilogue, OfMatrixProducts) {
  std::set<std::string_view> seen;
  uint32_t seed = 1;
  for (const Types& types : kTypes) expect_epilogues_right(matmul(types, 1, 7, 13, 29), seed++, seen);
  expect_epilogues_right(matmul({DType::kFloat16}, 1, 6, 19, 11), seed++, seen);
  expect_epilogues_right(matmul({DType::kFloat16, DType::kFloat16}, 3, 5, 21, 9), seed++, seen);
  MatmulWorkload in_blocks = matmul({}, 2, 9, 20, 33);
  in_blocks.constant = {};
  in_blocks.transpose_a = in_blocks.transpose_b = true;
  expect_epilogues_right(in_blocks, seed++, seen);
  EXPECT_EQ(seen, templates_of_products(matmul({}, 1, 1, 1, 1)));
}

std::set<std::string_view>& of_convolutions() {
  static std::set<std::string_view> seen;
  return seen;
}
TEST(Epilogue, OfConvolutions1x1) {
  uint32_t seed = 100;
  for (const Types& types : kTypes)
    expect_epilogues_right(conv(types, 5, 4, 19, 1), seed++, of_convolutions());
  // Channels in blocks: scale and bias are read as vectors.
  expect_epilogues_right(conv({}, 16, 3, 32, 1, "NCHW16c"), seed++, of_convolutions());
}
TEST(Epilogue, OfConvolutions3x3) {
  uint32_t seed = 200;
  for (const Types& types : kTypes)
    expect_epilogues_right(conv(types, 5, 4, 10, 3), seed++, of_convolutions());
  expect_epilogues_right(conv({}, 8, 4, 16, 3, "NCHW8c"), seed++, of_convolutions());
}
TEST(Epilogue, OfDepthwiseConvolutions) {
  uint32_t seed = 300;
  for (const Types& types : kTypes) expect_epilogues_right(depthwise(types, 5, 5), seed++, of_convolutions());
  expect_epilogues_right(depthwise({}, 16, 5, "NCHW8c"), seed++, of_convolutions());
}
// Behind the three: they left out no template.
TEST(Epilogue, OfEveryTemplateOfConvolutions) {
  if (of_convolutions().empty()) GTEST_SKIP() << "the tests that draw convolutions were filtered out";
  EXPECT_EQ(of_convolutions(), templates_of_products(conv({}, 1, 1, 1, 1)));
}

// One product of 2 and 1, bias 1, scale 0.5, residual -4, in three orders that say different things.
TEST(Epilogue, PartsComeInTheOrderThatIsSaid) {
  using enum EpiloguePart;
  const auto answer = [](std::vector<EpiloguePart> order) {
    MatmulWorkload w = matmul({}, 1, 1, 1, 1);
    w.bias = w.scale = w.residual = true;
    w.activation = Activation::kRelu;
    set_order(w, std::move(order));
    EXPECT_TRUE(validate(w)) << validate(w).message();
    std::vector<std::vector<double>> args = {{2}, {1}, {1}, {-4}, {0.5}, {}};
    EXPECT_TRUE(interpret(Workload(w).compute(), args));
    return args.back()[0];
  };
  EXPECT_EQ(answer({kBias, kScale, kResidual, kActivation}), 0);
  EXPECT_EQ(answer({kBias, kScale, kActivation, kResidual}), 1.5 - 4);
  EXPECT_EQ(answer({kScale, kBias, kActivation, kResidual}), 2.0 - 4);
  EXPECT_EQ(answer({kResidual, kActivation, kBias, kScale}), 0.5);
  EXPECT_EQ(answer({kScale, kResidual, kActivation, kBias}), 1);
}

// What is on out before is added behind the activation, too.
TEST(Epilogue, TheLastPartMayBeTheOldContentOfOut) {
  MatmulWorkload w = matmul({}, 1, 1, 3, 1);
  w.accumulate = true;
  w.activation = Activation::kRelu;
  set_order(w, {EpiloguePart::kActivation, EpiloguePart::kResidual});
  std::vector<std::vector<double>> args = {{1}, {5, -5, 0}, {-7, 7, 1}};
  ASSERT_TRUE(interpret(Workload(w).compute(), args));
  EXPECT_EQ(args.back(), (std::vector<double>{-2, 7, 1}));
}

// The activation of each number, in double precision.
std::vector<double> activated_numbers(const Activation& a, const std::vector<double>& x) {
  const ElementwiseWorkload w{.rows = 1, .columns = std::ssize(x), .activation = a};
  std::vector<std::vector<double>> args = {x, {}};
  EXPECT_TRUE(interpret(Workload(w).compute(), args));
  return args.back();
}

// The slope between neighbours of a fine grid: never above what steepest() says, and nearly as much
// somewhere.
TEST(ActivationTolerance, SteepestIsTheLargestSlope) {
  constexpr double kStep = 1.0 / 512;
  std::vector<double> x;
  for (int i = -10 * 512; i <= 10 * 512; ++i) x.push_back(i * kStep);
  for (const Activation& a : kActivations) {
    const std::vector<double> y = activated_numbers(a, x);
    double most = 0;
    for (size_t i = 1; i < y.size(); ++i) most = std::max(most, std::abs(y[i] - y[i - 1]) / kStep);
    EXPECT_LE(most, steepest(a)) << activation_text(a);
    EXPECT_GE(most, 0.98 * steepest(a)) << activation_text(a);
  }
}

// A sum may be off by the tolerance of its terms. What an activation makes of that is right as well, though
// it is off by more than the terms alone explain: a rule that does not ask how steep it is calls right
// kernels wrong.
TEST(ActivationTolerance, GrowsWithTheActivation) {
  const Conv2dWorkload winograd = conv({}, 32, 8, 32, 3);
  const std::pair<const AnyTemplate*, Workload> products[] = {{&matmul_cpu(), matmul({}, 1, 4, 4, 500)},
                                                              {&conv2d_direct_cpu(), winograd},
                                                              {&conv2d_winograd4_cpu(), winograd},
                                                              {&conv2d_winograd6_cpu(), winograd}};
  // Where each is steepest.
  const std::pair<Activation, double> steep[] = {{Activation::leaky(-3), -1},
                                                 {Activation::kSilu, 2.4},
                                                 {Activation::kHardSwish, 2.999},
                                                 {Activation::kGelu, 1.41},
                                                 {Activation::kGeluTanh, 1.41}};
  for (const auto& [serving, plain] : products)
    for (const auto& [activation, at] : steep) {
      const Workload behind = std::visit(
          [chosen = activation](auto w) -> Workload {
            if constexpr (requires { w.post; }) w.activation = chosen;
            return w;
          },
          plain.op());
      const Tolerance of_sum = serving->tolerance(plain), of_result = serving->tolerance(behind);
      const std::vector<double> y = activated_numbers(activation, {at, at - 0.99 * of_sum.absolute});
      const double error = std::abs(y[1] - y[0]);
      EXPECT_LE(error, of_result.absolute) << serving->name() << " " << activation_text(activation);
      EXPECT_GT(error, of_sum.absolute) << serving->name() << " " << activation_text(activation);
      EXPECT_EQ(of_result.relative, of_sum.relative);
    }
}

// A copy is exact; an activation that rounds is not, whatever else the operator does.
TEST(ActivationTolerance, OfElementsAloneIsNothingOnlyWhereNothingRounds) {
  for (const Activation& a : kActivations) {
    const ElementwiseWorkload w{.rows = 3, .columns = 1001, .activation = a};
    const Tolerance found = tolerance_of(w);
    const bool exact = a == Activation::kNone || a == Activation::kRelu || a.kind == ActivationKind::kClip;
    EXPECT_EQ(found.absolute == 0 && found.relative == 0, exact) << activation_text(a);
    for (const Target& target : hosts(/*threads=*/1)) {
      const auto serving = templates_for(w, target);
      ASSERT_TRUE(serving.is_ok()) << serving.message();
      for (const AnyTemplate* t : *serving) expect_code_right(*t, w, target, /*samples=*/1, /*fixed_seed=*/5);
    }
  }
}

}  // namespace
}  // namespace tuner
