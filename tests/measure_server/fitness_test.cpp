// A worker that cannot work says so, gives its leases back, and goes on by itself.
#include "measure_server/worker/fitness.h"
#include "measure_server/worker/work_folder.h"
#include "measure_server/worker/worker_core.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace tuner {
namespace {

using testing::HasSubstr;

int64_t test_now_ms = 0;

class FitnessTest : public testing::Test {
 protected:
  void SetUp() override {
    spool_ = *Spool::open(temporary_.file("results.spool"));
    core_ = std::make_unique<WorkerCore>(WorkerCore::Options{}, *spool_);
    fitness_ = std::make_unique<Fitness>(
        *core_, Fitness::Options{.check = [this] { return check_(); },
                                 .random = [] { return 0.0; },  // pauses of a millisecond
                                 .now_ms = [] { return test_now_ms; }});
  }
  std::string unfit() const { return core_->make_request(0).unfit(); }

  const TemporaryFolder temporary_;
  std::function<Status()> check_ = [] { return Status::ok(); };
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<WorkerCore> core_;
  std::unique_ptr<Fitness> fitness_;
};

TEST_F(FitnessTest, TroubleMakesItUnfitAndACheckThatSucceedsFitAgain) {
  fitness_->unfit("the disk is full");
  EXPECT_EQ(unfit(), "the disk is full");
  check_ = [] { return failed("still full"); };
  fitness_->look();
  EXPECT_EQ(unfit(), "still full");
  check_ = [] { return Status::ok(); };
  fitness_->look();
  EXPECT_EQ(unfit(), "");
}

TEST_F(FitnessTest, TroubleThatCameDuringACheckIsNotOverlooked) {
  fitness_->unfit("the disk is full");
  check_ = [this] {
    fitness_->unfit("the runner died");
    return Status::ok();
  };
  fitness_->look();
  EXPECT_EQ(unfit(), "the runner died");
}

TEST_F(FitnessTest, ItLooksUntilItCanWorkAndStopsWhenTold) {
  std::atomic<int> looks{0};
  check_ = [&] { return ++looks < 5 ? failed("not yet") : Status::ok(); };
  std::thread tending([&] { fitness_->tend(); });
  fitness_->unfit("the disk is full");
  wait_until(std::chrono::seconds(30), [&] { return unfit().empty(); });
  EXPECT_EQ(unfit(), "");
  EXPECT_EQ(looks, 5);
  fitness_->stop();
  tending.join();
}

// Issue 18, "What was seen", 6.
TEST_F(FitnessTest, Seen6AWorkerWithAFullDiskGivesBackItsLeasesInsteadOfLosingThem) {
  v1::SyncReply reply;
  for (int i = 0; i < 4; ++i) {
    v1::Lease* lease = reply.add_leases();
    lease->set_trial_id(str("t", i));
    lease->set_attempt(1);
  }
  core_->apply(reply);
  const auto building = core_->next_to_build();
  fitness_->unfit("the disk is full");
  core_->give_back(*building);  // its artifact could not be written
  const v1::SyncRequest request = core_->make_request(0);
  EXPECT_EQ(request.returned_size(), 4);
  EXPECT_EQ(request.held_size(), 0);
  EXPECT_EQ(request.results_size(), 0) << "18 of 100 trials were device_lost before";
  EXPECT_EQ(request.free_slots(), 0);
}

TEST(DiskTakes, AFolderThatTakesFilesAndIsLeftAsItWas) {
  const TemporaryFolder temporary;
  EXPECT_TRUE(disk_takes(temporary.path()).is_ok());
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
}

TEST(DiskTakes, AFolderThatIsGoneIsTrouble) {
  const Status status = disk_takes("/nowhere/at/all");
  EXPECT_FALSE(status.is_ok());
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/at/all"));
}

// A file system of its own, 64 KiB, in a mount namespace of a child: full for real.
TEST(DiskTakes, AFullDiskIsTroubleUntilItHasRoomAgain) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path();
  constexpr int kCannotMount = 77;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tuner-test", folder.c_str(), "tmpfs", 0, "size=64k") != 0)
      ::_exit(kCannotMount);
    const bool roomy = disk_takes(folder, 16 << 10).is_ok();
    std::ofstream(folder + "/filler") << std::string(1 << 20, 'x');
    const Status full = disk_takes(folder, 16 << 10);
    const bool said = full.message().find("No space left on device") != std::string::npos;
    std::filesystem::remove(folder + "/filler");
    const bool again = disk_takes(folder, 16 << 10).is_ok();
    ::_exit(roomy && said && again ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotMount)
    GTEST_SKIP() << "no tmpfs can be mounted here (needs root)";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace tuner
