// The files of a database: which may be opened, what lies beside it then, and by which names it is the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "db/writer_lock.h"
#include "tests/db/store_fixture.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class StoreFiles : public ::testing::Test {
 protected:
  std::string refused(const std::string& name, StatusCode code = StatusCode::kInvalidArgument) const {
    const Result<std::unique_ptr<Store>> store = Store::open(folder_.file(name), Store::Mode::kWrite);
    EXPECT_EQ(store.status().code(), code) << store.message();
    return store.message();
  }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      names.insert(entry.path().lexically_relative(folder_.path()));
    return names;
  }

  TemporaryFolder folder_;
};

TEST_F(StoreFiles, ABackupReplacesNothingAndLeavesNothingWhenItIsStopped) {
  const auto store = must_open(folder_.file("t.db"));
  ASSERT_OK(store->add_job(job_row("j1")));
  std::ofstream(folder_.file("there")) << "mine";
  const std::set<std::string> before = names();
  Status copied = store->backup(folder_.file("there"));
  EXPECT_EQ(copied.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(copied.message(), HasSubstr("there: is there already"));
  copied = store->backup(folder_.file("no/folder"));
  EXPECT_EQ(copied.code(), StatusCode::kFailed);
  EXPECT_THAT(copied.message(), HasSubstr("cannot be written"));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(store->backup(folder_.file("copy"), stop.get_token()).code(), StatusCode::kAborted);
  EXPECT_EQ(names(), before);
}

// What a program that has it open keeps in the log alone, a copy of the file lacks.
TEST_F(StoreFiles, ACopyWithoutItsLogIsRefusedAndNotCalledEmpty) {
  const auto store = must_open(folder_.file("t.db"));
  ASSERT_OK(store->add_job(job_row("j1")));
  ASSERT_TRUE(fs::exists(folder_.file("t.db-wal")));
  fs::copy_file(folder_.file("t.db"), folder_.file("copy"));
  EXPECT_THAT(refused("copy"), HasSubstr("its log (-wal) is missing"));
  const Result<std::unique_ptr<Store>> read = Store::open(folder_.file("copy"), Store::Mode::kRead);
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(read.message(), HasSubstr("tuner admin backup"));
  fs::copy_file(folder_.file("t.db-wal"), folder_.file("copy-wal"));
  EXPECT_EQ(must_open(folder_.file("copy"))->job("j1")->id, "j1");
}

// Numbers of statfs(2).
TEST_F(StoreFiles, FilesystemsOfOtherHostsAreKnownAndLocalOnesAreNot) {
  for (const uint32_t magic : {0x6969u, 0x65735546u, 0x19830326u, 0x7461636fu, 0xaad7aaeau, 0xbd00bd0u})
    EXPECT_NE(db::shared_filesystem(magic), nullptr) << magic;
  // ext4, XFS, btrfs, tmpfs, overlayfs, ZFS, F2FS
  for (const uint32_t magic :
       {0xef53u, 0x58465342u, 0x9123683eu, 0x01021994u, 0x794c7630u, 0x2fc12fc1u, 0xf2f52010u})
    EXPECT_EQ(db::shared_filesystem(magic), nullptr) << magic;
}

TEST_F(StoreFiles, AFileThatIsNoDatabaseGetsNoLockBesideIt) {
  std::ofstream(folder_.file("hostname")) << "a line of text\n";
  EXPECT_THAT(refused("hostname"), HasSubstr("hostname: is no database of this program"));
  EXPECT_EQ(Store::open(folder_.file("hostname"), Store::Mode::kRead).status().code(),
            StatusCode::kInvalidArgument);
  ASSERT_EQ(::mkfifo(folder_.file("fifo").c_str(), 0600), 0);
  EXPECT_THAT(refused("fifo"), HasSubstr("is no regular file, expected a database file"));
  fs::create_symlink("loop", folder_.file("loop"));
  EXPECT_THAT(refused("loop"), HasSubstr("Too many levels of symbolic links"));
  EXPECT_THAT(names(), ElementsAre("fifo", "hostname", "loop"));
}

// The first page is SQLite's and the others are not: that shows only when the file is read.
TEST_F(StoreFiles, ADamagedDatabaseIsLeftAsItWasAndAlone) {
  must_open(folder_.file("db"));
  fs::remove(folder_.file("db-lock"));
  const auto size = fs::file_size(folder_.file("db"));
  {
    std::fstream file(folder_.file("db"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file << std::string(size - 100, '\x5a');
  }
  const Result<std::unique_ptr<Store>> store = Store::open(folder_.file("db"), Store::Mode::kWrite);
  EXPECT_EQ(store.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Store::open(folder_.file("db"), Store::Mode::kRead).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_THAT(store.message(), HasSubstr("db: "));
  EXPECT_THAT(names(), ElementsAre("db"));
  EXPECT_EQ(fs::file_size(folder_.file("db")), size);
}

TEST_F(StoreFiles, OnlyTheFolderOfTheDefaultDatabaseIsMade) {
  EXPECT_THAT(refused("typo/dir/db"), EndsWith("the folder " + folder_.file("typo") +
                                               " does not exist. Make it, or give another file with --db"));
  EXPECT_THAT(names(), ElementsAre());
  ASSERT_EQ(::setenv("XDG_DATA_HOME", folder_.file("home").c_str(), 1), 0);
  must_open(default_db_path());
  EXPECT_TRUE(fs::exists(folder_.file("home/tuner/tuner.db")));
  // A relative path in a variable counts for nothing, as the XDG rule has it.
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  ASSERT_EQ(::setenv("XDG_DATA_HOME", "data", 1), 0);
  ASSERT_EQ(::setenv("HOME", "/home/me", 1), 0);
  EXPECT_EQ(default_db_path(), "/home/me/.local/share/tuner/tuner.db");
  ASSERT_EQ(::setenv("HOME", "me", 1), 0);
  EXPECT_EQ(default_db_path(), "tuner.db");
  ASSERT_EQ(::setenv("HOME", home.c_str(), 1), 0);
}

TEST_F(StoreFiles, ALinkIsTheDatabaseItLeadsTo) {
  fs::create_directory(folder_.file("real"));
  fs::create_symlink("real/db", folder_.file("link"));  // which is not there yet
  {
    const auto store = must_open(folder_.file("link"));
    EXPECT_TRUE(fs::exists(folder_.file("real/db-lock")));
    EXPECT_FALSE(fs::exists(folder_.file("link-lock")));
    EXPECT_THAT(refused("real/db", StatusCode::kAborted), HasSubstr("is open for writing already: held by"));
    EXPECT_TRUE(db::has_writer(folder_.file("link")));
    EXPECT_TRUE(db::has_writer(folder_.file("real/db")));
  }
  EXPECT_FALSE(db::has_writer(folder_.file("link")));
  const auto store = must_open(folder_.file("real/db"));
  EXPECT_THAT(refused("link", StatusCode::kAborted), HasSubstr("is open for writing already: held by"));
}

TEST_F(StoreFiles, ADatabaseOfTwoNamesIsRefused) {
  must_open(folder_.file("db"));
  fs::create_hard_link(folder_.file("db"), folder_.file("second"));
  EXPECT_THAT(refused("second"), HasSubstr("has 2 names (hard links), expected one"));
  EXPECT_THAT(refused("db"), HasSubstr("has 2 names"));
  fs::remove(folder_.file("second"));
  must_open(folder_.file("db"));
}

TEST_F(StoreFiles, LookingForAWriterKeepsNoWriterAway) {
  const std::string lock = folder_.file("db-lock");
  EXPECT_FALSE(db::WriterLock::is_held(lock));
  EXPECT_FALSE(fs::exists(lock));
  must_open(folder_.file("db"));
  std::atomic<bool> stop = false;
  std::thread looker([&] {
    while (!stop) (void)db::WriterLock::is_held(lock);
  });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(db::WriterLock::acquire(lock).is_ok()) << i;
  stop = true;
  looker.join();
}

}  // namespace
}  // namespace tuner
