// Sources of users in a database: kept once, found by the keys that name them, and carried from one to
// another.
#include "db/resolve/documents.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "templates/source_kernel/document_folder.h"
#include "templates/source_kernel/known_kernels.h"
#include "templates/source_kernel/source_document.h"
#include "templates/source_kernel/source_kernel.h"
#include "templates/workload/key_document.h"
#include "tests/db/store_fixture.h"
#include "tests/support/own_source.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::own_document;
using testing::own_kernel;
using testing::OwnSource;

// A kernel that nobody knows until somebody is told of it. Each has a text of its own.
SourceKernel kernel(const std::string& text) {
  SourceKernel k;
  k.source = "a.c";
  k.function = "f";
  k.files = {{"a.c", "void f(float* x) {}  // " + text + "\nint " + text + ";\n"}};
  k.arguments = {{.name = "x", .role = SourceRole::kOut, .shape = {4}}};
  k.compiler = "cc";
  return k;
}
std::string key_of(const std::string& digest) { return "v1 kernel f x=out:float32[4] source=" + digest; }

TEST(Documents, AKeyNamesOneByItsLastWordAlone) {
  const std::string digest(64, 'a');
  EXPECT_EQ(document_of_key(key_of(digest)), digest);
  EXPECT_EQ(document_of_key("v1 kernel f x=out:float32[4]"), std::nullopt);
  EXPECT_EQ(document_of_key(key_of(std::string(63, 'a') + "/")), std::nullopt);
  EXPECT_EQ(document_of_key("v1 matmul m=4 source=" + digest), std::nullopt);
}

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

TEST(Documents, AFolderHoldsThemByTheirDigests) {
  const TemporaryFolder folder;
  const SourceKernel one = kernel("in_a_folder");
  const std::string digest = source_digest(one);
  EXPECT_EQ(put_document(folder.path(), digest).code(), StatusCode::kNotFound);
  EXPECT_EQ(put_document(folder.path(), "../../etc/passwd").code(), StatusCode::kNotFound);
  std::filesystem::create_directories(folder.path() / "sources");
  std::ofstream(folder.file("sources/" + digest)) << source_document(one);
  {
    const DocumentFolder found(folder.path());
    EXPECT_EQ(find_kernel("../sources/" + digest).status().code(), StatusCode::kNotFound);
    ASSERT_TRUE(find_kernel(digest).is_ok());
  }
  std::filesystem::remove(folder.file("sources/" + digest));
  ASSERT_TRUE(put_document(folder.path(), digest).is_ok());
  std::ifstream in(folder.file("sources/" + digest));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), source_document(one));
}

// Who can write there cannot make a key stand for another text.
TEST(Documents, AFileOfAnotherTextIsRefused) {
  const TemporaryFolder folder;
  const SourceKernel wanted = kernel("wanted"), other = kernel("other");
  std::filesystem::create_directories(folder.path() / "sources");
  std::ofstream(folder.file("sources/" + source_digest(wanted))) << source_document(other);
  const DocumentFolder found(folder.path());
  EXPECT_THAT(find_kernel(source_digest(wanted)).message(), HasSubstr("has the digest"));
}

}  // namespace
}  // namespace tuner
