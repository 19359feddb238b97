// measure_server as a program: stopped, killed and started anew, and ended with the process that owns it.
#include <sys/prctl.h>

#include <cerrno>
#include <fstream>

#include "tests/measure_server/worker_fixture.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class WorkerProgram : public WorkerTest {};

TEST_F(WorkerProgram, AKilledWorkersResultsComeFromItsNextLifeUnderTheOldOne) {
  FakeDaemon daemon(conv2d_trials(6, 15));
  daemon.acknowledge = false;
  serve(daemon);
  const pid_t first = spawn();
  const bool seen = daemon.wait_for_results(2, seconds(120));
  ::kill(first, SIGKILL);
  wait_for_end(first, seconds(10));
  ASSERT_TRUE(seen) << "no result came in two minutes";
  const std::string old_life = daemon.registrations()[0].incarnation();

  daemon.take_results();
  const pid_t second = spawn();
  EXPECT_TRUE(daemon.wait_for_records(6, seconds(120)));
  const int status = wait_for_end(second, seconds(60));  // drained by the daemon
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  int from_old_life = 0;
  for (const auto& [id, record] : daemon.records()) {
    EXPECT_EQ(record.outcome(), v1::OK) << record.message();
    from_old_life += record.environment().worker_incarnation() == old_life ? 1 : 0;
  }
  EXPECT_GE(from_old_life, 1) << "what was measured before the kill is not measured again";
}

TEST_F(WorkerProgram, SigtermFinishesWhatIsHeldReportsAndLeaves) {
  FakeDaemon daemon(conv2d_trials(200, 16));
  daemon.drain_when_done = false;
  serve(daemon);
  const pid_t pid = spawn();
  ASSERT_TRUE(daemon.wait_for_records(2, seconds(120)));
  ::kill(pid, SIGTERM);
  const int status = wait_for_end(pid, seconds(60));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_LT(daemon.records().size(), 200u);
  EXPECT_EQ(fs::file_size(dir_ + "/worker/results.spool"), 0u) << "everything measured was reported";
}

// A runner that keeps candidates apart less well than this host could.
TEST_F(WorkerProgram, LessIsolationThanIsWantedEndsItWithOneLine) {
  const std::string runner = dir_ + "/lesser_runner", log = dir_ + "/log";
  std::ofstream(runner) << "#!/bin/sh\nexec " TUNER_RUNNER_PATH " --serve --isolation process\n";
  fs::permissions(runner, fs::perms::owner_all);
  const auto refused = [&](const std::string& daemon, const std::string& more) {
    const int status =
        std::system(str(TUNER_MEASURE_SERVER_PATH, " --work-dir ", dir_, "/refused --shared-dir ", dir_,
                        "/shared --runner ", runner, " --daemon ", daemon, " ", more, " 2> ", log)
                        .c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
    std::ifstream in(log);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string strict = refused("unix:/nowhere", "--isolation strict");
  EXPECT_NE(strict.find("isolation strict is not to be had on this host, only "), std::string::npos)
      << strict;
  if (::geteuid() != 0) GTEST_SKIP() << "not root: the rule for root is tested in isolation_rule_test";
  const std::string root = refused("farm.example.org:7070", "");
  EXPECT_NE(root.find("root runs no candidates of farm.example.org:7070 with isolation "), std::string::npos)
      << root;
}

TEST_F(WorkerProgram, WithItsOwnerAliveItWorks) {
  FakeDaemon daemon(conv2d_trials(2, 17));
  serve(daemon);
  const pid_t pid = spawn({"--exit-with", std::to_string(::getpid())});
  const int status = wait_for_end(pid, seconds(120));  // drained by the daemon
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(daemon.records().size(), 2u);
}

TEST_F(WorkerProgram, WithItsOwnerGoneItEndsAndSoDoesAllItStarted) {
  // Processes whose parents end become children of this one, which can wait for them.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  FakeDaemon daemon(conv2d_trials(200, 18));
  daemon.drain_when_done = false;
  serve(daemon);
  // A shell that starts the worker and turns into something that waits, under the same number.
  const std::string script = str("\"", TUNER_MEASURE_SERVER_PATH, "\" --daemon ", address_, " --work-dir ",
                                 dir_, "/worker --runner \"", TUNER_RUNNER_PATH,
                                 "\" --exit-with $$ & echo $! > ", dir_, "/pid; exec sleep 300");
  const char* const argv[] = {"/bin/sh", "-c", script.c_str(), nullptr};
  pid_t owner = -1;
  ASSERT_EQ(::posix_spawn(&owner, argv[0], nullptr, nullptr, const_cast<char* const*>(argv), environ), 0);
  const bool works = daemon.wait_for_records(1, seconds(120));
  pid_t worker = 0;
  std::ifstream(dir_ + "/pid") >> worker;
  EXPECT_EQ(::kill(worker, 0), 0);
  ::kill(owner, SIGKILL);
  wait_for_end(owner, seconds(10));
  ASSERT_TRUE(works && worker > 0) << "the worker measured nothing in two minutes";
  const int status = wait_for_end(worker, seconds(10));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  // The builder, the runner, a candidate: whoever is left.
  EXPECT_TRUE(wait_until(seconds(10), [] {
    pid_t ended = 1;
    while (ended > 0) ended = ::waitpid(-1, nullptr, WNOHANG);
    return ended < 0 && errno == ECHILD;
  })) << "a process that the worker started outlives it";
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  stop_serving();
}

TEST_F(WorkerProgram, AnOwnerThatIsGoneBeforeItIsLookedAtIsSeen) {
  const char* const argv[] = {"/bin/true", nullptr};
  pid_t gone = -1;
  ASSERT_EQ(::posix_spawn(&gone, argv[0], nullptr, nullptr, const_cast<char* const*>(argv), environ), 0);
  wait_for_end(gone, seconds(10));
  const int status = wait_for_end(spawn({"--exit-with", std::to_string(gone)}), seconds(20));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

TEST_F(WorkerProgram, WithoutADaemonItWaitsAndLeavesWhenTold) {
  const pid_t pid = spawn();
  let_pass(seconds(3));
  EXPECT_EQ(::kill(pid, 0), 0) << "it keeps trying";
  ::kill(pid, SIGTERM);
  const int status = wait_for_end(pid, seconds(30));
  EXPECT_TRUE(WIFEXITED(status)) << status;
}

TEST_F(WorkerProgram, ARefusalOfItsFirstRegistrationEndsItWithStatus2) {
  FakeDaemon daemon({});
  daemon.refusals = {{grpc::StatusCode::RESOURCE_EXHAUSTED, "Server Threadpool Exhausted"},
                     {grpc::StatusCode::INVALID_ARGUMENT, "harness_abi: expected 3"}};
  serve(daemon);
  const int status = wait_for_end(spawn(), seconds(60));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
}

TEST_F(WorkerProgram, AnIdThatIsStillInUseIsWaitedFor) {
  FakeDaemon daemon(conv2d_trials(1, 19));
  daemon.refusals.assign(2, {grpc::StatusCode::ALREADY_EXISTS, "worker ID w1 is here already from vm"});
  serve(daemon);
  const int status = wait_for_end(spawn(), seconds(120));  // drained by the daemon
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(daemon.records().size(), 1u);
}

TEST_F(WorkerProgram, AWorkFolderInUseIsRefusedWithStatus2) {
  FakeDaemon daemon({});
  daemon.drain_when_done = false;
  serve(daemon);
  const pid_t first = spawn();
  ASSERT_TRUE(daemon.wait_for_registrations(1, seconds(60)));
  const int status = wait_for_end(spawn(), seconds(60));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
  ::kill(first, SIGKILL);
  wait_for_end(first, seconds(10));
  stop_serving();
}

TEST_F(WorkerProgram, TwoWorkersOfAHostHaveIdsOfTheirOwnThatStayOverRestarts) {
  ::setenv("XDG_CACHE_HOME", (dir_ + "/cache").c_str(), 1);
  FakeDaemon daemon({});
  daemon.drain_when_done = false;
  serve(daemon);
  const auto ids = [&](size_t from) {
    std::set<std::string> all;
    const auto registrations = daemon.registrations();
    for (size_t i = from; i < registrations.size(); ++i) all.insert(registrations[i].worker_id());
    return all;
  };
  // One after the other, so that each finds the folder that it had before.
  const auto life_of_both = [&](size_t before) {
    const pid_t first = spawn_with({});
    EXPECT_TRUE(daemon.wait_for_registrations(before + 1, seconds(60)));
    const pid_t second = spawn_with({});
    EXPECT_TRUE(daemon.wait_for_registrations(before + 2, seconds(60)));
    for (const pid_t pid : {first, second}) {
      ::kill(pid, SIGKILL);
      wait_for_end(pid, seconds(10));
    }
    return ids(before);
  };
  const std::set<std::string> first_life = life_of_both(0);
  EXPECT_EQ(first_life.size(), 2u) << "91 registrations in 7 s evicted each other";
  EXPECT_EQ(life_of_both(2), first_life);
  ::unsetenv("XDG_CACHE_HOME");
  stop_serving();
}

}  // namespace
}  // namespace tuner
