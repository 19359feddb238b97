// Fitted defaults: the table as text, who may speak for a task, and what becomes of a config that moves.
#include "templates/fitted_defaults/fitted_defaults.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>

#include "templates/schedule_template.h"
#include "templates/workload/parts/operator.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

Target target(const char* name) { return parse_target(name).value(); }

Workload product(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m;
  w.n = n;
  w.k = k;
  w.constant = {"b"};
  return w;
}

Workload convolution(int64_t channels, int64_t size, int64_t out_channels, int64_t kernel) {
  Conv2dWorkload w;
  w.in_channels = channels;
  w.in_height = w.in_width = size;
  w.out_channels = out_channels;
  w.kernel_height = w.kernel_width = kernel;
  w.padding = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  w.constant = {"weight"};
  return w;
}

MeasuredShape measured(const Workload& workload, const char* on, const char* template_name, Config config) {
  MeasuredShape shape{.target = on,
                      .variant = workload.shape().variant,
                      .extents = {},
                      .template_name = template_name,
                      .config = std::move(config)};
  for (const auto& [name, extent] : workload.shape().dimensions) shape.extents.push_back(extent);
  return shape;
}

std::unique_ptr<TemplateInstance> instance(const char* name, const Workload& workload, const Target& on) {
  return find_template(name)->apply(workload, on).value();
}

constexpr char kZen3[] = "llvm -mcpu=znver3 -threads=1";

TEST(MeasuredShapesText, ComesBackAsItWas) {
  const Config config({{"tile_m", 6}, {"tile_n", 16}});
  const std::vector<MeasuredShape> shapes = {
      {kZen3, "matmul dtype=float32", {1, 128, 768, 768}, "matmul_cpu", config},
      {kZen3, "matmul dtype=float32", {1, 64, 64, 64}, "matmul_cpu", config},
      {kZen3, "softmax dtype=float32", {128, 1000}, "softmax_cpu", Config({{"lanes", 8}})},
      {"llvm -mcpu=znver4 -threads=2", "softmax dtype=float32", {128, 1000}, "softmax_cpu", Config()}};
  const std::string text = measured_shapes_to_text(shapes);
  EXPECT_EQ(text,
            "target llvm -mcpu=znver3 -threads=1\n"
            "variant matmul dtype=float32\n"
            "1 128 768 768: matmul_cpu tile_m=6 tile_n=16\n"
            "1 64 64 64: matmul_cpu tile_m=6 tile_n=16\n"
            "variant softmax dtype=float32\n"
            "128 1000: softmax_cpu lanes=8\n"
            "target llvm -mcpu=znver4 -threads=2\n"
            "variant softmax dtype=float32\n"
            "128 1000: softmax_cpu \n");
  const std::vector<MeasuredShape> back = measured_shapes_from_text(text).value();
  ASSERT_EQ(back.size(), shapes.size());
  for (size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i].target, shapes[i].target);
    EXPECT_EQ(back[i].variant, shapes[i].variant);
    EXPECT_EQ(back[i].extents, shapes[i].extents);
    EXPECT_EQ(back[i].template_name, shapes[i].template_name);
    EXPECT_EQ(back[i].config, shapes[i].config);
  }
}

TEST(MeasuredShapesText, WhatIsNoShapeIsNamedWithItsLine) {
  const std::string head = "target llvm -mcpu=znver3 -threads=1\nvariant matmul\n";
  const std::pair<std::string, const char*> wrong[] = {
      {"1 2: matmul_cpu a=1\n", "line 1: expected \"target ...\" and \"variant ...\" above a shape"},
      {"target llvm\n1 2: matmul_cpu a=1\n", "line 2: expected \"target ...\" and"},
      {head + "1 2 matmul_cpu a=1\n", "line 3: expected \"EXTENTS: TEMPLATE CONFIG\""},
      {head + "1 x: matmul_cpu a=1\n", "line 3: expected numbers of at least 1"},
      {head + "1 0: matmul_cpu a=1\n", "line 3: expected numbers of at least 1"},
      {head + "1,2: matmul_cpu a=1\n", "line 3: expected a blank between numbers"},
      {head + "1 2:  a=1\n", "line 3: no template after the extents"},
      {head + "1 2: matmul_cpu a\n", "line 3: "}};
  for (const auto& [text, message] : wrong) {
    const auto read = measured_shapes_from_text(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(read.status().message().find(message), std::string::npos) << read.status().message();
  }
}

// The table that comes with the program.
TEST(MeasuredShapesText, TheTableKnowsTodaysTemplates) {
  std::set<std::string> families;
  for (const MeasuredShape& shape : measured_shapes()) {
    EXPECT_NE(find_template(shape.template_name), nullptr) << shape.template_name;
    const Result<Target> parsed = parse_target(shape.target);
    ASSERT_TRUE(parsed) << shape.target;
    families.insert(str(parsed->vector_bits));
  }
  EXPECT_TRUE(families.contains("256") && families.contains("512")) << "measured on both kinds of x86-64";
  EXPECT_LE(measured_shapes_to_text(measured_shapes()).size(), 200'000);
}

TEST(DefaultDonors, ConfigsOfOtherVectorsMeanNothing) {
  const Workload w = product(128, 768, 768);
  const std::vector<MeasuredShape> table = {
      measured(w, "llvm -mcpu=znver4 -threads=1", "matmul_cpu", Config())};
  EXPECT_EQ(default_donors(table, w, target("llvm -mcpu=znver4 -threads=1")).size(), 1);
  EXPECT_EQ(default_donors(table, w, target("llvm -mcpu=sapphirerapids -threads=1")).size(), 1);
  EXPECT_TRUE(default_donors(table, w, target(kZen3)).empty());
  EXPECT_TRUE(default_donors(table, w, target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -threads=1"))
                  .empty());
  EXPECT_TRUE(default_donors(table, w, target("cuda -arch=sm_90a")).empty());
}

TEST(DefaultDonors, TheNearestComesFirstAndTheFarNotAtAll) {
  const Workload w = product(128, 768, 768);
  const std::vector<MeasuredShape> table = {
      measured(product(1, 8, 16), kZen3, "matmul_cpu", Config()),
      measured(product(64, 768, 768), kZen3, "matmul_cpu", Config()),
      measured(w, "llvm -mcpu=znver3 -threads=8", "matmul_cpu", Config()),
      measured(w, kZen3, "matmul_cpu", Config()),
      measured(w, "llvm -mcpu=haswell -threads=1", "matmul_cpu", Config())};
  const std::vector<DefaultDonor> donors = default_donors(table, w, target(kZen3));
  ASSERT_EQ(donors.size(), 4);
  EXPECT_EQ(donors[0].shape, &table[3]);
  EXPECT_EQ(donors[0].distance, 0);
  EXPECT_EQ(donors[1].shape, &table[4]) << "another CPU of the same vectors";
  EXPECT_EQ(donors[2].shape, &table[2]) << "other threads";
  EXPECT_EQ(donors[3].shape, &table[1]) << "half the rows";
  EXPECT_TRUE(default_donors(table, convolution(64, 56, 64, 3), target(kZen3)).empty()) << "another operator";
}

TEST(FittedConfigs, OfTheSameShapeItIsTheConfigItself) {
  const Workload w = product(120, 768, 768);
  const Target here = target(kZen3);
  const std::unique_ptr<TemplateInstance> of = instance("matmul_cpu", w, here);
  const RandomSeed seed(7);
  std::mt19937_64 random(seed);
  for (int draw = 0; draw < 50; ++draw) {
    const Config config = of->space().at(of->space().sample(random));
    const std::vector<MeasuredShape> table = {measured(w, kZen3, "matmul_cpu", config)};
    const std::vector<DefaultDonor> donors = default_donors(table, w, here);
    const std::vector<FittedConfig> fitted = fitted_configs(donors, "matmul_cpu", of->space());
    ASSERT_EQ(fitted.size(), 1);
    // Tiles that waste may have moved to ones that do not.
    if (fitted[0].moved == 0) {
      EXPECT_EQ(fitted[0].config, config);
    }
    EXPECT_TRUE(of->space().index_of(fitted[0].config));
    EXPECT_TRUE(fitted_configs(donors, "matmul_dot_cpu", of->space()).empty());
  }
}

TEST(FittedConfigs, ATileThatWastesMovesToOneThatDoesNot) {
  ConfigSpace space;
  space.split("tile", 16).at_most(16).try_first(4);
  ASSERT_TRUE(space.seal());
  const MeasuredShape of_14{kZen3, "v", {14}, "t", Config({{"tile", 14}})};
  const std::vector<DefaultDonor> donors = {{&of_14, 0.2}};
  const std::vector<FittedConfig> fitted = fitted_configs(donors, "t", space);
  ASSERT_EQ(fitted.size(), 1);
  EXPECT_EQ(fitted[0].config, Config({{"tile", 16}})) << "14 of 16 columns leave a second tile of 2";
  EXPECT_EQ(fitted[0].waste, 0);
}

TEST(FittedConfigs, OneThatFitsWinsOverANearerOneThatDoesNot) {
  ConfigSpace space;
  space.split("tile", 35).at_most(32).multiples_of(5).try_first(5);
  ASSERT_TRUE(space.seal());
  const MeasuredShape near{kZen3, "v", {36}, "t", Config({{"other", 4}})};
  const MeasuredShape far{kZen3, "v", {70}, "t", Config({{"tile", 5}})};
  const std::vector<DefaultDonor> donors = {{&near, 0.04}, {&far, 1}};
  const std::vector<FittedConfig> fitted = fitted_configs(donors, "t", space);
  ASSERT_EQ(fitted.size(), 1) << "the nearer one has knobs of another version";
  EXPECT_EQ(fitted[0].from, &far);
}

TEST(FittedFirst, TheNearestDonorsThatAreServedVote) {
  const MeasuredShape winograd{kZen3, "v", {1}, "conv2d_winograd_cpu", Config()};
  const MeasuredShape direct{kZen3, "v", {2}, "conv2d_direct_cpu", Config()};
  const std::vector<DefaultDonor> donors = {{&winograd, 0}, {&direct, 1}};
  const std::string_view both[] = {"conv2d_direct_cpu", "conv2d_winograd_cpu"},
                         one[] = {"other", "conv2d_direct_cpu"}, none[] = {"other", "another"};
  EXPECT_EQ(fitted_first(donors, both), 1);
  EXPECT_EQ(fitted_first(donors, one), 1);
  EXPECT_EQ(fitted_first(donors, none), 0);
  EXPECT_EQ(fitted_first({}, both), 0);
  const std::vector<DefaultDonor> near_and_many = {{&winograd, 0.5}, {&direct, 0.6}, {&direct, 0.7}};
  EXPECT_EQ(fitted_first(near_and_many, both), 0) << "two that are hardly farther outvote one";
  const std::vector<DefaultDonor> near_and_far = {{&winograd, 0.1}, {&direct, 3}, {&direct, 3.5}};
  EXPECT_EQ(fitted_first(near_and_far, both), 1) << "and two that are far do not";
  const std::vector<DefaultDonor> one_may = {{&winograd, 0.1, false}, {&direct, 3}};
  EXPECT_EQ(fitted_first(one_may, both), 0);
}

// What a CPU without tiles or dots measured says nothing of the templates that use them, and all of the rest.
TEST(FittedFirst, ACpuWithoutTheInstructionsForProductsHasNoVote) {
  const auto voters = [](DType dtype, const char* there, const char* here) {
    MatmulWorkload w;
    w.m = w.n = w.k = 64;
    w.dtype = dtype;
    const MeasuredShape shape = measured(w, there, "matmul_dot_cpu", Config());
    const std::vector<DefaultDonor> donors = default_donors(std::span(&shape, 1), w, target(here));
    EXPECT_EQ(donors.size(), 1);
    return std::ranges::count_if(donors, &DefaultDonor::votes);
  };
  const char *const zen4 = "llvm -mcpu=znver4 -threads=1",
                    *const cascade = "llvm -mcpu=cascadelake -threads=1",
                    *const sapphire = "llvm -mcpu=sapphirerapids -threads=1";
  EXPECT_EQ(voters(DType::kInt8, zen4, sapphire), 0);
  EXPECT_EQ(voters(DType::kBFloat16, zen4, sapphire), 0);
  EXPECT_EQ(voters(DType::kFloat32, zen4, sapphire), 1);
  EXPECT_EQ(voters(DType::kInt8, sapphire, zen4), 0) << "its second best is unknown";
  EXPECT_EQ(voters(DType::kInt8, sapphire, sapphire), 1);
  EXPECT_EQ(voters(DType::kBFloat16, cascade, zen4), 0);
  EXPECT_EQ(voters(DType::kInt8, cascade, zen4), 1);
}

// The table's shapes as they are asked for: their own template first, their own config the default.
TEST(FittedDefaults, AMeasuredShapeGetsItsOwnConfig) {
  const Target here = target(kZen3);
  int asked = 0;
  for (const auto& [channels, size, out, kernel] :
       {std::tuple(64, 56, 64, 3), std::tuple(256, 14, 256, 3), std::tuple(64, 56, 256, 1)}) {
    const Workload w = convolution(channels, size, out, kernel);
    for (const MeasuredShape& shape : measured_shapes()) {
      const auto donors = default_donors(measured_shapes(), w, here);
      if (donors.empty() || donors[0].distance > 0 || donors[0].shape != &shape) continue;
      const std::vector<const AnyTemplate*> serving = templates_for(w, here).value();
      EXPECT_EQ(serving[0]->name(), shape.template_name);
      ++asked;
    }
  }
  EXPECT_GT(asked, 0);
}

// Whatever is asked: the default is valid, the same for all who ask at once, and that of a second instance.
TEST(FittedDefaults, RandomTasksHaveValidDefaults) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/40)) {
    std::mt19937_64 random(seed);
    const auto extent = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(1, most)(random); };
    const Workload w = random() % 2 == 0
                           ? product(extent(300), extent(900), extent(900))
                           : convolution(extent(200), 8 + extent(50), extent(200), random() % 2 == 0 ? 3 : 1);
    const Target on = target(random() % 3 == 0 ? "llvm -mcpu=znver4 -threads=1" : kZen3);
    const std::vector<const AnyTemplate*> serving = templates_for(w, on).value();
    for (const AnyTemplate* t : serving) {
      const std::unique_ptr<TemplateInstance> one = t->apply(w, on).value(), two = t->apply(w, on).value();
      ConfigIndex from_thread = 0;
      std::thread other([&] { from_thread = one->space().default_index(); });
      const ConfigIndex here = one->space().default_index();
      other.join();
      EXPECT_EQ(here, from_thread);
      EXPECT_EQ(one->space().at(here), two->space().at(two->space().default_index()));
      EXPECT_TRUE(one->space().index_of(one->space().at(here))) << t->name() << " " << w.key();
    }
  }
}

TEST(ChooseDefault, AnInvalidChoiceIsNone) {
  for (const std::optional<Config>& choice :
       {std::optional<Config>(), std::optional(Config({{"tile", 3}})), std::optional(Config({{"other", 4}})),
        std::optional(Config({{"tile", 8}}))}) {
    ConfigSpace space;
    space.split("tile", 16).at_most(16).try_first(4).divisors_only();
    space.choose_default([&](const ConfigSpace&) { return choice; });
    ASSERT_TRUE(space.seal());
    EXPECT_EQ(space.at(space.first_index()), Config({{"tile", 4}}));
    const bool valid = choice && *choice == Config({{"tile", 8}});
    EXPECT_EQ(space.at(space.default_index()), Config({{"tile", valid ? 8 : 4}}));
  }
}

}  // namespace
}  // namespace tuner
