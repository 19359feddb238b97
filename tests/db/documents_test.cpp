// Users' sources in a database: found by their digests, and what is not what its digest says is found out.
#include "db/resolve/documents.h"

#include <gmock/gmock.h>

#include "templates/source_kernel/known_kernels.h"
#include "tests/db/store_fixture.h"
#include "tests/support/own_source.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::own_document;
using testing::own_kernel;
using testing::OwnSource;

KernelRow row_of(const OwnSource& of) {
  return {.digest = source_digest(*own_kernel(of)), .document = own_document(of)};
}

TEST(Documents, AKernelIsFoundInAStoreWhileThatIsLookedIn) {
  const TemporaryFolder folder;
  const OwnSource of{.function = "in_a_store"};
  const auto store = must_open(folder.file("a.db"));
  ASSERT_OK(store->add_job(job_row("j1"), {row_of(of)}));
  const std::string digest = row_of(of).digest;
  EXPECT_FALSE(find_kernel(digest).is_ok());
  const auto looked_in = documents_in(*store);
  const auto found = find_kernel(digest);
  ASSERT_TRUE(found.is_ok()) << found.message();
  EXPECT_EQ((*found)->function, "in_a_store");
}

TEST(Documents, WhatIsNotWhatItsDigestSaysIsFoundOutAndNeverUsed) {
  const TemporaryFolder folder;
  const OwnSource right{.function = "is_right"}, of{.function = "is_forged"}, other{.function = "is_other"};
  KernelRow forged = row_of(of), nonsense = row_of({.function = "is_nonsense"});
  forged.document = own_document(other);
  nonsense.document = "nonsense";
  const auto store = must_open(folder.file("a.db"));
  ASSERT_OK(store->add_job(job_row("j1"), {row_of(right), forged, nonsense}));
  EXPECT_TRUE(store->check_integrity()->damage.empty()) << "each row is what was written";
  std::vector<std::string> lines;
  const Result<int64_t> looked_at =
      check_kernels(*store, {}, [&](const std::string& line) { lines.push_back(line); });
  ASSERT_TRUE(looked_at.is_ok()) << looked_at.message();
  EXPECT_EQ(*looked_at, 3);
  EXPECT_THAT(
      lines,
      ElementsAre(HasSubstr(str("has the digest ", row_of(other).digest, ", expected ", forged.digest)),
                  HasSubstr("expected a kernel's document")));
  const auto looked_in = documents_in(*store);
  EXPECT_TRUE(find_kernel(row_of(right).digest).is_ok());
  EXPECT_EQ(find_kernel(forged.digest).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(find_kernel(nonsense.digest).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tuner
