// Facts of this machine: measured once, kept, measured anew when they are old or of another machine.
#include "measure_server/worker/machine_facts.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tuner {
namespace {

class MachineFacts : public testing::Test {
 protected:
  void SetUp() override { runner_ = RunnerClient::start(TUNER_RUNNER_PATH).value(); }
  // Facts of this machine that no measurement finds: whoever returns them has read them.
  ProbeReply kept(double peak) {
    ProbeReply facts = runner_->probe({.max_threads = 0, .devices_only = true}).value();
    facts.peaks.float32 = {peak};
    facts.bandwidths.levels = {{INT64_MAX, {peak}}};
    std::ofstream(file_) << to_json(facts);
    return facts;
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path(), file_ = folder_ + "/machine.json";
  std::unique_ptr<RunnerClient> runner_;
};

TEST_F(MachineFacts, AreMeasuredAndKept) {
  const ProbeReply facts = machine_facts(*runner_, file_).value();
  ASSERT_FALSE(facts.peaks.float32.empty());
  ASSERT_FALSE(facts.bandwidths.levels.empty());
  for (const CpuBandwidths::Level& level : facts.bandwidths.levels)
    for (const double gbps : level.gbps) EXPECT_GT(gbps, 0);
  const ProbeReply again = machine_facts(*runner_, file_).value();
  EXPECT_EQ(again.peaks.float32, facts.peaks.float32) << "to the last bit: not measured again";
  EXPECT_EQ(again.bandwidths.levels[0].gbps, facts.bandwidths.levels[0].gbps);
}

TEST_F(MachineFacts, OfAnotherMachineOrUnreadableOnesAreMeasuredAnew) {
  ProbeReply other = kept(1e9);
  EXPECT_EQ(machine_facts(*runner_, file_)->peaks.float32[0], 1e9);
  other.hardware = "another";
  std::ofstream(file_) << to_json(other);
  EXPECT_LT(machine_facts(*runner_, file_)->peaks.float32[0], 1e9);
  std::ofstream(file_) << "{ half a fi";
  EXPECT_LT(machine_facts(*runner_, file_)->peaks.float32[0], 1e9);
}

TEST_F(MachineFacts, OldOnesAreMeasuredAgainAndTheHigherFigureStays) {
  const auto tomorrow = std::chrono::system_clock::now() + std::chrono::hours(25);
  kept(1e9);
  const ProbeReply high = machine_facts(*runner_, file_, tomorrow).value();
  EXPECT_EQ(high.peaks.float32[0], 1e9);
  EXPECT_FALSE(high.peaks.int8.empty()) << "measured";
  kept(1e-9);
  EXPECT_GT(machine_facts(*runner_, file_, tomorrow)->peaks.float32[0], 1e-9);
}

// A peak that was measured at a slow moment stays so for a day, unless a kernel shows it.
TEST_F(MachineFacts, AreMeasuredAgainWhereAKernelIsFaster) {
  EXPECT_TRUE(beats_peak(1000, std::vector{12.0, 9.0, 11.0}, 100));
  EXPECT_FALSE(beats_peak(1000, std::vector{12.0, 10.5}, 100));
  EXPECT_FALSE(beats_peak(1000, std::vector<double>(), 100)) << "no time";
  EXPECT_FALSE(beats_peak(1000, std::vector{1e-3}, 0)) << "no peak is known";
  ProbeReply slow = kept(1e-9);
  slow.bandwidths.levels = {{INT64_MAX, {1e9}}};
  const ProbeReply again = machine_facts_again(*runner_, file_, slow).value();
  EXPECT_GT(again.peaks.float32[0], 1e-9);
  EXPECT_EQ(machine_facts(*runner_, file_)->peaks.float32[0], again.peaks.float32[0]) << "kept";
}

}  // namespace
}  // namespace tuner
