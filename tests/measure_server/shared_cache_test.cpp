// The cache that workers share: the least recently used go first, and what was used just now never.
#include "measure_server/worker/shared_cache.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace tuner {
namespace {

namespace fs = std::filesystem;
using std::chrono::minutes;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kBlock = 4096;

class SharedCache : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(dir_ / "by_source"); }

  // An artifact of two files of a block each and its entry, last used `age` ago.
  void add(const std::string& digest, minutes age) {
    for (const char* ending : {".so", ".json"}) write(dir_ / (digest + ending), age);
    write(dir_ / "by_source" / ("from_" + digest), age);
  }
  static void write(const fs::path& path, minutes age) {
    std::ofstream(path) << std::string(kBlock, 'x');
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  }
  std::vector<std::string> names(const fs::path& folder) const {
    std::vector<std::string> found;
    for (const auto& file : fs::directory_iterator(folder))
      if (file.is_regular_file()) found.push_back(file.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }

  // Inputs and reference answer of two blocks and the file that says they are whole.
  void add_reference(const std::string& key, minutes age) {
    const fs::path folder = root_ / "references" / key;
    fs::create_directories(folder);
    for (const char* name : {"a.bin", "out.ref"}) write(folder / name, minutes(1000));
    write(folder / "complete", age);
  }
  std::vector<std::string> references() const {
    std::vector<std::string> found;
    for (const auto& folder : fs::directory_iterator(root_ / "references"))
      found.push_back(folder.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }

  const TemporaryFolder temporary_;
  const fs::path root_ = temporary_.path(), dir_ = root_ / "artifacts";
};

TEST_F(SharedCache, BelowTheLimitNothingGoes) {
  add("a", minutes(300));
  add("b", minutes(200));
  EXPECT_EQ(prune_cache(root_, {.most_bytes = 6 * kBlock}), 6 * kBlock);
  EXPECT_THAT(names(dir_), ElementsAre("a.json", "a.so", "b.json", "b.so"));
}

TEST_F(SharedCache, TheLeastRecentlyUsedGoUntilThreeQuartersAreLeft) {
  add("a", minutes(100));
  add("b", minutes(400));
  add("c", minutes(300));
  add("d", minutes(200));
  // 12 blocks where 8 may be: 6 are left, a and d.
  EXPECT_EQ(prune_cache(root_, {.most_bytes = 8 * kBlock}), 6 * kBlock);
  EXPECT_THAT(names(dir_), ElementsAre("a.json", "a.so", "d.json", "d.so"));
  EXPECT_THAT(names(dir_ / "by_source"), ElementsAre("from_a", "from_d"));
}

TEST_F(SharedCache, WhatWasUsedIsYoungAgain) {
  add("a", minutes(400));
  add("b", minutes(300));
  touch_artifact(dir_, "a", dir_ / "by_source" / "from_a");
  prune_cache(root_, {.most_bytes = 4 * kBlock});
  EXPECT_THAT(names(dir_), ElementsAre("a.json", "a.so"));
  EXPECT_THAT(names(dir_ / "by_source"), ElementsAre("from_a"));
}

TEST_F(SharedCache, WhatMayBeWaitingForItsRunStaysWhateverItsSize) {
  add("a", minutes(1));
  add("b", minutes(2));
  EXPECT_EQ(prune_cache(root_, {.most_bytes = kBlock, .kept_for = minutes(5)}), 6 * kBlock);
  EXPECT_THAT(names(dir_), ElementsAre("a.json", "a.so", "b.json", "b.so"));
}

TEST_F(SharedCache, AFolderThatIsNotThereIsEmpty) {
  EXPECT_EQ(prune_cache(root_ / "none", CacheLimits()), 0);
  EXPECT_THAT(names(dir_), IsEmpty());
}

TEST_F(SharedCache, EverythingCountsAgainstOneBoundAndTheOldestGoesWhateverItIs) {
  add("a", minutes(100));
  add_reference("young", minutes(50));
  add_reference("old", minutes(200));
  fs::create_directories(root_ / "cubins");
  write(root_ / "cubins" / "k.cubincache", minutes(300));
  // 3 + 3 + 3 + 1 blocks; 8 may be, 6 are left.
  EXPECT_EQ(prune_cache(root_, {.most_bytes = 8 * kBlock}), 6 * kBlock);
  EXPECT_THAT(references(), ElementsAre("young"));
  EXPECT_THAT(names(root_ / "cubins"), IsEmpty());
  EXPECT_THAT(names(dir_), ElementsAre("a.json", "a.so"));
}

TEST_F(SharedCache, AReferenceThatWasUsedIsYoungAgain) {
  add_reference("used", minutes(400));
  add_reference("other", minutes(300));
  touch_reference(root_ / "references" / "used");
  prune_cache(root_, {.most_bytes = 4 * kBlock});
  EXPECT_THAT(references(), ElementsAre("used"));
}

TEST_F(SharedCache, AKeeperLooksWhenMuchWasAddedOrNobodyLookedForLong) {
  const CacheLimits limits{.most_bytes = 4 * kBlock};
  const auto full = [&] {
    add("a", minutes(300));
    add("b", minutes(200));
  };
  full();
  CacheKeeper keeper;
  keeper.keep(root_, limits);
  EXPECT_THAT(names(dir_), testing::SizeIs(4)) << "nothing was added";
  keeper.added(1);
  keeper.keep(root_, limits);
  EXPECT_THAT(names(dir_), ElementsAre("b.json", "b.so")) << "nobody has looked before";
  full();
  keeper.added(1);
  keeper.keep(root_, limits);
  EXPECT_THAT(names(dir_), testing::SizeIs(4)) << "somebody has just looked";
  CacheKeeper other;
  other.added(kBlock);
  other.keep(root_, limits);
  EXPECT_THAT(names(dir_), ElementsAre("b.json", "b.so")) << "it has added a quarter of the limit";
  full();
  fs::last_write_time(root_ / "pruned", fs::file_time_type::clock::now() - minutes(11));
  keeper.keep(root_, limits);
  EXPECT_THAT(names(dir_), ElementsAre("b.json", "b.so")) << "the stamp is old";
}

TEST_F(SharedCache, WorkFoldersThatNobodyUsesAndThatOweNothingGo) {
  constexpr minutes kOld{60 * 24 * 30};
  const auto work = [&](const std::string& name, minutes age, std::string_view owed) {
    fs::create_directories(root_ / name);
    std::ofstream(root_ / name / "results.spool") << owed;
    std::ofstream(root_ / name / "worker.log") << "a line";
    for (const char* file : {"results.spool", "worker.log", ""})
      fs::last_write_time(root_ / name / file, fs::file_time_type::clock::now() - age);
  };
  work("worker-old", kOld, "");
  work("worker-owes", kOld, "a result");
  work("worker-young", minutes(5), "");
  work("shared-old", kOld, "");
  remove_old_work_folders(root_);
  EXPECT_FALSE(fs::exists(root_ / "worker-old"));
  EXPECT_TRUE(fs::exists(root_ / "worker-owes"));
  EXPECT_TRUE(fs::exists(root_ / "worker-young"));
  EXPECT_TRUE(fs::exists(root_ / "shared-old"));
}

}  // namespace
}  // namespace tuner
