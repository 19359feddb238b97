// The host's pool: every iteration once, shares in order, through sleep and wake. Peaks: what is
// counted and for whom, not how much it is.
#include "compiler_core/runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>

#include "compiler_core/runtime/best_rate.h"
#include "compiler_core/runtime/dot_peak.h"
#include "compiler_core/runtime/peak.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using Share = std::function<void(int32_t begin, int32_t end, int32_t thread)>;

void run(ThreadPool& pool, int32_t extent, const Share& share) {
  pool.parallel_for(
      extent,
      [](void* closure, int32_t begin, int32_t end, int32_t thread) {
        (*static_cast<const Share*>(closure))(begin, end, thread);
      },
      const_cast<Share*>(&share));
}

TEST(ThreadPool, EveryIterationRunsOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int32_t extent : {0, 1, 2, 3, 7, 8, 9, 1000}) {
      std::vector<int> runs(static_cast<size_t>(extent));
      run(pool, extent, [&](int32_t begin, int32_t end, int32_t) {
        for (int32_t i = begin; i < end; ++i) ++runs[static_cast<size_t>(i)];
      });
      EXPECT_EQ(std::accumulate(runs.begin(), runs.end(), 0), extent);
      for (const int n : runs) EXPECT_EQ(n, 1);
    }
  }
}

TEST(ThreadPool, SharesAreContiguousAndEqualAndThreadZeroIsTheCaller) {
  ThreadPool pool(4);
  std::mutex mutex;
  std::vector<std::array<int32_t, 3>> shares;
  std::thread::id zero;
  run(pool, 10, [&](int32_t begin, int32_t end, int32_t thread) {
    const std::lock_guard lock(mutex);
    if (thread == 0) zero = std::this_thread::get_id();
    shares.push_back({thread, begin, end});
  });
  std::sort(shares.begin(), shares.end());
  EXPECT_EQ(shares, (std::vector<std::array<int32_t, 3>>{{0, 0, 2}, {1, 2, 5}, {2, 5, 7}, {3, 7, 10}}));
  EXPECT_EQ(zero, std::this_thread::get_id());
}

// Products of the extent and a thread's number are beyond 32 bits.
TEST(ThreadPool, LargestLoopsAreCutIntoEqualShares) {
  ThreadPool pool(4);
  std::array<std::pair<int32_t, int32_t>, 4> shares{};
  pool.parallel_for(
      INT32_MAX,
      [](void* to, int32_t begin, int32_t end, int32_t thread) {
        (*static_cast<decltype(shares)*>(to))[static_cast<size_t>(thread)] = {begin, end};
      },
      &shares);
  EXPECT_EQ(shares[0], std::pair(0, 536870911));
  EXPECT_EQ(shares[1], std::pair(536870911, 1073741823));
  EXPECT_EQ(shares[2], std::pair(1073741823, 1610612735));
  EXPECT_EQ(shares[3], std::pair(1610612735, INT32_MAX));
}

TEST(ThreadPool, ManyShortLoopsAndLongPauses) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < 2000; ++round) {
    run(pool, 3, [&](int32_t begin, int32_t end, int32_t) { sum += end - begin; });
    // Long enough for the workers to fall asleep.
    if (round % 500 == 0) let_pass(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(sum.load(), 6000);
}

// Whoever finds the workers busy runs its shares itself, each with its own thread number.
TEST(ThreadPool, CallersThatShareAPoolEachGetEveryIteration) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        std::array<std::atomic<int>, 10> runs{};
        run(pool, 10, [&](int32_t begin, int32_t end, int32_t thread) {
          for (int32_t i = begin; i < end; ++i) ++runs[static_cast<size_t>(i)];
          if (begin != 10 * thread / 3 || end != 10 * (thread + 1) / 3) ++wrong;
        });
        for (const std::atomic<int>& n : runs) wrong += n == 1 ? 0 : 1;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ThreadPool, TheCPoolRefusesWhatItCannotMake) {
  EXPECT_EQ(tuner_pool_create(0), nullptr);
  EXPECT_EQ(tuner_pool_create(-3), nullptr);
  tuner_pool_destroy(nullptr);
}

TEST(ThreadPool, RuntimeCarriesThePool) {
  ThreadPool pool(2);
  int marker = 0;
  const tuner_runtime rt = pool.runtime(&marker);
  EXPECT_EQ(rt.abi_version, static_cast<uint32_t>(TUNER_ABI_VERSION));
  EXPECT_EQ(rt.num_threads, 2);
  EXPECT_EQ(rt.workspace, &marker);
  std::atomic<int> runs{0};
  rt.parallel_for(
      rt.pool, 5,
      [](void* closure, int32_t begin, int32_t end, int32_t) {
        *static_cast<std::atomic<int>*>(closure) += end - begin;
      },
      &runs);
  EXPECT_EQ(runs.load(), 5);
}

TEST(ThreadPool, PinningToACpuThatIsNotThereChangesNothing) {
  ThreadPool pool(2, {0, 100000});
  std::atomic<int> runs{0};
  run(pool, 4, [&](int32_t begin, int32_t end, int32_t) { runs += end - begin; });
  EXPECT_EQ(runs.load(), 4);
}

// A clock that moves when it is told to.
struct ScriptedClock {
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<ScriptedClock, duration>;
  static time_point now() { return time_point(duration(now_ns)); }
  static inline int64_t now_ns = 0;
};

TEST(Peak, TheShortestWindowCountsAndTheFirstOnlyWakesTheUnits) {
  const std::vector<int64_t> windows_ns = {10, 400, 100, 250, 300};
  size_t next = 0;
  const double rate = best_rate<ScriptedClock>(/*milliseconds=*/1e-3, /*operations=*/5000,
                                               [&] { ScriptedClock::now_ns += windows_ns[next++]; });
  EXPECT_DOUBLE_EQ(rate, 5000.0 / 100);
  EXPECT_EQ(next, windows_ns.size()) << "a window is begun until the time is over";
}

constexpr DType kPeakTypes[] = {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kInt8};

TEST(Peak, IsARateForEveryTypeWhereThereAreVectorsAndZeroElsewhere) {
  const bool vectors = fma_peak_vector_bits() > 0;
  for (const DType dtype : kPeakTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    const double rate = measure_peak_gops(dtype, 5);
    EXPECT_TRUE(std::isfinite(rate));
    EXPECT_EQ(rate > 0, vectors);
  }
  EXPECT_EQ(measure_fma_peak_gflops(5) > 0, vectors);
}

// Two units that take five cycles need ten chains. Each chain adds up what it is counted for: none is merged
// or dropped.
TEST(Peak, DotProductsRunInChainsEnoughAndAreCountedRight) {
  bool found = false;
  for (const DType dtype : {DType::kBFloat16, DType::kInt8})
    for (const CountedLoop& loop : counted_dot_loops(dtype, 1000)) {
      SCOPED_TRACE(loop.instruction);
      EXPECT_GE(loop.chains, 2 * 5);
      EXPECT_GT(loop.operations, 0);
      EXPECT_EQ(loop.counted, loop.operations);
      found = true;
    }
  if (!found) GTEST_SKIP() << "this CPU has no dot products known to dot_peak.cpp";
}

TEST(Peak, EachThreadThatAsksGetsItsOwn) {
  if (fma_peak_vector_bits() == 0) GTEST_SKIP() << "this CPU has no vector FMA known to peak.cpp";
  std::array<double, 4> rates{};
  std::vector<std::thread> threads;
  for (double& rate : rates) threads.emplace_back([&rate] { rate = measure_peak_gops(DType::kInt8, 2); });
  for (std::thread& t : threads) t.join();
  for (const double rate : rates) EXPECT_GT(rate, 0);
}

// A product and its addition count 2: whole vectors of them, as many each time.
TEST(Peak, ABurstIsAKnownNumberOfOperations) {
  const int lanes = fma_peak_vector_bits() / 32;
  for (const DType dtype : kPeakTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    const double operations = peak_burst(dtype);
    EXPECT_EQ(operations > 0, lanes > 0);
    EXPECT_EQ(peak_burst(dtype), operations);
    EXPECT_EQ(lanes > 0 ? std::fmod(operations, 2 * lanes) : 0, 0);
  }
  EXPECT_EQ(peak_burst(DType::kFloat32), fma_peak_burst());
#if defined(__x86_64__) && !defined(__clang__)  // clang-tidy 14 does not know avxvnni
  if (!__builtin_cpu_supports("avx512bf16") && tuner_tiles() == 0) {
    EXPECT_EQ(peak_burst(DType::kBFloat16), fma_peak_burst());
  }
  if (!__builtin_cpu_supports("avx512vnni") && !__builtin_cpu_supports("avxvnni") && tuner_tiles() == 0) {
    EXPECT_EQ(peak_burst(DType::kInt8), fma_peak_burst());
  }
#endif
}

}  // namespace
}  // namespace tuner
