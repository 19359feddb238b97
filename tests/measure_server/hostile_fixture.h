// Candidates that misbehave, at one level of isolation: whatever one does costs its own trial. After each of
// them a good one is ok in the same runner, and no process is left behind.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "tests/measure_server/candidate_fixture.h"

#include "tests/support/wait_until.h"

namespace tuner {

class HostileTest : public CandidateTest {
 protected:
  virtual Isolation level() const = 0;

  static void SetUpTestSuite() {}
  static void TearDownTestSuite() {
    runners().clear();
    runner = nullptr;
  }
  void SetUp() override {
    std::unique_ptr<RunnerClient>& mine = runners()[level()];
    if (mine == nullptr) {
      Result<std::unique_ptr<RunnerClient>> started = RunnerClient::start(TUNER_RUNNER_PATH, level());
      ASSERT_TRUE(started.is_ok()) << started.message();
      mine = *std::move(started);
    }
    runner = mine.get();
    const Result<ProbeReply> probe = runner->probe({.max_threads = -1});
    ASSERT_TRUE(probe.is_ok()) << probe.message();
    if (probe->isolation != isolation_name(level()))
      GTEST_SKIP() << "isolation " << isolation_name(level())
                   << " is not to be had on this host: " << probe->isolation_missing;
    CandidateTest::SetUp();
    runner_pid_ = runner->pid();
  }
  void TearDown() override {
    if (runner_pid_ == 0) return;
    const RunReply good = run_kernel("return doubling_right(args);");
    EXPECT_EQ(good.outcome, Outcome::kOk) << good.message;
    EXPECT_EQ(good.isolation, isolation_name(level()));
    EXPECT_EQ(runner->pid(), runner_pid_) << "the runner did not survive";
    EXPECT_THAT(left_behind(runner_pid_), testing::IsEmpty());
    // Candidates of another program whose runner was killed go soon; what is left behind stays.
    wait_until(std::chrono::seconds(30), [] { return left_behind(/*parent=*/1).empty(); });
    EXPECT_THAT(left_behind(/*parent=*/1), testing::IsEmpty());
    CandidateTest::TearDown();
  }
  // Each source is compiled once: cases at other levels have the same, and so has the good candidate behind
  // every case.
  std::string compiled(const std::string& source) override {
    static std::map<std::string, std::string> objects;
    std::string& object = objects[source];
    if (object.empty()) object = CandidateTest::compiled(source);
    return object;
  }

 private:
  static std::map<Isolation, std::unique_ptr<RunnerClient>>& runners() {
    static std::map<Isolation, std::unique_ptr<RunnerClient>> all;
    return all;
  }
  // Processes a runner left behind: its children (it takes in orphans too), or those that were given to
  // process 1.
  static std::vector<std::string> left_behind(pid_t parent) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream in(entry.path() / "stat");
      std::string pid, name, state, of;
      if (!(in >> pid >> name >> state >> of) || of != std::to_string(parent)) continue;
      // The keeper holds the namespaces for as long as the runner lives.
      if (name == "(jail-keeper)") continue;
      // Process 1 has others, and may take its time to reap what is already dead.
      if (parent == 1 && (name != "(candidate)" || state == "Z")) continue;
      found.push_back(str(pid, " ", name));
    }
    return found;
  }

  pid_t runner_pid_ = 0;
};

}  // namespace tuner
