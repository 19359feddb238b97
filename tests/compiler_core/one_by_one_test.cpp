// Iterations that threads take one by one: each runs once, and a slow thread holds up one of them.
#include "compiler_core/runtime/one_by_one.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <mutex>
#include <vector>

namespace tuner {
namespace {

using Iteration = std::function<void(int32_t begin, int32_t end, int32_t thread)>;

void run(const tuner_runtime& runtime, int32_t extent, const Iteration& iteration) {
  runtime.parallel_for(
      runtime.pool, extent,
      [](void* closure, int32_t begin, int32_t end, int32_t thread) {
        (*static_cast<const Iteration*>(closure))(begin, end, thread);
      },
      const_cast<Iteration*>(&iteration));
}

TEST(OneByOne, EveryIterationRunsOnceByAThreadOfThePool) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    OneByOne shares(pool);
    const tuner_runtime runtime = shares.runtime(nullptr);
    EXPECT_EQ(runtime.num_threads, threads);
    for (const int32_t extent : {0, 1, 2, 3, 7, 8, 9, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(extent));
      std::atomic<int> strange{0};
      run(runtime, extent, [&](int32_t begin, int32_t end, int32_t thread) {
        if (end != begin + 1 || thread < 0 || thread >= threads) ++strange;
        ++runs[static_cast<size_t>(begin)];
      });
      EXPECT_EQ(strange, 0);
      for (const std::atomic<int>& n : runs) EXPECT_EQ(n, 1);
    }
  }
}

// In equal shares the first thread would have half of the iterations left.
TEST(OneByOne, AThreadThatIsHeldUpDoesOneIterationWhileTheOthersDoTheRest) {
  ThreadPool pool(2);
  OneByOne shares(pool);
  constexpr int32_t kAll = 10;
  std::mutex mutex;
  std::condition_variable changed;
  int done = 0;
  bool saw_all_others = false;
  run(shares.runtime(nullptr), kAll, [&](int32_t begin, int32_t, int32_t) {
    std::unique_lock lock(mutex);
    if (begin == 0)
      saw_all_others = changed.wait_for(lock, std::chrono::seconds(60), [&] { return done == kAll - 1; });
    else
      ++done;
    changed.notify_all();
  });
  EXPECT_TRUE(saw_all_others);
}

TEST(ThreadPool, AtMostGivesAsManyAsAreAskedFor) {
  EXPECT_EQ(ThreadPool::at_most(0).threads(), 1);
  EXPECT_EQ(ThreadPool::at_most(1).threads(), 1);
  EXPECT_EQ(ThreadPool::at_most(3).threads(), 3);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose shadow counts as addresses
// Each thread's stack takes 8 MB of addresses: some fit, sixty do not.
TEST(ThreadPool, AtMostGivesFewerWhereTheSystemHasNoMore) {
  const auto in_little_room = [] {
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit room{static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + (int64_t{100} << 20)),
                      RLIM_INFINITY};
    const rlimit stack{8 << 20, RLIM_INFINITY};
    if (setrlimit(RLIMIT_STACK, &stack) != 0 || setrlimit(RLIMIT_AS, &room) != 0) _exit(3);
    const int threads = ThreadPool::at_most(64).threads();
    _exit(threads > 1 && threads < 64 ? 0 : 1);
  };
  EXPECT_EXIT(in_little_room(), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace tuner
