// A folder of one's own, and that nothing of it stays.
#include "compiler_core/base/scratch_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "compiler_core/base/output_file.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(ScratchFolder, EachIsAnotherAndIsGoneWithAllThatIsInIt) {
  std::string path;
  {
    const auto one = ScratchFolder::make("tuner-scratch"), other = ScratchFolder::make("tuner-scratch");
    ASSERT_TRUE(one.is_ok() && other.is_ok()) << one.message() << other.message();
    path = (*one)->path();
    EXPECT_NE(path, (*other)->path());
    EXPECT_EQ(fs::path(path).parent_path(), fs::temp_directory_path());
    EXPECT_EQ((*one)->file("a"), path + "/a");
    ASSERT_TRUE(make_folders((*one)->file("deep/er")).is_ok());
    ASSERT_TRUE(replace_file((*one)->file("deep/er/file"), "text").is_ok());
    EXPECT_EQ(fs::status(path).permissions() & fs::perms::all, fs::perms::owner_all) << "nobody else's";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(ScratchFolder, TakesTheFirstParentThatServes) {
  const auto folder = ScratchFolder::make("tuner-scratch", {"/nonexistent", fs::temp_directory_path()});
  ASSERT_TRUE(folder.is_ok()) << folder.message();
  EXPECT_EQ(fs::path((*folder)->path()).parent_path(), fs::temp_directory_path());
  EXPECT_EQ(ScratchFolder::make("tuner-scratch", {"/nonexistent", "/proc/none"}).message(),
            "no temporary folder can be made in /nonexistent or /proc/none: No such file or directory");
}

}  // namespace
}  // namespace tuner
