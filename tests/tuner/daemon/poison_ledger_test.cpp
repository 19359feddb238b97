// The poison ledger: how many deaths make a config poison, where workers die of it and where they are killed.
#include "tuner/daemon/tables/poison_ledger.h"

#include <gmock/gmock.h>

#include <random>

namespace tuner {
namespace {

using testing::HasSubstr;
constexpr int64_t kSecond = 1'000'000;

Work work_of(const std::string& config) {
  return {.task = {"v1 work", "cpu one"}, .template_name = "toy", .config = config};
}
DeathRow death(const std::string& config, const std::string& worker, int64_t now_us, bool alone = true,
               DeathPhase phase = DeathPhase::kRunning) {
  return PoisonLedger::line(work_of(config), {worker, "i" + std::to_string(now_us)}, phase, alone, now_us);
}
void results(PoisonLedger& ledger, int n, int64_t now_us) {
  for (int i = 0; i < n; ++i) ledger.count_result(now_us);
}

TEST(PoisonLedger, OnACalmFarmTheSecondWorkerThatDiesAloneProvesIt) {
  PoisonLedger ledger;
  results(ledger, 2'000, kSecond);
  EXPECT_FALSE(ledger.suspects(work_of("a=1")));
  EXPECT_FALSE(ledger.take(death("a=1", "w1", 2 * kSecond, /*alone=*/false)));
  EXPECT_TRUE(ledger.suspects(work_of("a=1"))) << "the next one has nothing else";
  EXPECT_FALSE(ledger.verdict(work_of("a=1")));
  EXPECT_TRUE(ledger.take(death("a=1", "w2", 3 * kSecond, true, DeathPhase::kBuilding)));
  const auto why = ledger.verdict(work_of("a=1"));
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, HasSubstr("2 workers were lost while they were building this config (w1, w2)"));
  EXPECT_FALSE(ledger.verdict(work_of("a=2")));
  Work newer = work_of("a=1");
  newer.template_version = 2;
  EXPECT_FALSE(ledger.verdict(newer)) << "another version of the template is another program";
}

TEST(PoisonLedger, ASecondDeathBesideOtherWorkProvesNothing) {
  PoisonLedger ledger;
  results(ledger, 2'000, kSecond);
  EXPECT_FALSE(ledger.take(death("a=1", "w1", 2 * kSecond, false)));
  EXPECT_FALSE(ledger.take(death("a=1", "w2", 3 * kSecond, /*alone=*/false)));
  EXPECT_FALSE(ledger.verdict(work_of("a=1")));
  EXPECT_TRUE(ledger.take(death("a=1", "w3", 4 * kSecond, true)));
}

TEST(PoisonLedger, OneWorkerThatKeepsDyingNeedsAThirdTime) {
  PoisonLedger ledger;
  results(ledger, 2'000, kSecond);
  EXPECT_FALSE(ledger.take(death("a=1", "w1", 2 * kSecond)));
  EXPECT_FALSE(ledger.take(death("a=1", "w1", 3 * kSecond))) << "perhaps its machine is sick";
  EXPECT_TRUE(ledger.take(death("a=1", "w1", 4 * kSecond)));
}

TEST(PoisonLedger, ADeathToldTwiceIsOne) {
  PoisonLedger ledger;
  results(ledger, 2'000, kSecond);
  const DeathRow first = death("a=1", "w1", 2 * kSecond);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(ledger.take(first));
  EXPECT_FALSE(ledger.verdict(work_of("a=1")));
}

TEST(PoisonLedger, AResultClearsTheConfig) {
  PoisonLedger ledger;
  results(ledger, 2'000, kSecond);
  ledger.take(death("a=1", "w1", 2 * kSecond));
  ledger.take(death("a=1", "w9", 2 * kSecond, false, DeathPhase::kSurvived));
  EXPECT_FALSE(ledger.suspects(work_of("a=1")));
  EXPECT_FALSE(ledger.take(death("a=1", "w2", 3 * kSecond))) << "counting begins anew";
}

TEST(PoisonLedger, AVerdictOutlivesTheDaemonAlthoughItsCountsDoNot) {
  PoisonLedger ledger;
  for (const DeathRow& line : {death("a=1", "w1", kSecond), death("a=1", "w2", 2 * kSecond),
                               death("a=1", "w2", 3 * kSecond, false, DeathPhase::kPoison)})
    ledger.take(line);
  EXPECT_TRUE(ledger.verdict(work_of("a=1")));
}

// Workers that are killed at random die at many configs: each such death makes the next less of a proof.
TEST(PoisonLedger, WhereWorkersAreKilledAtRandomItTakesMore) {
  PoisonLedger ledger;
  results(ledger, 2'000, kSecond);
  for (int i = 0; i < 50; ++i) ledger.take(death("b=" + std::to_string(i), "v", 2 * kSecond + i));
  ledger.take(death("a=1", "w1", 3 * kSecond));
  ledger.take(death("a=1", "w2", 4 * kSecond));
  ledger.take(death("a=1", "w3", 5 * kSecond));
  EXPECT_FALSE(ledger.verdict(work_of("a=1"))) << "0.026 to the third: one in 60,000";
  EXPECT_TRUE(ledger.take(death("a=1", "w4", 6 * kSecond)));
}

// A farm with 2 % of its leases killed for no fault of theirs, 100,000 leases: no innocent is blamed.
TEST(PoisonLedger, RandomKillsBlameNobody) {
  for (const uint32_t seed : {1u, 2u, 3u, 4u, 5u}) {
    PoisonLedger ledger;
    std::mt19937 random(seed);
    std::bernoulli_distribution killed(0.02);
    int64_t now = kSecond;
    for (int config = 0; config < 20'000; ++config) {
      const std::string name = "a=" + std::to_string(config);
      for (int attempt = 0; killed(random); ++attempt, now += kSecond / 10)
        ASSERT_FALSE(ledger.take(death(name, "w" + std::to_string(attempt), now, attempt > 0)))
            << name << ", seed " << seed;
      if (ledger.suspects(work_of(name))) ledger.take(death(name, "w", now, false, DeathPhase::kSurvived));
      ledger.count_result(now += kSecond / 10);
    }
  }
}

}  // namespace
}  // namespace tuner
