// What builders made, by order: kept over restarts, bounded, and never a wrong answer from a damaged file.
#include "db/blobs/made_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "compiler_core/base/output_file.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using testing::Optional;

class MadeIndexTest : public testing::Test {
 protected:
  void SetUp() override { open(); }
  void open(size_t most = 1'000, const std::string& release = "1") {
    index_.reset();
    Result<std::unique_ptr<MadeIndex>> index = MadeIndex::open(path(), most, release);
    ASSERT_TRUE(index.is_ok()) << index.message();
    index_ = *std::move(index);
  }
  std::string path() const { return folder_.file("made.db"); }
  // Its bytes, those beside it put into it.
  std::string closed_file() {
    index_.reset();
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const std::string& id, const std::string& bytes) {
    const Status kept = index_->put(id, bytes);
    ASSERT_TRUE(kept.is_ok()) << kept.message();
  }

  const TemporaryFolder folder_;
  std::unique_ptr<MadeIndex> index_;
};

TEST_F(MadeIndexTest, KeepsBytesOverRestarts) {
  const std::string bytes("\0\xff\x80 text", 8);
  put("a", bytes);
  put("b", "first");
  put("b", "second");
  EXPECT_THAT(index_->find("a"), Optional(bytes));
  open();
  EXPECT_THAT(index_->find("a"), Optional(bytes));
  EXPECT_THAT(index_->find("b"), Optional(std::string("second")));
  EXPECT_EQ(index_->find("c"), std::nullopt);
}

TEST_F(MadeIndexTest, TheOldestGo) {
  open(/*most=*/16);
  for (int i = 0; i < 100; ++i) {
    put(str("id", i), "made");
    put("again", "made");  // takes the place of one
  }
  int kept = index_->find("again").has_value() ? 1 : 0;
  for (int i = 0; i < 100; ++i) kept += index_->find(str("id", i)).has_value() ? 1 : 0;
  EXPECT_GE(kept, 16);
  EXPECT_LE(kept, 18);
  EXPECT_TRUE(index_->find("id99").has_value());
  EXPECT_EQ(index_->find("id0"), std::nullopt);
}

TEST_F(MadeIndexTest, WhatAnotherReleaseMadeIsForgotten) {
  put("a", "made");
  open(/*most=*/1'000, "2");
  EXPECT_EQ(index_->find("a"), std::nullopt);
  put("a", "made otherwise");
  open(/*most=*/1'000, "1");
  EXPECT_EQ(index_->find("a"), std::nullopt);
}

// SQLite reads a schema with a bit changed as another one.
TEST_F(MadeIndexTest, EveryBitOfTheSchemaMayBeWrong) {
  put("a", "made");
  const std::string whole = closed_file();
  const size_t begin = whole.find("CREATE TABLE"), end = whole.find("release TEXT", begin);
  ASSERT_LT(end, whole.size());
  for (size_t bit = begin * 8; bit < end * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    index_.reset();
    ASSERT_TRUE(replace_file(path(), damaged).is_ok());
    open();
    put("new", "made");
    ASSERT_THAT(index_->find("new"), Optional(std::string("made"))) << "bit " << bit;
  }
}

// A bit anywhere in the file: another answer than the one that was put is never given, and the index works
// on.
TEST_F(MadeIndexTest, ADamagedFileGivesNoWrongAnswer) {
  for (int i = 0; i < 40; ++i) put(str("id", i), str("what became of ", i));
  const std::string whole = closed_file();
  ASSERT_GT(whole.size(), 4096u);
  int missed = 0;
  for (size_t at = 0; at < whole.size(); at += 37) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    index_.reset();
    ASSERT_TRUE(replace_file(path(), damaged).is_ok());
    open();
    for (int i = 0; i < 40; ++i) {
      const std::optional<std::string> found = index_->find(str("id", i));
      if (!found) {
        ++missed;
        continue;
      }
      ASSERT_EQ(*found, str("what became of ", i)) << "byte " << at;
    }
    put("new", "made");
    ASSERT_THAT(index_->find("new"), Optional(std::string("made"))) << "byte " << at;
  }
  EXPECT_GT(missed, 0) << "some of these bits stood in rows";
}

TEST_F(MadeIndexTest, AForeignFileBeginsAnew) {
  index_.reset();
  ASSERT_TRUE(replace_file(path(), "no database at all, but long enough to look like one").is_ok());
  open();
  put("a", "made");
  EXPECT_THAT(index_->find("a"), Optional(std::string("made")));
}

TEST_F(MadeIndexTest, AFolderInItsPlaceIsAnError) {
  index_.reset();
  std::filesystem::remove(path());
  ASSERT_TRUE(std::filesystem::create_directories(std::filesystem::path(path()) / "full"));
  EXPECT_FALSE(MadeIndex::open(path(), 10, "1").is_ok());
}

}  // namespace
}  // namespace tuner
