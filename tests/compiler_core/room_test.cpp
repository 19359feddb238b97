// Where caches lie, and what room there is.
#include "compiler_core/base/room.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tuner {
namespace {

TEST(Room, ReadsWhatTheKernelCallsAvailable) {
  EXPECT_EQ(available_memory_in("MemTotal:  100 kB\nMemFree: 7 kB\nMemAvailable:    42 kB\n"), 42 * 1024);
  EXPECT_EQ(available_memory_in("MemTotal:  100 kB\n"), -1);
  EXPECT_EQ(available_memory_in("MemAvailable: much"), -1);
  EXPECT_EQ(available_memory_in(""), -1);
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
