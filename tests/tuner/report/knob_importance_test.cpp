// How much a knob matters: of times made by a formula the answer is known.
#include "tuner/report/knob_importance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "templates/space/knob.h"

namespace tuner {
namespace {

using ::testing::IsEmpty;

struct Toy {
  ConfigSpace space;
  SearchSpace search;
  Toy() {
    std::vector<int64_t> eight;
    for (int64_t i = 0; i < 8; ++i) eight.push_back(int64_t{1} << i);
    space.choice("strong", eight);
    space.choice("weak", eight);
    space.choice("idle", eight);
    const CategoryKnob order = space.category("order", {"mn", "nm"});
    static_cast<void>(order);
    CHECK(space.seal().is_ok()) << "no constraint";
    search.parts.push_back({.template_name = "toy", .space = &space, .program_features = {}});
  }
  // log(time) = 0.15 x log2(strong) + 0.05 x log2(weak) + noise
  std::vector<Observation> measured(int n, double noise) const {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal(0, noise);
    std::vector<Observation> out;
    for (int i = 0; i < n; ++i) {
      const ConfigIndex at = space.sample(random);
      const Config c = space.at(at);
      const double log_time = 0.15 * std::log2(static_cast<double>(c.at("strong"))) +
                              0.05 * std::log2(static_cast<double>(c.at("weak"))) + normal(random);
      out.push_back({{0, at}, true, 1000 * std::exp(log_time)});
    }
    return out;
  }
};

const KnobImportance& of(const ImportanceReport& report, const std::string& knob) {
  for (const KnobImportance& k : report.knobs)
    if (k.knob == knob) return k;
  ADD_FAILURE() << "no knob " << knob;
  return report.knobs.front();
}

TEST(KnobImportance, RanksKnobsByWhatTheyDo) {
  const Toy toy;
  const auto report = knob_importance(toy.search, toy.measured(400, 0.01)).value();
  EXPECT_GT(report.r2, 0.9);
  ASSERT_EQ(report.knobs.size(), 4u);
  EXPECT_EQ(report.knobs[0].knob, "strong");
  EXPECT_EQ(report.knobs[1].knob, "weak");
  // Shuffling a knob that explains a share v of the variance costs about 2 v. Strong: nine tenths of it.
  EXPECT_NEAR(of(report, "strong").share, 1.8, 0.4);
  EXPECT_NEAR(of(report, "weak").share, 0.2, 0.1);
  EXPECT_LT(of(report, "idle").share, 0.02);
  EXPECT_LT(of(report, "order").share, 0.02);
}

TEST(KnobImportance, ValuesAreTheKnobsOwnWithTheirTimes) {
  const Toy toy;
  const auto report = knob_importance(toy.search, toy.measured(400, 0.01)).value();
  const KnobImportance& strong = of(report, "strong");
  ASSERT_EQ(strong.values.size(), 8u);
  EXPECT_EQ(strong.values.front().text, "1");
  EXPECT_EQ(strong.values.back().text, "128");
  EXPECT_LT(strong.values.front().median_ns, strong.values.back().median_ns);
  EXPECT_EQ(of(report, "order").values.front().text, "mn");
  int64_t configs = 0;
  for (const auto& v : strong.values) configs += v.configs;
  EXPECT_EQ(configs, report.configs);
}

TEST(KnobImportance, OfNoiseItSaysThatItExplainsNothing) {
  const Toy toy;
  std::vector<Observation> noise = toy.measured(200, 0);
  std::mt19937_64 random(3);
  for (Observation& o : noise) o.time_ns = 1000 + static_cast<double>(random() % 1000);
  EXPECT_LT(knob_importance(toy.search, noise).value().r2, ImportanceReport::kLeastR2);
}

TEST(KnobImportance, NeedsEnoughConfigsAndLeavesOutFailures) {
  const Toy toy;
  std::vector<Observation> results = toy.measured(29, 0.01);
  for (const Observation& o : toy.measured(60, 0.01)) {
    results.push_back(o);
    results.back().ok = false;
  }
  const auto report = knob_importance(toy.search, results).value();
  EXPECT_LT(report.configs, 30);
  EXPECT_THAT(report.knobs, IsEmpty());
}

TEST(KnobImportance, SaysWhichTemplateIsUsedWhenThereAreSeveral) {
  const Toy fast, slow;
  SearchSpace both = fast.search;
  both.parts.push_back({.template_name = "slow", .space = &slow.space, .program_features = {}});
  std::vector<Observation> results = fast.measured(150, 0.01);
  for (Observation o : slow.measured(150, 0.01)) {
    o.candidate.template_index = 1;
    o.time_ns *= 2;
    results.push_back(o);
  }
  // Beside the template the knobs do little here.
  for (Observation& o : results)
    o.time_ns *= std::pow(o.time_ns / 1000 / (1 + o.candidate.template_index), -0.8);
  const auto report = knob_importance(both, results).value();
  EXPECT_EQ(report.knobs[0].knob, "template");
  ASSERT_EQ(report.knobs[0].values.size(), 2u);
  EXPECT_EQ(report.knobs[0].values[0].text, "toy");
  EXPECT_GT(report.knobs[0].values[1].median_ns, 1.8 * report.knobs[0].values[0].median_ns);
}

// Three configs a hundred times slower, whatever their knobs, must not be all there is to explain.
TEST(KnobImportance, AFewVerySlowConfigsDoNotDrownTheRest) {
  const Toy toy;
  std::vector<Observation> results = toy.measured(150, 0.01);
  for (size_t i = 0; i < 3; ++i) results[20 * i].time_ns *= 100;
  const auto report = knob_importance(toy.search, results).value();
  EXPECT_EQ(report.knobs[0].knob, "strong");
  EXPECT_GT(report.r2, 0.3);
}

TEST(KnobImportance, TheSameResultsGiveTheSameShares) {
  const Toy toy;
  const auto a = knob_importance(toy.search, toy.measured(100, 0.02)).value();
  const auto b = knob_importance(toy.search, toy.measured(100, 0.02)).value();
  for (size_t i = 0; i < a.knobs.size(); ++i) EXPECT_EQ(a.knobs[i].share, b.knobs[i].share);
}

}  // namespace
}  // namespace tuner
