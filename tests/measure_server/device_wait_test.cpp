// Runs that have to wait for other processes: what the candidate, the caller and the other process notice.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "measure_server/runner/device_lock.h"
#include "tests/measure_server/candidate_fixture.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr const char* kGood = "return doubling_right(args);";

class DeviceWait : public CandidateTest {
 protected:
  void SetUp() override {
    CandidateTest::SetUp();
    setenv("TUNER_LOCK_DIR", folder_.c_str(), 1);
    Result<std::unique_ptr<RunnerClient>> started = RunnerClient::start(TUNER_RUNNER_PATH);
    ASSERT_TRUE(started.is_ok()) << started.message();
    client_ = *std::move(started);
    client_->on_wait_for_device([this](bool waits) { (waits ? began_ : ended_) += 1; });
  }
  void TearDown() override {
    client_.reset();
    unsetenv("TUNER_LOCK_DIR");
  }
  RunRequest on_cpu_0() {
    RunRequest q = request(build_kernel(kGood));
    q.cpus = {0};
    return q;
  }
  static bool wait_until(const std::function<bool()>& done) { return tuner::wait_until(seconds(30), done); }

  const std::string folder_ = temporary_.file("locks");
  std::unique_ptr<RunnerClient> client_;
  std::atomic<int> began_{0}, ended_{0};
};

TEST_F(DeviceWait, ARunWithAFreeCoreDoesNotWait) {
  const Result<RunReply> reply = client_->run(on_cpu_0());
  ASSERT_TRUE(reply.is_ok()) << reply.message();
  EXPECT_EQ(reply->outcome, Outcome::kOk) << reply->message;
  EXPECT_EQ(client_->unlocked(), "");
  EXPECT_EQ(began_, 0);
  DeviceLocks others(folder_);
  EXPECT_TRUE(others.take({.cpus = {0}}, milliseconds(0)).is_ok()) << "it is free again";
}

TEST_F(DeviceWait, TheWaitIsNeitherTheCandidatesTimeNorTheDeadlines) {
  RunRequest q = on_cpu_0();
  q.run_timeout_s = 1;
  DeviceLocks others(folder_);
  auto held = std::make_unique<DeviceLocks::Held>();
  {
    Result<DeviceLocks::Held> taken = others.take({.cpus = {0}}, milliseconds(0));
    ASSERT_TRUE(taken.is_ok()) << taken.message();
    *held = *std::move(taken);
  }
  Result<RunReply> reply = failed("not run");
  std::thread thread([&] { reply = client_->run(q, steady_clock::now() + seconds(2)); });
  EXPECT_TRUE(wait_until([&] { return began_ == 1; }));
  let_pass(seconds(3));
  EXPECT_EQ(ended_, 0) << "somebody has the core";
  held.reset();
  thread.join();
  ASSERT_TRUE(reply.is_ok()) << reply.message();
  EXPECT_EQ(reply->outcome, Outcome::kOk) << reply->message;
  EXPECT_LT(reply->run_ms, 3'000) << "the wait is no part of it";
  EXPECT_EQ(ended_, 1);
}

TEST_F(DeviceWait, ARunThatWaitsCanBeCancelled) {
  const RunRequest q = on_cpu_0();
  DeviceLocks others(folder_);
  const Result<DeviceLocks::Held> held = others.take({.cpus = {0}}, milliseconds(0));
  ASSERT_TRUE(held.is_ok()) << held.message();
  Result<RunReply> reply = failed("not run");
  std::thread thread([&] { reply = client_->run(q); });
  EXPECT_TRUE(wait_until([&] { return began_ == 1; }));
  client_->cancel(q.id);
  thread.join();
  EXPECT_EQ(reply.status().code(), StatusCode::kAborted) << reply.message();
  EXPECT_EQ(ended_, 1);
}

TEST_F(DeviceWait, AProcessThatIsKilledInItsRunFreesTheCore) {
  const RunRequest slow = [&] {
    RunRequest q = request(build_kernel("sleep(60); return doubling_right(args);"));
    q.cpus = {0};
    q.run_timeout_s = 100;
    return q;
  }();
  const RunRequest ours = on_cpu_0();
  const pid_t other = ::fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    Result<std::unique_ptr<RunnerClient>> client = RunnerClient::start(TUNER_RUNNER_PATH);
    if (client.is_ok()) (void)(*client)->run(slow);
    ::_exit(1);
  }
  DeviceLocks look(folder_);
  EXPECT_TRUE(wait_until([&] { return !look.take({.cpus = {0}}, milliseconds(0)).is_ok(); }));
  ::kill(other, SIGKILL);
  const Result<RunReply> reply = client_->run(ours);
  EXPECT_TRUE(reply.is_ok() && reply->outcome == Outcome::kOk) << reply.message();
  ::waitpid(other, nullptr, 0);
}

}  // namespace
}  // namespace tuner
