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
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

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

TEST(Documents, AreStoredOnceAndFoundWhileTheirStoreIsOpen) {
  const TemporaryFolder folder;
  const SourceKernel one = kernel("stored");
  const std::string digest = source_digest(one), document = source_document(one);
  {
    const auto store = must_open(folder.file("a.db"));
    EXPECT_EQ(keep_document(*store, key_of(digest)).code(), StatusCode::kNotFound) << "nobody knows it";
    EXPECT_TRUE(keep_document(*store, "v1 matmul m=4").is_ok());
    LearnedRow row{.kind = "source", .op = digest, .document = document};
    ASSERT_TRUE(store->add_learned(row).is_ok());
    EXPECT_FALSE(find_kernel(digest).is_ok());
    const std::shared_ptr<void> there = documents_in(*store);
    EXPECT_TRUE(find_kernel(digest).is_ok());
    ASSERT_TRUE(take_document(*store, document).is_ok());
    EXPECT_EQ(store->learned("source", digest, "")->id, row.id) << "it is there already";
  }
  EXPECT_EQ(document_of_task(key_of(digest)), document);
  EXPECT_EQ(document_of_task("v1 matmul m=4"), "");
}

TEST(Documents, ADatabaseTakesThoseOfItsJobs) {
  const TemporaryFolder folder;
  const auto store = must_open(folder.file("a.db"));
  const std::string digest = know_kernel(std::make_shared<SourceKernel>(kernel("of_a_job")));
  const std::string missing = key_of(std::string(64, '0'));
  ASSERT_TRUE(
      store->add_job(job_row("j1", {{key_of(digest), "cpu"}, {missing, "cpu"}, {"v1 work", "cpu"}})).is_ok());
  ASSERT_TRUE(keep_documents(*store).is_ok());
  EXPECT_TRUE(store->learned("source", digest, "").is_ok());
  EXPECT_EQ(take_document(*store, "tuner-kernel 1\n{}\n").code(), StatusCode::kInvalidArgument);
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
