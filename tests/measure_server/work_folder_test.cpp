// A worker's own folder: one owner at a time, and an id that stays over restarts and that nobody else has.
#include "measure_server/worker/work_folder.h"
#include "measure_server/worker/worker_identity.h"
#include "tests/support/refused_call.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace tuner {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::MatchesRegex;

class WorkFolderTest : public testing::Test {
 protected:
  static std::string id_in(const WorkFolder& folder, const std::string& host = "vm") {
    std::string warning;
    const std::string id = folder.worker_id(host, warning);
    EXPECT_EQ(warning, "");
    return id;
  }
  // A life of a worker, ended by the kernel as a kill ends it.
  std::string id_of_a_life(const std::string& host = "vm") const {
    Result<WorkFolder> folder = WorkFolder::open(path_, milliseconds(0));
    EXPECT_TRUE(folder.is_ok()) << folder.message();
    return folder.is_ok() ? id_in(*folder, host) : "";
  }

  const TemporaryFolder temporary_;
  const std::string path_ = temporary_.file("worker");
};

// Two nodes with one credentials file have a folder each.
TEST_F(WorkFolderTest, WorkersOfAFleetHaveIdsOfTheirOwnBelowItsName) {
  const Result<WorkFolder> one = WorkFolder::open(path_, milliseconds(0));
  const Result<WorkFolder> two = WorkFolder::open(temporary_.file("other"), milliseconds(0));
  ASSERT_TRUE(one.is_ok() && two.is_ok());
  const std::string first = worker_id_in(*one, "n1", "", "nodes.*"),
                    second = worker_id_in(*two, "n1", "", "nodes.*");
  EXPECT_THAT(first, MatchesRegex("nodes\\.n1-[0-9a-f]+"));
  EXPECT_THAT(second, MatchesRegex("nodes\\.n1-[0-9a-f]+"));
  EXPECT_NE(first, second);
  EXPECT_EQ(worker_id_in(*one, "n1", "", "nodes.*"), first) << "over restarts";
  EXPECT_EQ(worker_id_in(*one, "n1", "", "gpu1"), "gpu1");
  EXPECT_EQ(worker_id_in(*one, "n1", "given", "nodes.*"), "given");
}

TEST_F(WorkFolderTest, AnIdIsMadeOnceAndStaysOverRestarts) {
  const std::string id = id_of_a_life();
  EXPECT_THAT(id, MatchesRegex("vm-[0-9a-f]{8}"));
  EXPECT_EQ(id_of_a_life(), id);
  EXPECT_EQ(id_of_a_life(), id);
  EXPECT_NE(id_of_a_life("other"), id) << "a folder that was copied to another host";
}

TEST_F(WorkFolderTest, AFileThatHoldsNoIdIsReplaced) {
  const std::string id = id_of_a_life();
  for (const char* text :
       {"", "vm", "vm-", "vm-1234567", "vm-1234567g", "vm-123456789", "x-12345678", "\x1b[2J"}) {
    std::ofstream(path_ + "/worker_id") << text;
    const std::string fresh = id_of_a_life();
    EXPECT_THAT(fresh, MatchesRegex("vm-[0-9a-f]{8}")) << text;
    EXPECT_EQ(id_of_a_life(), fresh);
  }
}

TEST_F(WorkFolderTest, AGivenFolderInUseIsRefusedWithTheOwnersNumber) {
  const Result<WorkFolder> owner = WorkFolder::open(path_, milliseconds(0));
  ASSERT_TRUE(owner.is_ok()) << owner.message();
  const Result<WorkFolder> second = WorkFolder::open(path_, milliseconds(50));
  ASSERT_FALSE(second.is_ok());
  EXPECT_EQ(second.status().code(), StatusCode::kInvalidArgument) << "exit status 2";
  EXPECT_THAT(second.message(), HasSubstr(path_));
  EXPECT_THAT(second.message(), HasSubstr(str("process ", ::getpid())));
  EXPECT_THAT(second.message(), HasSubstr("--work-dir"));
}

TEST_F(WorkFolderTest, WorkersOnOneHostTakeTheNextFolderAndHaveIdsOfTheirOwn) {
  std::vector<WorkFolder> workers;
  std::set<std::string> ids, paths;
  for (int i = 0; i < 3; ++i) {
    Result<WorkFolder> folder = WorkFolder::open_first_free(path_);
    ASSERT_TRUE(folder.is_ok()) << folder.message();
    ids.insert(id_in(*folder));
    paths.insert(folder->path());
    workers.push_back(*std::move(folder));
  }
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(paths, (std::set<std::string>{path_, path_ + "-2", path_ + "-3"}));
  const std::string second = id_in(workers[1]);
  workers.erase(workers.begin() + 1);
  const Result<WorkFolder> restarted = WorkFolder::open_first_free(path_);
  ASSERT_TRUE(restarted.is_ok()) << restarted.message();
  EXPECT_EQ(restarted->path(), path_ + "-2");
  EXPECT_EQ(id_in(*restarted), second) << "the second worker, back again";
}

TEST_F(WorkFolderTest, AFileSystemWithoutLocksIsNoWorkerInTheWay) {
  EXPECT_TRUE(holds_where_refused(SYS_flock, ENOLCK, [&] {
    const std::string path = temporary_.file("nfs");
    const std::string text = "work folder " + path + ": lock file " + path +
                             "/lock: cannot be locked on this file system: No locks available; choose "
                             "another with --work-dir";
    for (const auto& folder :
         {WorkFolder::open(path, std::chrono::seconds(60)), WorkFolder::open_first_free(path)})
      if (folder.status().code() != StatusCode::kInvalidArgument || folder.message() != text) return false;
    return !std::filesystem::exists(path + "-2") && work_folder_in_use(path);  // and it is not removed as old
  }));
}

TEST_F(WorkFolderTest, AFolderInUseIsKnownAsSuch) {
  EXPECT_FALSE(work_folder_in_use(path_));
  {
    const Result<WorkFolder> folder = WorkFolder::open(path_, milliseconds(0));
    EXPECT_TRUE(work_folder_in_use(path_));
  }
  EXPECT_FALSE(work_folder_in_use(path_));
}

TEST_F(WorkFolderTest, AnIdThatCannotBeKeptServesThisLifeAndSaysSo) {
  const Result<WorkFolder> folder = WorkFolder::open(path_, milliseconds(0));
  ASSERT_TRUE(folder.is_ok()) << folder.message();
  std::filesystem::create_directories(path_ + "/worker_id/in_the_way");
  std::string warning;
  EXPECT_THAT(folder->worker_id("vm", warning), MatchesRegex("vm-[0-9a-f]{8}"));
  EXPECT_THAT(warning, HasSubstr("another id after a restart"));
}

}  // namespace
}  // namespace tuner
