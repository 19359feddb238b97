// Users' sources on their way to a worker: fetched once, checked, and kept where its processes find them.
#include "measure_server/worker/document_fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/own_source.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using testing::own_document;
using testing::own_kernel;
using testing::own_key;
using testing::OwnSource;

// A daemon that gives `bytes`, whatever it is asked for.
class Giver final : public BlobLink {
 public:
  std::string bytes;
  Status refuses;
  std::vector<std::pair<std::string, std::string>> asked;  // trial, order

  Status read(const v1::ReadBlobRequest& request, v1::ReadBlobReply* reply, std::stop_token) override {
    asked.emplace_back(request.trial_id(), request.order_id());
    if (!refuses) return refuses;
    reply->set_bytes(bytes.substr(static_cast<size_t>(request.offset()), 100));
    return Status::ok();
  }
  Status write(const v1::WriteBlobRequest&, v1::WriteBlobReply*, std::stop_token) override {
    return failed("nobody sends here");
  }
};

class DocumentFetching : public ::testing::Test {
 protected:
  DocumentFetcher fetcher(int64_t cache_bytes = int64_t{1} << 30) {
    return {cache_, cache_bytes, BlobTransfer(daemon_, [] { return "s"; }, {})};
  }
  std::string file_of(const OwnSource& of) const {
    return cache_ + "/sources/" + source_digest(*own_kernel(of));
  }
  static std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  TemporaryFolder folder_;
  const std::string cache_ = folder_.file("cache");
  Giver daemon_;
};

TEST_F(DocumentFetching, ASourceIsFetchedOnceAndFoundByItsKey) {
  const OwnSource of{.function = "fetched_once"};
  daemon_.bytes = own_document(of);
  DocumentFetcher documents = fetcher();
  EXPECT_FALSE(find_kernel(source_digest(*own_kernel(of))).is_ok());
  for (int time = 0; time < 2; ++time) {
    const Status status = documents.for_lease("t1", own_key(of), name_of(daemon_.bytes));
    ASSERT_TRUE(status.is_ok()) << status.message();
  }
  EXPECT_EQ(daemon_.asked.size(), (daemon_.bytes.size() + 99) / 100);
  EXPECT_EQ(daemon_.asked.front(), std::pair(std::string("t1"), std::string()));
  EXPECT_EQ(contents(file_of(of)), daemon_.bytes);
  EXPECT_TRUE(find_kernel(source_digest(*own_kernel(of))).is_ok());
  // Another process of this host has it already.
  DocumentFetcher again = fetcher();
  daemon_.asked.clear();
  EXPECT_TRUE(again.for_order("o1", own_key(of), name_of(daemon_.bytes)).is_ok());
  EXPECT_TRUE(daemon_.asked.empty());
}

TEST_F(DocumentFetching, AnOrderAsksByItsOwnName) {
  const OwnSource of{.function = "for_an_order"};
  daemon_.bytes = own_document(of);
  EXPECT_TRUE(fetcher().for_order("o7", own_key(of), name_of(daemon_.bytes)).is_ok());
  EXPECT_EQ(daemon_.asked.front(), std::pair(std::string(), std::string("o7")));
}

TEST_F(DocumentFetching, WhatIsAnotherSourceIsRefusedAndNotKept) {
  const OwnSource of{.function = "asked_for"}, forged{.function = "forged"};
  daemon_.bytes = own_document(forged);
  const Status status = fetcher().for_lease("t1", own_key(of), name_of(daemon_.bytes));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("expected " + source_digest(*own_kernel(of))));
  EXPECT_FALSE(std::filesystem::exists(file_of(of)));
  EXPECT_FALSE(std::filesystem::exists(file_of(forged)));
}

TEST_F(DocumentFetching, WhatTheDaemonDoesNotGiveIsSaidAtOnce) {
  const OwnSource of{.function = "not_given"};
  daemon_.refuses = not_found("no lease of yours names it");
  EXPECT_EQ(fetcher().for_lease("t1", own_key(of), name_of("x")).code(), StatusCode::kNotFound);
  EXPECT_EQ(daemon_.asked.size(), 1u);
  v1::Blob huge = name_of("x");
  for (const int64_t bytes : {int64_t{0}, int64_t{-5}, static_cast<int64_t>(kMostDocumentBytes) + 1}) {
    huge.set_bytes(bytes);
    EXPECT_EQ(fetcher().for_lease("t1", own_key(of), huge).code(), StatusCode::kNotFound) << bytes;
  }
  EXPECT_EQ(daemon_.asked.size(), 1u) << "asked for what is no document";
}

TEST_F(DocumentFetching, KeysThatNameNothingNeedNothing) {
  EXPECT_TRUE(fetcher().for_lease("t1", "v1 matmul m=1 n=1 k=1", name_of("x")).is_ok());
  EXPECT_TRUE(fetcher().for_lease("t1", "v1 kernel f source=../../etc/passwd", name_of("x")).is_ok());
  EXPECT_TRUE(daemon_.asked.empty());
}

TEST_F(DocumentFetching, ADamagedFileIsFetchedAgain) {
  const OwnSource of{.function = "damaged_file"};
  daemon_.bytes = own_document(of);
  std::filesystem::create_directories(cache_ + "/sources");
  std::ofstream(file_of(of)) << "torn";
  EXPECT_TRUE(fetcher().for_lease("t1", own_key(of), name_of(daemon_.bytes)).is_ok());
  EXPECT_EQ(contents(file_of(of)), daemon_.bytes);
}

// Sources count for the cache's limit as all else there; what was used lately stays.
TEST_F(DocumentFetching, TheCacheStaysWithinItsLimit) {
  const OwnSource old{.function = "long_ago"}, now{.function = "just_now"};
  daemon_.bytes = own_document(old);
  ASSERT_TRUE(fetcher().for_lease("t1", own_key(old), name_of(daemon_.bytes)).is_ok());
  std::filesystem::last_write_time(file_of(old),
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  std::filesystem::remove(cache_ + "/pruned");
  daemon_.bytes = own_document(now);
  ASSERT_TRUE(fetcher(/*cache_bytes=*/1).for_lease("t1", own_key(now), name_of(daemon_.bytes)).is_ok());
  EXPECT_FALSE(std::filesystem::exists(file_of(old)));
  EXPECT_TRUE(std::filesystem::exists(file_of(now)));
}

// A process that is shown more and more sources forgets the first.
TEST(KnownKernels, WhatWasFoundIsBoundedAndTheLatestStays) {
  const OwnSource first{.function = "found_first"};
  const std::string digest = know_document(own_document(first)).value();
  ASSERT_TRUE(find_kernel(digest).is_ok());
  const std::string comment = "//" + std::string((1 << 20) - 1024, 'x') + "\n";  // a source has at most 1 MiB
  std::string latest;
  for (size_t i = 0; i <= kMostFoundBytes / comment.size(); ++i)
    latest = know_document(own_document({.function = str("found_", i), .before = comment})).value();
  EXPECT_FALSE(find_kernel(digest).is_ok()) << "the first is forgotten";
  EXPECT_TRUE(find_kernel(latest).is_ok());
}

}  // namespace
}  // namespace tuner
