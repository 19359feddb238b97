// A job whose process was killed: every command that shows its state says so, and what goes on from there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "db/store.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::CommandLine;
using testing::CommandResult;
using ::testing::HasSubstr;

class JobStateTest : public ::testing::Test {
 protected:
  JobStateTest() {
    store_ = Store::open(db_, Store::Mode::kWrite).value();
    JobRow job;
    job.id = job.request_id = "j1";
    job.tasks = {{"v1 softmax rows=16 columns=64 dtype=float32", "llvm -mcpu=haswell -threads=1"}};
    job.trials = 8;
    job.search = "random";
    CHECK(store_->add_job(job).is_ok());
    set(JobState::kRunning);
  }
  void set(JobState state) { CHECK(store_->set_job_state("j1", state, "").is_ok()); }
  std::string state_in(const std::string& command) const {
    const CommandResult r = line_.run("tuner " + command + " --json --db a.db");
    const json facts = json::parse(r.out, nullptr, false);
    if (facts.is_discarded()) return r.out + r.err;
    return (facts.is_array() ? facts[0] : facts)["state"].get<std::string>();
  }

  CommandLine line_{TUNER_BIN_DIR};
  std::string db_ = line_.folder() / "a.db";
  std::unique_ptr<Store> store_;
};

TEST_F(JobStateTest, IsRunningWhileSomebodyHoldsTheDatabase) {
  EXPECT_EQ(state_in("jobs"), "running");
  EXPECT_THAT(line_.run("tuner jobs --db a.db").out, HasSubstr("j1  running  0 of 8 trials"));
}

TEST_F(JobStateTest, IsInterruptedWhenNobodyDoes) {
  store_.reset();
  EXPECT_EQ(state_in("jobs"), "interrupted");
  EXPECT_EQ(state_in("report j1 --no-roofs"), "interrupted");
  const CommandResult jobs = line_.run("tuner jobs --db a.db");
  EXPECT_THAT(jobs.out, HasSubstr("j1  interrupted  0 of 8 trials"));
  EXPECT_THAT(jobs.out, HasSubstr("submit the same file again to continue"));
  const CommandResult watch = line_.run("tuner watch j1 --db a.db");
  EXPECT_EQ(watch.exit_code, 1);
  EXPECT_THAT(watch.err, HasSubstr("job j1 was interrupted"));
  // Nothing was written: another writer still finds the job as it was.
  EXPECT_EQ(Store::open(db_, Store::Mode::kRead).value()->job("j1").value().state, JobState::kRunning);
}

TEST_F(JobStateTest, IsItsOwnWhenItEnded) {
  set(JobState::kCancelled);
  store_.reset();
  EXPECT_EQ(state_in("jobs"), "cancelled");
}

}  // namespace
}  // namespace tuner
