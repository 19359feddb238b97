// What a long command shows, and that it ends when it is asked to: by a made-up clock, and in processes that
// do not stop by themselves.
#include "tuner/command_line/work_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"
#include "tuner/command_line/interrupt.h"
#include "tuner/command_line/work_pace.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

// From a moment on, by ticks that are late by up to one more.
class PaceTest : public ::testing::Test {
 protected:
  WorkPace::Act tick(WorkPace::Now now) {
    now_ms_ += WorkPace::kTickMs + std::uniform_int_distribution<int64_t>(0, WorkPace::kTickMs)(random_);
    now.ms = now_ms_;
    return pace_.tick(now);
  }
  const RandomSeed seed_{11};
  std::mt19937 random_{seed_};
  int64_t now_ms_ = 1'000'000;
  WorkPace pace_{now_ms_};
};

TEST_F(PaceTest, ALineComesAtLeastEveryTwoSecondsAndNotMuchMoreOften) {
  int64_t last = now_ms_, lines = 0;
  while (now_ms_ < 1'600'000) {
    const bool printed = tick({.is_guarded = true, .has_words = true}) == WorkPace::Act::kPrint;
    ASSERT_LE(now_ms_ - last, 2000);
    if (!printed) continue;
    EXPECT_GT(now_ms_ - last, 1500);
    last = now_ms_;
    ++lines;
  }
  EXPECT_GE(lines, 300);
  EXPECT_EQ(pace_.seconds(1'003'999), 3);
}

TEST_F(PaceTest, WhatComesAfterSilenceIsShownAtOnce) {
  while (now_ms_ < 1'005'000) ASSERT_EQ(tick({}), WorkPace::Act::kNothing);
  EXPECT_EQ(tick({.has_words = true}), WorkPace::Act::kPrint);
}

// Half a second to stop in order; then it is ended, within a second of the signal.
TEST_F(PaceTest, WhoIsAskedHasHalfASecondAndIsEndedWithinOne) {
  for (int round = 0; round < 200; ++round) {
    pace_ = WorkPace(now_ms_);
    const int64_t asked = now_ms_ + std::uniform_int_distribution<int64_t>(0, 5000)(random_);
    WorkPace::Act act{};
    while (act != WorkPace::Act::kEnd) {
      ASSERT_LE(now_ms_, asked + 1000);
      const bool is_asked = now_ms_ >= asked;
      act = tick({.is_asked = is_asked, .is_guarded = true, .has_words = round % 2 == 0});
    }
    EXPECT_GE(now_ms_, asked + 500);
  }
}

// What must be done as a whole is not cut; the half second counts from the signal, not from the guard.
TEST_F(PaceTest, NobodyIsEndedUnguarded) {
  const int64_t begin = now_ms_;
  while (now_ms_ < begin + 5000) ASSERT_NE(tick({.is_asked = true, .has_words = true}), WorkPace::Act::kEnd);
  EXPECT_EQ(tick({.is_asked = true, .is_guarded = true}), WorkPace::Act::kEnd);
}

// A process with a watch, whose work does not look at signals. What it prints goes to a file.
class WatchedProcess : public ::testing::Test {
 protected:
  void start(const std::function<void(WorkWatch&)>& work) {
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ != 0) return;
    CHECK(std::freopen(folder_.file("err").c_str(), "w", stderr) != nullptr);
    std::setvbuf(stderr, nullptr, _IONBF, 0);
    catch_interrupts();
    {
      WorkWatch watch("stopped: nothing is written");
      work(watch);
    }
    _exit(7);
  }
  ~WatchedProcess() override {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  std::string err() const {
    std::ostringstream text;
    text << std::ifstream(folder_.file("err")).rdbuf();
    return text.str();
  }
  void touch(const std::string& name) const { std::ofstream(folder_.file(name)) << name; }
  bool there_is(const std::string& name) const { return std::filesystem::exists(folder_.file(name)); }
  bool wait_for(const std::string& name) const {
    return wait_until(20s, [&] { return there_is(name); });
  }
  // The exit code, or nothing while it runs.
  std::optional<int> ended(std::chrono::milliseconds limit) {
    int status = 0;
    if (!wait_until(limit, [&] { return waitpid(child_, &status, WNOHANG) != 0; })) return std::nullopt;
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  static void work_for_ever() {
    for (;;) ::pause();
  }

  const TemporaryFolder folder_;
  pid_t child_ = 0;
};

TEST_F(WatchedProcess, IsEndedBySignalsAndLeavesNothing) {
  for (const int number : {SIGTERM, SIGINT}) {
    touch("half");
    std::filesystem::remove(folder_.file("ready"));
    start([&](WorkWatch& watch) {
      watch.at("building");
      watch.guard([&] { std::filesystem::remove(folder_.file("half")); });
      touch("ready");
      work_for_ever();
    });
    ASSERT_TRUE(wait_for("ready"));
    kill(child_, number);
    EXPECT_EQ(ended(5s), 1) << number;  // within a second: PaceTest
    EXPECT_FALSE(there_is("half")) << number;
    EXPECT_THAT(err(), HasSubstr("stopped: nothing is written\n"));
  }
}

TEST_F(WatchedProcess, ShowsWhatIsDoneNowEscaped) {
  start([&](WorkWatch& watch) {
    watch.at("reading");
    watch.at("checking \033[31m");
    work_for_ever();
  });
  EXPECT_TRUE(wait_until(20s, [&] { return err().ends_with("s\n"); }));
  EXPECT_THAT(err(), StartsWith("checking \\x1b[31m, "));
}

// It stops in order, or has something to do as a whole: the watch leaves it alone.
TEST_F(WatchedProcess, IsNotEndedWhenItIsReleased) {
  start([&](WorkWatch& watch) {
    watch.at("building");
    watch.guard([&] { touch("removed"); });
    watch.release();
    touch("ready");
    wait_until(60s, [&] { return there_is("enough"); });
  });
  ASSERT_TRUE(wait_for("ready"));
  kill(child_, SIGTERM);
  EXPECT_EQ(ended(1200ms), std::nullopt);
  touch("enough");
  EXPECT_EQ(ended(20s), 7);
  EXPECT_FALSE(there_is("removed"));
  EXPECT_THAT(err(), Not(HasSubstr("stopped")));
}

}  // namespace
}  // namespace tuner
