// How much a knob matters: of times made by a formula the answer is known.
#include "tuner/report/knob_importance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "templates/knob.h"

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
  // log(time) = 0.9 x log2(strong) + 0.3 x log2(weak) + noise
  std::vector<Observation> measured(int n, double noise) const {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal(0, noise);
    std::vector<Observation> out;
    for (int i = 0; i < n; ++i) {
      const ConfigIndex at = space.sample(random);
      const Config c = space.at(at);
      const double log_time = 0.9 * std::log2(static_cast<double>(c.at("strong"))) +
                              0.3 * std::log2(static_cast<double>(c.at("weak"))) + normal(random);
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
  const auto report = knob_importance(toy.search, toy.measured(400, 0.05)).value();
  EXPECT_GT(report.r2, 0.9);
  ASSERT_EQ(report.knobs.size(), 4u);
  EXPECT_EQ(report.knobs[0].knob, "strong");
  EXPECT_EQ(report.knobs[1].knob, "weak");
  // Shuffling a knob that explains a share v of the variance costs 2 v: 0.9 and 0.1 of it here.
  EXPECT_NEAR(of(report, "strong").share, 1.8, 0.4);
  EXPECT_NEAR(of(report, "weak").share, 0.2, 0.1);
  EXPECT_LT(of(report, "idle").share, 0.02);
  EXPECT_LT(of(report, "order").share, 0.02);
}

TEST(KnobImportance, ValuesAreTheKnobsOwnWithTheirTimes) {
  const Toy toy;
  const auto report = knob_importance(toy.search, toy.measured(400, 0.05)).value();
  const KnobImportance& strong = of(report, "strong");
  ASSERT_EQ(strong.values.size(), 8u);
  EXPECT_EQ(strong.values.front().text, "1");
  EXPECT_EQ(strong.values.back().text, "128");
  EXPECT_LT(strong.values.front().median_ns, strong.values.back().best_ns);
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

TEST(KnobImportance, NeedsEnoughConfigsAndLeavesOutFailuresAndCutOnes) {
  const Toy toy;
  std::vector<Observation> results = toy.measured(29, 0.05);
  for (const Observation& o : toy.measured(60, 0.05)) {
    results.push_back(o);
    results.back().cut = true;
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
  std::vector<Observation> results = fast.measured(150, 0.05);
  for (Observation o : slow.measured(150, 0.05)) {
    o.candidate.template_index = 1;
    o.time_ns *= 1000;
    results.push_back(o);
  }
  const auto report = knob_importance(both, results).value();
  EXPECT_EQ(report.knobs[0].knob, "template");
  ASSERT_EQ(report.knobs[0].values.size(), 2u);
  EXPECT_EQ(report.knobs[0].values[0].text, "toy");
  EXPECT_GT(report.knobs[0].values[1].median_ns, 100 * report.knobs[0].values[0].median_ns);
}

TEST(KnobImportance, TheSameResultsGiveTheSameShares) {
  const Toy toy;
  const auto a = knob_importance(toy.search, toy.measured(100, 0.1)).value();
  const auto b = knob_importance(toy.search, toy.measured(100, 0.1)).value();
  for (size_t i = 0; i < a.knobs.size(); ++i) EXPECT_EQ(a.knobs[i].share, b.knobs[i].share);
}

}  // namespace
}  // namespace tuner
