// Bytes named by their digest: what arrives is checked, goes on after a break, and is bounded on disk.
#include "db/blobs/blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

BlobName name_of(std::string_view bytes) { return {sha256_hex(bytes), static_cast<int64_t>(bytes.size())}; }

std::string bytes_of(int seed, size_t n) {
  std::string bytes(n, '\0');
  for (size_t i = 0; i < n; ++i)
    bytes[i] = static_cast<char>((i * 7 + static_cast<size_t>(seed) * 131) >> (i % 5));
  return bytes;
}

class BlobStoreTest : public testing::Test {
 protected:
  void SetUp() override { open(); }
  void open(int64_t most = 64 * kMiB) {
    store_.reset();
    Result<std::unique_ptr<BlobStore>> store = BlobStore::open(folder_.file("blobs"), most);
    ASSERT_TRUE(store.is_ok()) << store.message();
    store_ = *std::move(store);
  }
  void put(std::string_view bytes) {
    const Result<int64_t> have = store_->write(name_of(bytes), 0, bytes);
    ASSERT_TRUE(have.is_ok()) << have.message();
    ASSERT_EQ(*have, std::ssize(bytes));
  }
  std::string get(const BlobName& name) {
    const Result<std::string> bytes = store_->read(name, 0, name.bytes);
    return bytes.is_ok() ? *bytes : bytes.message();
  }
  std::string file(const BlobName& name) const { return (folder_.path() / "blobs" / name.sha256).string(); }

  const TemporaryFolder folder_;
  std::unique_ptr<BlobStore> store_;
};

TEST_F(BlobStoreTest, PiecesBecomeAWholeAndAreReadInPieces) {
  const std::string bytes = bytes_of(1, 1000);
  const BlobName name = name_of(bytes);
  EXPECT_FALSE(store_->has(name));
  EXPECT_EQ(*store_->write(name, 0, bytes.substr(0, 300)), 300);
  EXPECT_FALSE(store_->has(name)) << "a part is not there";
  EXPECT_EQ(store_->read(name, 0, 10).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(*store_->write(name, 0, bytes.substr(0, 300)), 300) << "sent again: nothing is written twice";
  EXPECT_EQ(*store_->write(name, 500, bytes.substr(500)), 300) << "a gap is not written";
  EXPECT_EQ(*store_->write(name, 0, ""), 300) << "asked what is there";
  EXPECT_EQ(*store_->write(name, 300, bytes.substr(300)), 1000);
  EXPECT_TRUE(store_->has(name));
  EXPECT_EQ(*store_->read(name, 990, 100), bytes.substr(990));
  EXPECT_EQ(*store_->read(name, 0, 4), bytes.substr(0, 4));
  EXPECT_THAT(store_->read(name, 1001, 1).message(), HasSubstr("offset: expected 0 to 1000"));
}

TEST_F(BlobStoreTest, AnUploadGoesOnAfterARestart) {
  const std::string bytes = bytes_of(2, 5000);
  const BlobName name = name_of(bytes);
  ASSERT_EQ(*store_->write(name, 0, bytes.substr(0, 4096)), 4096);
  open();
  EXPECT_EQ(*store_->write(name, 0, ""), 4096);
  EXPECT_EQ(*store_->write(name, 4096, bytes.substr(4096)), 5000);
  EXPECT_EQ(get(name), bytes);
}

TEST_F(BlobStoreTest, APartThatHasAllItsBytesIsLookedAtWhenItIsAskedFor) {
  const std::string bytes = bytes_of(6, 500);
  const BlobName name = name_of(bytes);
  std::ofstream(file(name) + ".part") << bytes;  // the process was killed before it was renamed
  open();
  EXPECT_FALSE(store_->has(name));
  EXPECT_EQ(*store_->write(name, 0, ""), 500);
  EXPECT_TRUE(store_->has(name));
  EXPECT_EQ(get(name), bytes);
  std::ofstream(file(name_of("abc")) + ".part") << "abd";
  open();
  EXPECT_EQ(store_->write(name_of("abc"), 0, "").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(*store_->write(name_of("abc"), 0, "abc"), 3);
}

TEST_F(BlobStoreTest, WhatIsNotWhatItsNameSaysIsRefusedAndForgotten) {
  const std::string bytes = bytes_of(3, 100);
  BlobName name = name_of(bytes);
  std::string other = bytes;
  other[50] ^= 1;
  const Result<int64_t> wrong = store_->write(name, 0, other);
  EXPECT_EQ(wrong.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(wrong.message(), HasSubstr("have the digest"));
  EXPECT_EQ(*store_->write(name, 0, ""), 0) << "nothing of it is left";
  put(bytes);
  EXPECT_EQ(get(name), bytes);

  const BlobName short_name{sha256_hex("abc"), 3};
  EXPECT_THAT(store_->write(short_name, 0, "abcd").message(), HasSubstr("more than its 3 bytes"));
  name.sha256 = "../../etc/passwd";
  EXPECT_THAT(store_->write(name, 0, bytes).message(), HasSubstr("64 lower-case hexadecimal digits"));
  EXPECT_THAT(store_->read(name, 0, 1).message(), HasSubstr("64 lower-case hexadecimal digits"));
  EXPECT_THAT(store_->write({sha256_hex(""), 0}, 0, "").message(), HasSubstr("expected a number > 0"));
}

TEST_F(BlobStoreTest, AFileThatAPowerLossToreIsMissedAndMadeAgain) {
  const std::string bytes = bytes_of(4, 1000);
  const BlobName name = name_of(bytes);
  put(bytes);
  std::fstream(file(name), std::ios::in | std::ios::out).seekp(500).put('\0').put('\1');
  open();
  EXPECT_FALSE(store_->has(name));
  EXPECT_FALSE(std::filesystem::exists(file(name)));
  put(bytes);
  EXPECT_EQ(get(name), bytes);
  std::filesystem::resize_file(file(name), 10);  // while the store is open
  EXPECT_EQ(store_->read(name, 0, 1000).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(store_->has(name));
}

TEST_F(BlobStoreTest, BeyondTheLimitTheLeastRecentlyUsedGo) {
  open(10 * kMiB);
  std::vector<std::string> blobs;
  for (int i = 0; i < 4; ++i) blobs.push_back(bytes_of(10 + i, 2 * kMiB));
  for (int i = 0; i < 4; ++i) put(blobs[static_cast<size_t>(i)]);
  EXPECT_TRUE(store_->has(name_of(blobs[0])));  // a use
  put(bytes_of(20, 2 * kMiB));
  put(bytes_of(21, 2 * kMiB));  // 12 MiB: one has to go
  EXPECT_LE(store_->bytes(), 10 * kMiB);
  EXPECT_TRUE(store_->has(name_of(blobs[0])));
  EXPECT_FALSE(store_->has(name_of(blobs[1])));
  EXPECT_TRUE(store_->has(name_of(blobs[2])));
  const std::string large = bytes_of(30, 3 * kMiB);
  EXPECT_THAT(store_->write(name_of(large), 0, large).message(), HasSubstr("larger than a quarter"));
  open(4 * kMiB);  // a smaller limit, at the next start
  EXPECT_LE(store_->bytes(), 4 * kMiB);
}

// The order of use outlives the process: files have the time when they were last read or written.
TEST_F(BlobStoreTest, AfterARestartTheLeastRecentlyUsedGoFirst) {
  namespace fs = std::filesystem;
  for (size_t newest = 0; newest < 4; ++newest) {
    open();
    const auto hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
    std::vector<BlobName> names;
    for (int i = 0; i < 4; ++i) {
      const std::string bytes = bytes_of(40 + i, 1000);
      put(bytes);
      names.push_back(name_of(bytes));
      fs::last_write_time(file(names.back()), hour_ago + std::chrono::seconds(i));
    }
    if (newest < 2) {
      EXPECT_TRUE(store_->has(names[newest])) << "a use: now";
    } else {
      fs::last_write_time(file(names[newest]), hour_ago + std::chrono::seconds(10));
    }
    open(1000);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(store_->has(names[i]), i == newest) << i << " of " << newest;
  }
}

TEST_F(BlobStoreTest, APieceThatComesTwiceCountsOnce) {
  const std::string bytes = bytes_of(6, 900);
  const BlobName name = name_of(bytes);
  EXPECT_EQ(*store_->write(name, 0, bytes.substr(0, 300)), 300);
  EXPECT_EQ(*store_->write(name, 0, bytes.substr(0, 300)), 300) << "the answer to the first was lost";
  EXPECT_EQ(*store_->write(name, 600, bytes.substr(600)), 300) << "a gap";
  EXPECT_EQ(*store_->write(name, 300, bytes.substr(300)), 900);
  EXPECT_EQ(get(name), bytes);
}

TEST_F(BlobStoreTest, FilesOfOthersAreLeftAlone) {
  const std::string other = (folder_.path() / "blobs" / "README").string();
  std::ofstream(other) << "mine";
  open(1);
  EXPECT_TRUE(std::filesystem::exists(other));
  EXPECT_EQ(store_->bytes(), 0);
}

TEST_F(BlobStoreTest, ManyWritersOfTheSameBlobEndWithOne) {
  const std::string bytes = bytes_of(5, 300'000);
  const BlobName name = name_of(bytes);
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      for (int64_t have = 0; have < name.bytes;) {
        const Result<int64_t> now =
            store_->write(name, have, std::string_view(bytes).substr(static_cast<size_t>(have), 10'000));
        ASSERT_TRUE(now.is_ok()) << now.message();
        have = *now;
      }
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(get(name), bytes);
  EXPECT_EQ(store_->bytes(), name.bytes);
}

TEST_F(BlobStoreTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_.file("file")) << "x";
  const auto store = BlobStore::open(folder_.file("file/blobs"), kMiB);
  ASSERT_FALSE(store.is_ok());
  EXPECT_THAT(store.message(), HasSubstr("file/blobs"));
}

}  // namespace
}  // namespace tuner
