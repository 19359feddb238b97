// Signals to all processes of a worker, as batch systems and systemd send them, and to its helpers one at a
// time: no trial is blamed for them, and the worker goes on or leaves as it should.
#include <sys/prctl.h>

#include <random>

#include "tests/measure_server/worker_fixture.h"
#include "tests/support/process_tree.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

class WorkerSignals : public WorkerTest {
 protected:
  // An orphan of the worker becomes ours.
  void SetUp() override { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  void TearDown() override {
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    WorkerTest::TearDown();
  }
  // Those that are left when `limit` is over.
  static std::vector<std::string> left_behind(seconds limit) {
    std::vector<std::string> names;
    wait_until(limit, [&] {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      names.clear();
      for (const pid_t pid : descendants_of(::getpid())) names.push_back(str(pid, " ", name_of_process(pid)));
      return names.empty();
    });
    return names;
  }
  // At the end of a daemon's life, also where a test failed: a worker that is left would still call it.
  struct End {
    WorkerSignals& test;
    ~End() {
      for (const pid_t pid : descendants_of(::getpid())) ::kill(pid, SIGKILL);
      left_behind(seconds(5));
      test.stop_serving();
    }
  };
  static void expect_all_ok(FakeDaemon& daemon) {
    for (const auto& [id, record] : daemon.records())
      EXPECT_EQ(record.outcome(), v1::OK) << id << ": " << record.message();
  }
};

// TUNER_GROUP_TERMS=200 has as many lives.
TEST_F(WorkerSignals, SigtermToAllProcessesOfAWorkerAtARandomMomentBlamesNoTrialAndLeavesNobodyBehind) {
  const char* const asked = std::getenv("TUNER_GROUP_TERMS");
  const int lives = asked != nullptr ? std::atoi(asked) : 6;
  const uint64_t seed = std::random_device()();
  std::mt19937_64 rng(seed);
  size_t records = 0;
  for (int life = 0; life < lives; ++life) {
    SCOPED_TRACE(str("seed ", seed, ", life ", life));
    FakeDaemon daemon(
        conv2d_trials(400, rng() % 1000));  // other configs each time, so that most are built anew
    const End end{*this};
    daemon.drain_when_done = false;
    serve(daemon);
    const pid_t worker = spawn({"--log-level", "warning"});
    ASSERT_TRUE(daemon.wait_for_registrations(1, seconds(60)));
    let_pass(milliseconds(rng() % 1500));
    std::vector<pid_t> all = descendants_of(worker);
    EXPECT_GE(all.size(), 2u) << "a builder and a runner";
    all.push_back(worker);
    std::ranges::shuffle(all, rng);
    for (const pid_t pid : all) ::kill(pid, SIGTERM);
    const int status = wait_for_end(worker, seconds(30));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(left_behind(seconds(10)), std::vector<std::string>());
    EXPECT_EQ(fs::file_size(dir_ + "/worker/results.spool"), 0u) << "everything measured was reported";
    expect_all_ok(daemon);
    records += daemon.records().size();
    if (HasFailure()) break;
  }
  std::printf("%d lives, %zu trials\n", lives, records);
  EXPECT_GT(records, 0u);
}

TEST_F(WorkerSignals, EachHelperThatIsKilledOnceIsReplacedAndTheNextTrialsRun) {
  FakeDaemon daemon(conv2d_trials(3000, 23));
  const End end{*this};
  daemon.drain_when_done = false;
  serve(daemon);
  const pid_t worker = spawn({"--log-level", "warning"});
  ASSERT_TRUE(daemon.wait_for_records(2, seconds(120)));
  const auto is = [](const std::string& kind, pid_t pid) {
    return name_of_process(pid) == kind || command_of_process(pid).find(kind) != std::string::npos;
  };
  for (const std::string kind : {"--builder", "jail-keeper", "candidate", "runner --serve"}) {
    SCOPED_TRACE(kind);
    pid_t found = 0;
    for (const auto end = steady_clock::now() + seconds(20); found == 0 && steady_clock::now() < end;)
      for (const pid_t pid : descendants_of(worker))
        if (is(kind, pid)) found = pid;
    if (found == 0 && kind == "jail-keeper") continue;  // this host has no level strict
    ASSERT_NE(found, 0) << "no such process came";
    ::kill(found, SIGKILL);
    const size_t before = daemon.records().size();
    ASSERT_TRUE(daemon.wait_for_records(before + 6, seconds(60)));
  }
  ::kill(worker, SIGTERM);
  const int status = wait_for_end(worker, seconds(30));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(left_behind(seconds(10)), std::vector<std::string>());
  expect_all_ok(daemon);
}

}  // namespace
}  // namespace tuner
