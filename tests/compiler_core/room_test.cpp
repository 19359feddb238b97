// Where caches lie, and what room there is.
#include "compiler_core/base/room.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "compiler_core/base/output_file.h"
#include "compiler_core/base/scratch_folder.h"

namespace tuner {
namespace {

TEST(Room, ReadsWhatTheKernelCallsAvailable) {
  EXPECT_EQ(available_memory_in("MemTotal:  100 kB\nMemFree: 7 kB\nMemAvailable:    42 kB\n"), 42 * 1024);
  EXPECT_EQ(available_memory_in("MemTotal:  100 kB\n"), -1);
  EXPECT_EQ(available_memory_in("MemAvailable: much"), -1);
  EXPECT_EQ(available_memory_in(""), -1);
}

TEST(Room, TheNarrowestControlGroupOfAllAroundUsCounts) {
  const auto root = ScratchFolder::make("tuner-groups");
  ASSERT_TRUE(root.is_ok()) << root.message();
  const auto group = [&](const std::string& name, const std::string& most, const std::string& used) {
    const std::string folder = (*root)->path() + name;
    ASSERT_TRUE(make_folders(folder).is_ok());
    ASSERT_TRUE(replace_file(folder + "/memory.max", most).is_ok());
    ASSERT_TRUE(replace_file(folder + "/memory.current", used).is_ok());
  };
  group("/job", "1000\n", "700\n");
  group("/job/step", "max\n", "600\n");
  group("/job/step/task", "900\n", "100\n");
  group("/wide", "1000\n", "0\n");
  group("/wide/narrow", "100\n", "60\n");
  group("/full", "10\n", "12\n");
  const auto left = [&](const char* self) { return memory_left_in_groups((*root)->path(), self); };
  EXPECT_EQ(left("0::/job/step/task\n"), 300) << "the outermost has the least left";
  EXPECT_EQ(left("0::/job/step\n"), 300);
  EXPECT_EQ(left("0::/wide/narrow\n"), 40) << "the innermost has the least left";
  EXPECT_EQ(left("0::/full\n"), 0) << "more used than allowed";
  EXPECT_EQ(left("0::/other\n"), INT64_MAX);
  EXPECT_EQ(left("4:memory:/job\n0::/job\n"), INT64_MAX) << "version 1";
  EXPECT_EQ(left(""), INT64_MAX);
}

TEST(Room, ThisMachineHasSomeAndNotWithoutBound) {
  EXPECT_GT(available_memory(), int64_t{1} << 20);
  EXPECT_LT(available_memory(), int64_t{1} << 50);
  EXPECT_GT(available_disk("/tmp"), 0);
  // A folder that is not there yet will lie on the disk of the one above.
  EXPECT_LT(available_disk("/tmp/no/such/folder"), INT64_MAX);
}

TEST(Room, CachesFollowTheEnvironment) {
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(user_cache_folder(), "/somewhere/tuner");
  EXPECT_EQ(shared_cache_folder(), "/somewhere/tuner/shared");
  setenv("XDG_CACHE_HOME", "relative", 1);  // the specification has it ignored
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(user_cache_folder(), "/home/me/.cache/tuner");
  unsetenv("HOME");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_TRUE(user_cache_folder().starts_with("/tmp/tuner-")) << user_cache_folder();
}

TEST(Room, SizesForPeople) {
  EXPECT_EQ(bytes_text(int64_t{43} << 30), "43.0 GiB");
  EXPECT_EQ(bytes_text((int64_t{3} << 30) / 2), "1.5 GiB");
  EXPECT_EQ(bytes_text(300 << 20), "300 MiB");
}

}  // namespace
}  // namespace tuner
