// Which job is thought about next; which threads answer calls that block; and what only a lock leads to.
#include "tuner/daemon/tables/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <latch>
#include <map>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "tuner/daemon/call_threads.h"
#include "tuner/daemon/rooms/locked.h"

namespace tuner {
namespace {

TEST(Turns, GoToWhoHasWaitedLongest) {
  Turns turns;
  turns.wake("j2");
  turns.wake("j1");
  turns.wake("j2");  // waits already
  EXPECT_EQ(turns.begin(), "j2");
  EXPECT_EQ(turns.begin(), "j1");
  EXPECT_EQ(turns.begin(), std::nullopt);
}

TEST(Turns, AJobIsThoughtAboutByOneThreadAtATimeAndAgainIfItWasWokenMeanwhile) {
  Turns turns;
  turns.wake("j1");
  ASSERT_EQ(turns.begin(), "j1");
  turns.wake("j1");
  turns.wake("j1");
  EXPECT_FALSE(turns.some_wait());
  EXPECT_EQ(turns.begin(), std::nullopt) << "another thread thinks about it";
  turns.end("j1");
  EXPECT_EQ(turns.begin(), "j1");
  turns.end("j1");
  EXPECT_EQ(turns.begin(), std::nullopt) << "once, however often it was woken";
}

TEST(Turns, AJobThatIsWokenAllTheTimeLeavesTheOthersTheirs) {
  Turns turns;
  turns.wake("busy");
  turns.wake("quiet");
  ASSERT_EQ(turns.begin(), "busy");
  turns.wake("busy");
  turns.end("busy");
  EXPECT_EQ(turns.begin(), "quiet");
}

TEST(CallThreads, TakeHeavyCallsWithinTheirBytesAndShortOnesBesideThem) {
  CallThreads threads({.short_threads = 3, .heavy_at_once = 2, .most_heavy = 2, .heavy_bytes = 100});
  std::latch begun(2), go(1), ended(2), answered(1);
  std::atomic<int> heavy{0};
  const auto wait = [&] {
    ++heavy;
    begun.count_down();
    go.wait();
    ended.count_down();
  };
  ASSERT_TRUE(threads.run_heavy(wait, 40));
  ASSERT_TRUE(threads.run_heavy(wait, 40));
  begun.wait();
  EXPECT_FALSE(threads.run_heavy([&] { ++heavy; }, 21)) << "101 bytes together";
  EXPECT_TRUE(threads.run_heavy([&] { ++heavy; }, 20)) << "it waits for its place";
  ASSERT_TRUE(threads.run_short([&] { answered.count_down(); })) << "a third thread is there for it";
  answered.wait();
  EXPECT_EQ(heavy, 2) << "two at once";
  go.count_down();
  ended.wait();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool whole = false;
  while (!whole && std::chrono::steady_clock::now() < end) whole = threads.run_heavy([&] { ++heavy; }, 100);
  EXPECT_TRUE(whole) << "all bytes are given back";
  threads.join();
  EXPECT_EQ(heavy, 4);
  EXPECT_FALSE(threads.run_heavy([] {}, 1)) << "none is run after the end";
}

TEST(CallThreads, TurnAwayWhatIsBeyondTheirBounds) {
  CallThreads threads({.short_threads = 1,
                       .heavy_at_once = 1,
                       .most_short = 2,
                       .most_heavy = 1,
                       .heavy_bytes = 100,
                       .most_long = 1});
  std::latch begun(2), go(1);
  const auto wait = [&] {
    begun.count_down();
    go.wait();
  };
  ASSERT_TRUE(threads.run_short(wait));
  ASSERT_TRUE(threads.run_long(wait));
  begun.wait();
  EXPECT_FALSE(threads.run_long([] {}));
  EXPECT_TRUE(threads.run_short([] {}));
  EXPECT_TRUE(threads.run_short([] {}));
  EXPECT_FALSE(threads.run_short([] {})) << "two wait already";
  EXPECT_TRUE(threads.run_heavy([] {}, 1));
  EXPECT_FALSE(threads.run_heavy([] {}, 1)) << "one waits already";
  go.count_down();
  threads.join();
}

// A guarded value by itself: no member, no operator and no conversion leads to it.
template <typename G>
concept ReachedWithoutLock = requires(G guarded) {
  *guarded;
}
|| requires(G guarded) { guarded.operator->(); }
|| requires(G guarded) { guarded.value_; };
using Names = std::map<std::string, int>;
static_assert(!ReachedWithoutLock<Guarded<Names>&> && !std::is_convertible_v<Guarded<Names>&, Names&>);
static_assert(!std::is_copy_constructible_v<Guarded<Names>> && !std::is_copy_constructible_v<Locked<Names>>);
// Who may only read the whole may only read the value.
static_assert(std::is_same_v<decltype(*Locked(std::declval<const Guarded<Names>&>())), const Names&>);

TEST(Locked, ThreadsThatCountTogetherLoseNothing) {
  constexpr int kThreads = 4, kRounds = 20'000;
  Guarded<Names> counts;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) ++(*Locked(counts))["all"];
    });
  threads.clear();  // joins
  EXPECT_EQ(Locked(counts)->at("all"), kThreads * kRounds);
}

TEST(Locked, GivesTheLockAwayWhileItWaitsAndHasItAgainAfterwards) {
  Guarded<Names> names;
  std::condition_variable news;
  Locked waiting(names);
  std::jthread other([&] {
    (*Locked(names))["told"] = 1;  // possible only while the other waits
    news.notify_all();
  });
  EXPECT_TRUE(waiting.wait_for(news, std::chrono::seconds(60), [&] { return waiting->contains("told"); }));
  EXPECT_EQ(waiting->size(), 1);
}

}  // namespace
}  // namespace tuner
