// Other searches, played on recorded rows.
#include "tuner/study/whatif_play.h"

#include <gtest/gtest.h>

#include "tests/tuner/analytic_task.h"

namespace tuner::cli {
namespace {

using tuner::testing::analytic_record;
using tuner::testing::analytic_space;

// Every config of the analytic task, or each that `keep` says.
TaskRecords recorded(const TaskSpace& space, const std::function<bool(ConfigIndex)>& keep) {
  TaskRecords records;
  const ConfigSpace& configs = *space.search.parts[0].space;
  for (ConfigIndex i = 0; i < configs.size(); ++i) {
    if (!keep(i)) continue;
    const Config config = configs.at(i);
    const MeasureRecord r = analytic_record("t1", 1, config.to_text());
    records.rows.push_back(
        {.template_name = "analytic", .config = config, .outcome = r.outcome, .samples_ns = r.run_ns});
  }
  return records;
}

TEST(WhatIf, OfAWholeSweepCoversEveryProposalAndFindsTheBest) {
  const TaskSpace space = analytic_space(5).value();
  const TaskRecords all = recorded(space, [](ConfigIndex) { return true; });
  const auto played = play_whatif(space.search, all, "grid", {.trials = 1000, .batch = 16, .seeds = 2});
  ASSERT_TRUE(played.is_ok()) << played.message();
  EXPECT_EQ(played->coverage(), 1);
  ASSERT_EQ(played->runs[0].share.size(), 625u);  // all there are
  EXPECT_EQ(played->runs[0].share.back(), 1);
  EXPECT_TRUE(std::is_sorted(played->runs[0].share.begin(), played->runs[0].share.end()));
  EXPECT_EQ(mark_after(*played, 5000).mean, 1);
  // The same seed gives the same run; the interval is over seeds.
  const auto random = play_whatif(space.search, all, "random", {.trials = 64, .batch = 8, .seeds = 6});
  const auto again = play_whatif(space.search, all, "random", {.trials = 64, .batch = 8, .seeds = 6});
  EXPECT_EQ(random->runs[3].share, again->runs[3].share);
  const WhatIfMark m = mark_after(*random, 16);
  EXPECT_LT(m.low, m.mean);
  EXPECT_GT(m.high, m.mean);
  EXPECT_LE(m.worst, m.mean);
}

TEST(WhatIf, CountsProposalsWithoutARowAsTrialsThatSayNothing) {
  const TaskSpace space = analytic_space(5).value();
  const TaskRecords half = recorded(space, [](ConfigIndex i) { return i % 2 == 0; });
  const auto played = play_whatif(space.search, half, "random", {.trials = 400, .batch = 16, .seeds = 4});
  ASSERT_TRUE(played.is_ok()) << played.message();
  EXPECT_EQ(played->proposed(), 1600);
  EXPECT_NEAR(played->coverage(), 0.5, 5 * std::sqrt(0.25 / 1600));
  const auto none = play_whatif(space.search, {}, "annealing", {.trials = 32, .batch = 8, .seeds = 1});
  EXPECT_EQ(none->coverage(), 0);
  EXPECT_EQ(mark_after(*none, 32).mean, 0);
  EXPECT_EQ(mark_after(*none, 32).high, 1);  // one run says nothing of others
}

TEST(WhatIf, IntervalIsStudentsT) {
  WhatIfResult result;
  for (const double share : {0.5, 0.6, 0.7}) result.runs.push_back({.share = {0.1, share}});
  const WhatIfMark m = mark_after(result, 2);
  EXPECT_NEAR(m.mean, 0.6, 1e-12);
  EXPECT_NEAR(m.high - m.mean, 4.303 * 0.1 / std::sqrt(3.0), 1e-4);
  EXPECT_EQ(m.worst, 0.5);
  EXPECT_NEAR(mark_after(result, 1).mean, 0.1, 1e-12);
}

TEST(WhatIf, RefusesAnUnknownStrategy) {
  const TaskSpace space = analytic_space(5).value();
  EXPECT_EQ(play_whatif(space.search, {}, "luck", {}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tuner::cli
