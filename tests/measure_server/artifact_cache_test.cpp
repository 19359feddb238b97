// The artifacts of a work folder: the least recently used go first, and what was used just now never.
#include "measure_server/worker/artifact_cache.h"

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

class ArtifactCache : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "artifact_cache_test_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
    fs::create_directories(dir_ / "by_source");
  }
  void TearDown() override { fs::remove_all(dir_); }

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

  fs::path dir_;
};

TEST_F(ArtifactCache, BelowTheLimitNothingGoes) {
  add("a", minutes(300));
  add("b", minutes(200));
  EXPECT_EQ(prune_artifacts(dir_, {.most_bytes = 6 * kBlock}), 6 * kBlock);
  EXPECT_THAT(names(dir_), ElementsAre("a.json", "a.so", "b.json", "b.so"));
}

TEST_F(ArtifactCache, TheLeastRecentlyUsedGoUntilThreeQuartersAreLeft) {
  add("a", minutes(100));
  add("b", minutes(400));
  add("c", minutes(300));
  add("d", minutes(200));
  // 12 blocks where 8 may be: 6 are left, a and d.
  EXPECT_EQ(prune_artifacts(dir_, {.most_bytes = 8 * kBlock}), 6 * kBlock);
  EXPECT_THAT(names(dir_), ElementsAre("a.json", "a.so", "d.json", "d.so"));
  EXPECT_THAT(names(dir_ / "by_source"), ElementsAre("from_a", "from_d"));
}

TEST_F(ArtifactCache, WhatWasUsedIsYoungAgain) {
  add("a", minutes(400));
  add("b", minutes(300));
  touch_artifact(dir_, "a", dir_ / "by_source" / "from_a");
  prune_artifacts(dir_, {.most_bytes = 4 * kBlock});
  EXPECT_THAT(names(dir_), ElementsAre("a.json", "a.so"));
  EXPECT_THAT(names(dir_ / "by_source"), ElementsAre("from_a"));
}

TEST_F(ArtifactCache, WhatMayBeWaitingForItsRunStaysWhateverItsSize) {
  add("a", minutes(1));
  add("b", minutes(2));
  EXPECT_EQ(prune_artifacts(dir_, {.most_bytes = kBlock, .kept_for = minutes(5)}), 6 * kBlock);
  EXPECT_THAT(names(dir_), ElementsAre("a.json", "a.so", "b.json", "b.so"));
}

TEST_F(ArtifactCache, AFolderThatIsNotThereIsEmpty) {
  EXPECT_EQ(prune_artifacts(dir_ / "none", CacheLimits()), 0);
  EXPECT_THAT(names(dir_), IsEmpty());
}

}  // namespace
}  // namespace tuner
