// The farm under random faults: 500 seeds; many more: TUNER_TEST_ROUNDS=10000.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "tests/random_seed.h"
#include "tests/sim/farm_simulator.h"

namespace tuner::sim {
namespace {

// A folder in memory where there is one: a commit is synchronous, and disks are slow at that.
class Folder {
 public:
  Folder() {
    std::string pattern =
        (access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path().string()) +
        "/tuner-sim-XXXXXX";
    path = mkdtemp(pattern.data()) == nullptr ? "" : pattern;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

Outcome run(uint64_t seed) {
  const Folder folder;
  EXPECT_FALSE(folder.path.empty());
  return simulate({.seed = seed, .folder = folder.path});
}

class FarmSimulation : public testing::Test {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
};

TEST_F(FarmSimulation, LosesNothingDoublesNothingBlamesNobodyAndEnds) {
  Outcome sum;
  Seeds seeds(/*fixed=*/1, /*rounds=*/500);
  for (const uint32_t seed : seeds) {
    const Outcome outcome = run(seed);
    for (const std::string& violation : outcome.violations) ADD_FAILURE() << violation;
    sum.virtual_ms += outcome.virtual_ms;
    sum.jobs += outcome.jobs;
    sum.results += outcome.results;
    sum.races += outcome.races;
    sum.lies += outcome.lies;
    sum.builders += outcome.builders;
    sum.built += outcome.built;
    sum.fetched += outcome.fetched;
    sum.flaws += outcome.flaws;
    sum.recalled += outcome.recalled;
    sum.missed += outcome.missed;
    sum.let_go += outcome.let_go;
    sum.given_back += outcome.given_back;
    sum.daemon_kills += outcome.daemon_kills;
    sum.worker_kills += outcome.worker_kills;
    sum.pauses += outcome.pauses;
    sum.lost += outcome.lost;
    sum.repeated += outcome.repeated;
    sum.trace = sum.trace * 1'099'511'628'211 + outcome.trace;  // in the order of the seeds
  }
  std::printf(
      "%.1f hours of a farm; %d jobs, %d results, %d races; %d kills of the daemon, %d of workers, %d "
      "pauses, %d "
      "messages lost, %d repeated, %d lies, %d given back; %d builders, %d built, %d of them spoilt, %d "
      "fetched, %d recalled, %d missed, %d let go; digest of all messages %016llx\n",
      static_cast<double>(sum.virtual_ms) / 3.6e6, sum.jobs, sum.results, sum.races, sum.daemon_kills,
      sum.worker_kills, sum.pauses, sum.lost, sum.repeated, sum.lies, sum.given_back, sum.builders, sum.built,
      sum.flaws, sum.fetched, sum.recalled, sum.missed, sum.let_go,
      static_cast<unsigned long long>(sum.trace));
  if (!seeds.all()) return;
  // Silence must not be mistaken for safety.
  EXPECT_GT(sum.daemon_kills, 0);
  EXPECT_GT(sum.worker_kills, 0);
  EXPECT_GT(sum.pauses, 0);
  EXPECT_GT(sum.lost, 0);
  EXPECT_GT(sum.repeated, 0);
  EXPECT_GT(sum.races, 0);
  EXPECT_GT(sum.lies, 0);
  EXPECT_GT(sum.given_back, 0);
  EXPECT_GT(sum.built, 0);
  EXPECT_GT(sum.fetched, 0);
  EXPECT_GT(sum.flaws, 0);
  EXPECT_GT(sum.recalled, 0);
  EXPECT_GT(sum.missed, 0);
  EXPECT_GT(sum.let_go, 0);
}

TEST_F(FarmSimulation, TheSameSeedGivesTheSameRun) {
  for (const uint64_t seed : {7, 11, 1'234}) {
    const Outcome first = run(seed), second = run(seed);
    EXPECT_EQ(first.trace, second.trace) << "seed " << seed;
    EXPECT_EQ(first.virtual_ms, second.virtual_ms);
  }
}

}  // namespace
}  // namespace tuner::sim
