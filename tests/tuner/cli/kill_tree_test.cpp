// kill -9 of the whole process tree of `tuner submit`, three times in the middle of a 500-trial job, then
// finish: no recorded trial is lost or measured twice.
#include <gtest/gtest.h>

#include "tests/tuner/cli/real_job.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::Process;
using testing::RealJob;

TEST(KillTree, ThreeKillsLoseNothingAndRepeatNothing) {
  RealJob job;
  std::map<std::string, TrialWithRecord> seen;  // all that was ever read from the database
  for (const size_t until : {60u, 170u, 330u}) {
    Process submit(job.submit(500), job.folder.file("submit" + std::to_string(until)));
    ASSERT_TRUE(eventually(240s, [&] { return job.recorded().size() >= until; })) << submit.err();
    seen = job.recorded();
    submit.kill_tree();
    const std::map<std::string, TrialWithRecord> after = job.recorded();
    EXPECT_LT(after.size(), 500u) << "it was to be killed in mid-job";
    for (const auto& [id, t] : seen) EXPECT_TRUE(after.contains(id)) << id << " was recorded, then lost";
    seen = after;
  }
  Process last(job.submit(500), job.folder.file("last"));
  EXPECT_EQ(last.wait(300s), 0) << last.err();
  job.expect_complete(500);
  const std::map<std::string, TrialWithRecord> all = job.recorded();
  for (const auto& [id, t] : seen) {
    ASSERT_TRUE(all.contains(id)) << id << " was recorded, then lost";
    EXPECT_EQ(all.at(id).trial.attempt, t.trial.attempt) << id << " was leased again after its record";
    EXPECT_EQ(all.at(id).record->run_ns, t.record->run_ns) << id;
  }
}

}  // namespace
}  // namespace tuner
