// What a child begins with, and how it ends.
#include "compiler_core/base/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/scratch_folder.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kLong{30'000};  // never waited for in full

class ChildProcess : public ::testing::Test {
 protected:
  // Of `sh -c script`: what it printed.
  std::string output_of(const std::string& script, int handed_over = -1) {
    const Result<pid_t> pid = start_program({.path = "/bin/sh",
                                             .words = {"sh", "-c", script},
                                             .handed_over = handed_over,
                                             .log = folder_->file("log")});
    CHECK(pid.is_ok()) << pid.message();
    const std::optional<int> status = wait_for_end(*pid, kLong);
    CHECK(status.has_value()) << script << " does not end";
    ending_ = ending_text(*status);
    return *read_whole(folder_->file("log"));
  }
  static pid_t started(const std::string& script) {
    const Result<pid_t> pid = start_program({.path = "/bin/sh", .words = {"sh", "-c", script}});
    CHECK(pid.is_ok()) << pid.message();
    return *pid;
  }

  const std::unique_ptr<ScratchFolder> folder_ = *ScratchFolder::make("tuner-child");
  std::string ending_;
};

TEST_F(ChildProcess, BeginsWithNoInputNoDescriptorsOfOursAndAGroupOfItsOwn) {
  const int open_without_cloexec = ::dup(STDOUT_FILENO);
  EXPECT_EQ(output_of("cat; ls /proc/self/fd | wc -l; exit 3"), "4\n") << "0, 1, 2 and that of ls";
  EXPECT_EQ(ending_, "exit status 3");
  ::close(open_without_cloexec);
  EXPECT_EQ(output_of("[ $(cut -d' ' -f5 /proc/$$/stat) = $$ ] && echo leader"), "4\nleader\n")
      << "the log is appended to";
}

TEST_F(ChildProcess, GetsTheDescriptorThatIsHandedOver) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  output_of("echo hello >&3", pair[1]);
  ::close(pair[1]);
  char text[16] = {};
  EXPECT_EQ(::read(pair[0], text, sizeof text), 6);
  EXPECT_STREQ(text, "hello\n");
  EXPECT_EQ(::read(pair[0], text, sizeof text), 0) << "nobody holds the other end";
  ::close(pair[0]);
}

TEST_F(ChildProcess, HasTheSignalsOfALoginWhateverOursAre) {
  struct sigaction before {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGTERM, &ignore, &before);
  sigset_t blocked, mask;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &mask);
  const int status = end_program(started("exec sleep 1000"), kLong);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGTERM, &before, nullptr);
  EXPECT_EQ(ending_text(status), "signal 15 (SIGTERM)");
}

TEST_F(ChildProcess, EndsWhenAskedOrIsKilled) {
  EXPECT_EQ(ending_text(end_program(started("exec sleep 1000"), milliseconds(0))), "signal 9 (SIGKILL)");
  // Deaf once it says so.
  const Result<pid_t> deaf =
      start_program({.path = "/bin/sh",
                     .words = {"sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"},
                     .log = folder_->file("deaf")});
  ASSERT_TRUE(deaf.is_ok()) << deaf.message();
  ASSERT_TRUE(wait_until(std::chrono::seconds(30), [&] {
    const auto said = read_whole(folder_->file("deaf"));
    return said && *said == "deaf\n";
  }));
  EXPECT_EQ(status_if_ended(*deaf), std::nullopt);
  EXPECT_EQ(wait_for_end(*deaf, milliseconds(1)), std::nullopt);
  EXPECT_EQ(ending_text(end_program(*deaf, milliseconds(20))), "signal 9 (SIGKILL)");
  EXPECT_EQ(status_if_ended(*deaf), 0) << "it was reaped before";
}

TEST_F(ChildProcess, ADeafOneDoesNotHearWhatAsksItToEndFromItsFirstMoment) {
  const Result<pid_t> deaf =
      start_program({.path = "/bin/sh", .words = {"sh", "-c", "exec sleep 1000"}, .deaf = true});
  ASSERT_TRUE(deaf.is_ok()) << deaf.message();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::kill(*deaf, signal);
  EXPECT_EQ(wait_for_end(*deaf, milliseconds(200)), std::nullopt);
  EXPECT_EQ(ending_text(end_program(*deaf, milliseconds(0))), "signal 9 (SIGKILL)");
}

// An innocent child may end by these; by the others it ends for what it did.
TEST_F(ChildProcess, SignalsFromOutsideAreKnown) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGKILL, SIGXCPU})
    EXPECT_TRUE(is_from_outside(signal)) << signal;
  for (const int signal :
       {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGPIPE, SIGXFSZ, SIGALRM})
    EXPECT_FALSE(is_from_outside(signal)) << signal;
}

TEST_F(ChildProcess, WhatCannotBeStartedSaysWhy) {
  EXPECT_EQ(start_program({.path = "/nonexistent", .words = {"x"}}).message(),
            "/nonexistent: cannot be started: No such file or directory");
  EXPECT_THAT(start_program({.path = folder_->path(), .words = {"x"}}).message(),
              HasSubstr("Permission denied"));
}

}  // namespace
}  // namespace tuner
