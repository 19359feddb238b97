// One timed run on a core at a time, among all processes of a host: who holds it, who waits, who is next.
#include "measure_server/runner/device_lock.h"
#include "tests/support/refused_call.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

// What the processes of a test share.
struct Shared {
  std::atomic<int> inside{0}, together{0}, turns{0}, ready{0};
  std::atomic<int> longest_row{0};  // turns of one process in a row while another waited
  std::atomic<int> last{-1}, row{0};
};

class DeviceLock : public testing::Test {
 protected:
  void SetUp() override {
    void* const page =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    shared_ = new (page) Shared();
  }
  void TearDown() override {
    for (const pid_t child : children_) ::kill(child, SIGKILL);
    for (const pid_t child : children_) ::waitpid(child, nullptr, 0);
    ::munmap(shared_, sizeof(Shared));
  }
  // A process that does `work` and ends with its result.
  pid_t process(const std::function<int()>& work) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(work());
    children_.push_back(child);
    return child;
  }
  int result_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    std::erase(children_, child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Takes the devices `n` times and looks whether anybody else has them.
  int take_turns(int number, const Devices& devices, int n) {
    DeviceLocks locks(folder_);
    ++shared_->ready;
    for (int i = 0; i < n; ++i) {
      const auto held = locks.take(devices, seconds(60));
      if (!held.is_ok()) return 1;
      if (++shared_->inside > 1) ++shared_->together;
      const bool same = shared_->last.exchange(number) == number;
      shared_->row = same && shared_->ready > 1 ? shared_->row + 1 : 1;
      if (shared_->ready > 1 && shared_->row > shared_->longest_row)
        shared_->longest_row = shared_->row.load();
      let_pass(milliseconds(3));
      if (shared_->inside > 1) ++shared_->together;
      --shared_->inside;
      ++shared_->turns;
    }
    --shared_->ready;
    return 0;
  }
  // A process that has the devices until it is killed.
  pid_t hold(const Devices& devices) {
    const pid_t holder = process([&] {
      DeviceLocks locks(folder_);
      const auto held = locks.take(devices, seconds(10));
      ++shared_->ready;
      for (;;) ::pause();
      return 0;
    });
    EXPECT_TRUE(wait_until([&] { return shared_->ready == 1; }));
    return holder;
  }
  static bool wait_until(const std::function<bool()>& done) { return tuner::wait_until(seconds(30), done); }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.file("locks");
  Shared* shared_ = nullptr;
  std::vector<pid_t> children_;
};

// Issue 18, "What was seen", 5.
TEST_F(DeviceLock, Seen5TwoWorkersOnOneCoreNeverTimeAtOnceAndTakeTurns) {
  constexpr int kTurns = 60;
  const pid_t a = process([&] { return take_turns(1, {.cpus = {0}}, kTurns); });
  const pid_t b = process([&] { return take_turns(2, {.cpus = {0}}, kTurns); });
  EXPECT_EQ(result_of(a), 0);
  EXPECT_EQ(result_of(b), 0);
  EXPECT_EQ(shared_->turns, 2 * kTurns);
  EXPECT_EQ(shared_->together, 0);
  EXPECT_LE(shared_->longest_row, kTurns / 2) << "one of two did not let the other in";
}

TEST_F(DeviceLock, SetsThatShareACoreExcludeEachOtherInWhateverOrderTheyAreNamed) {
  const pid_t a = process([&] { return take_turns(1, {.cpus = {0, 1}}, 30); });
  const pid_t b = process([&] { return take_turns(2, {.cpus = {2, 1}}, 30); });
  const pid_t c = process([&] { return take_turns(3, {.cpus = {1, 0, 2}}, 30); });
  EXPECT_EQ(result_of(a), 0);
  EXPECT_EQ(result_of(b), 0);
  EXPECT_EQ(result_of(c), 0);
  EXPECT_EQ(shared_->together, 0);
}

TEST_F(DeviceLock, DisjointSetsRunAtOnce) {
  DeviceLocks ours(folder_), theirs(folder_);
  const auto first = ours.take({.cpus = {0}, .gpu = "GPU-1"}, milliseconds(0));
  ASSERT_TRUE(first.is_ok()) << first.message();
  EXPECT_TRUE(theirs.take({.cpus = {1}, .gpu = "GPU-2"}, milliseconds(0)).is_ok());
  EXPECT_FALSE(theirs.take({.cpus = {1}, .gpu = "GPU-1"}, milliseconds(0)).is_ok());
  EXPECT_TRUE(theirs.take({.cpus = {1}}, milliseconds(0)).is_ok()) << "what a failed try had is free again";
}

// A run that is not pinned may be anywhere.
TEST_F(DeviceLock, WithoutCpusAllThatTheProcessMayUseAreTaken) {
  DeviceLocks ours(folder_), theirs(folder_);
  const auto held = ours.take({}, milliseconds(0));
  ASSERT_TRUE(held.is_ok()) << held.message();
  cpu_set_t usable;
  ASSERT_EQ(::sched_getaffinity(0, sizeof usable, &usable), 0);
  int tried = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && tried < 64; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    ++tried;
    EXPECT_FALSE(theirs.take({.cpus = {cpu}}, milliseconds(0)).is_ok()) << cpu;
  }
  EXPECT_GE(tried, 1);
}

TEST_F(DeviceLock, AWaitHasAnEndAndNamesWhoHasTheCore) {
  const pid_t holder = process([&] {
    DeviceLocks locks(folder_);
    const auto held = locks.take({.cpus = {3}}, seconds(10));
    ++shared_->ready;
    ::pause();
    return 0;
  });
  ASSERT_TRUE(wait_until([&] { return shared_->ready == 1; }));
  DeviceLocks locks(folder_);
  const auto begin = steady_clock::now();
  const auto held = locks.take({.cpus = {3}}, milliseconds(200));
  ASSERT_FALSE(held.is_ok());
  EXPECT_GE(steady_clock::now() - begin, milliseconds(200));
  EXPECT_TRUE(is_device_busy(held.status())) << held.message();
  EXPECT_THAT(held.message(), HasSubstr(str("process ", holder)));
  EXPECT_THAT(held.message(), HasSubstr("cpu-3"));
  EXPECT_FALSE(is_device_busy(unavailable("the runner died")));
}

TEST_F(DeviceLock, AKilledHolderFreesItsCore) {
  const pid_t holder = process([&] {
    DeviceLocks locks(folder_);
    const auto held = locks.take({.cpus = {0, 1}, .gpu = "GPU-1"}, seconds(10));
    ++shared_->ready;
    ::pause();
    return 0;
  });
  ASSERT_TRUE(wait_until([&] { return shared_->ready == 1; }));
  DeviceLocks locks(folder_);
  EXPECT_FALSE(locks.take({.cpus = {1}}, milliseconds(0)).is_ok());
  ::kill(holder, SIGKILL);
  EXPECT_TRUE(locks.take({.cpus = {0, 1}, .gpu = "GPU-1"}, seconds(30)).is_ok());
}

TEST_F(DeviceLock, AWaitCanBeGivenUp) {
  DeviceLocks ours(folder_), theirs(folder_);
  const auto held = ours.take({.cpus = {0}}, milliseconds(0));
  int asked = 0;
  const auto given_up = theirs.take({.cpus = {0}}, seconds(60), [&] { return ++asked == 3; });
  EXPECT_EQ(given_up.status().code(), StatusCode::kAborted);
  EXPECT_EQ(asked, 3);
}

TEST_F(DeviceLock, FilesAreForAllUsersWhateverTheUmask) {
  const mode_t before = ::umask(0077);
  DeviceLocks locks(folder_);
  EXPECT_TRUE(locks.take({.cpus = {0}}, milliseconds(0)).is_ok());
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 01777u);
  ASSERT_EQ(::stat((folder_ + "/cpu-0.lock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0666u);
}

TEST_F(DeviceLock, AHostThatRefusesTheFolderGoesOnWithoutLocksAndSaysWhy) {
  std::ofstream(folder_) << "a file in the way";
  DeviceLocks locks(folder_);
  EXPECT_THAT(locks.unusable(), HasSubstr(folder_));
  EXPECT_TRUE(locks.take({.cpus = {0}}, milliseconds(0)).is_ok());
  std::filesystem::remove(folder_);
  std::filesystem::create_directory(temporary_.file("target"));
  std::filesystem::create_symlink(temporary_.file("target"), folder_);
  EXPECT_THAT(DeviceLocks(folder_).unusable(), HasSubstr("is no folder")) << "a link is not followed";
}

// It may be another account's, so it can be read only: opening a FIFO for reading waits for a writer.
// Others cannot be kept away there: it is said at once, and nobody is waited for.
TEST_F(DeviceLock, AFileSystemWithoutLocksIsSaidAndNobodyIsWaitedFor) {
  EXPECT_TRUE(holds_where_refused(SYS_flock, ENOLCK, [&] {
    DeviceLocks locks(folder_);
    int asked = 0;
    const auto held = locks.take({.cpus = {0, 1}, .gpu = "GPU-1"}, seconds(60), [&] { return ++asked > 0; });
    const std::string text =
        "lock file " + folder_ + "/cpu-0.turnstile: cannot be locked on this file system: ";
    return held.is_ok() && asked == 0 && locks.unusable() == text + "No locks available";
  }));
}

TEST_F(DeviceLock, B7AFifoInPlaceOfALockFileIsSaidAndHangsNobody) {
  ASSERT_EQ(::mkdir(folder_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(temporary_.path().c_str(), 0755), 0);
  ASSERT_EQ(::mkfifo((folder_ + "/cpu-0.lock").c_str(), 0444), 0);
  const pid_t worker = process([&] {
    ::alarm(20);
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 2;
    DeviceLocks locks(folder_);
    if (!locks.take({.cpus = {0}}, seconds(5)).is_ok()) return 3;
    return locks.unusable().find("cpu-0.lock: is no regular file; remove it") == std::string::npos ? 4 : 0;
  });
  EXPECT_EQ(result_of(worker), 0);
}

TEST_F(DeviceLock, B7AWaitOfSecondsNamesWhoHasTheCore) {
  const pid_t holder = hold({.cpus = {3}});
  DeviceLocks locks(folder_);
  std::vector<std::string> said;
  const auto begin = steady_clock::now();
  const auto held = locks.take(
      {.cpus = {3}}, seconds(60), [&] { return !said.empty(); },
      [&](const std::string& line) { said.push_back(line); });
  EXPECT_EQ(held.status().code(), StatusCode::kAborted);
  EXPECT_LT(steady_clock::now() - begin, seconds(20));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr(str("process ", holder, " (")));
  EXPECT_THAT(said[0], HasSubstr("has cpu-3; waiting for it, up to 60 s"));
}

TEST_F(DeviceLock, B7AStoppedHolderIsNotWaitedForAndThoseBehindItStillTakeTurns) {
  const pid_t holder = hold({.cpus = {0}});
  ::kill(holder, SIGSTOP);
  DeviceLocks ours(folder_), theirs(folder_);
  std::string said;
  const auto say = [&](const std::string& line) { said += line; };
  {
    const auto held = ours.take({.cpus = {0}}, seconds(60), {}, say);
    ASSERT_TRUE(held.is_ok()) << held.message();
    EXPECT_THAT(said, HasSubstr(str("process ", holder, " (")));
    EXPECT_THAT(said,
                HasSubstr(str("is stopped; going on without it. Continue it (kill -CONT ", holder, ")")));
    EXPECT_FALSE(theirs.take({.cpus = {0}}, DeviceLocks::kStoppedFor + seconds(2)).is_ok());
  }
  const auto begin = steady_clock::now();
  EXPECT_TRUE(theirs.take({.cpus = {0}}, seconds(60)).is_ok());
  EXPECT_TRUE(ours.take({.cpus = {0}}, seconds(60)).is_ok());
  EXPECT_LT(steady_clock::now() - begin, DeviceLocks::kStoppedFor) << "who was waited for once is known";
  ::kill(holder, SIGCONT);
  const auto runs_again = ours.take({.cpus = {0}}, milliseconds(500));
  EXPECT_TRUE(is_device_busy(runs_again.status())) << "it has its core again";
}

// A worker that is stopped may have a runner that times its candidate.
TEST_F(DeviceLock, B7AStoppedHolderWhoseRunnerGoesOnIsWaitedFor) {
  const pid_t holder = process([&] {
    DeviceLocks locks(folder_);
    const auto held = locks.take({.cpus = {0}}, seconds(5));
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (::getppid() > 0) {
      }
    }
    ++shared_->ready;
    for (;;) ::pause();
    return 0;
  });
  EXPECT_TRUE(wait_until([&] { return shared_->ready == 1; }));
  ::kill(holder, SIGSTOP);
  DeviceLocks locks(folder_);
  const auto held = locks.take({.cpus = {0}}, DeviceLocks::kStoppedFor + seconds(3));
  EXPECT_TRUE(is_device_busy(held.status()));
}

TEST_F(DeviceLock, FilesThatSomebodyCleanedAwayAreMadeAgain) {
  DeviceLocks ours(folder_), theirs(folder_);
  EXPECT_TRUE(ours.take({.cpus = {0}}, milliseconds(0)).is_ok());
  EXPECT_TRUE(theirs.take({.cpus = {0}}, milliseconds(0)).is_ok());
  std::filesystem::remove(folder_ + "/cpu-0.lock");
  const auto held = ours.take({.cpus = {0}}, milliseconds(0));
  EXPECT_FALSE(theirs.take({.cpus = {0}}, milliseconds(0)).is_ok()) << "they lock the same new file";
}

}  // namespace
}  // namespace tuner
