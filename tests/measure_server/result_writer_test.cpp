// Results go to disk in order, those that came meanwhile together, and all of them before the end.
#include "measure_server/worker/result_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace tuner {
namespace {

using testing::ElementsAre;

WorkerCore::Finished result(int n) {
  WorkerCore::Finished f;
  f.record.set_trial_id("t" + std::to_string(n));
  return f;
}

// What was written at a time, in order.
class Disk {
 public:
  void write(const std::vector<WorkerCore::Finished>& results) {
    std::vector<std::string> ids;
    for (const WorkerCore::Finished& f : results) ids.push_back(f.record.trial_id());
    const std::lock_guard lock(mutex_);
    batches_.push_back(ids);
  }
  std::vector<std::vector<std::string>> batches() const {
    const std::lock_guard lock(mutex_);
    return batches_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::vector<std::string>> batches_;
};

TEST(ResultWriter, WhatCameWhileTheDiskWorkedGoesTogetherAndInOrder) {
  Disk disk;
  std::promise<void> begun, go_on;
  bool first = true;
  {
    ResultWriter writer([&](const auto& results) {
      if (std::exchange(first, false)) {
        begun.set_value();
        go_on.get_future().wait();
      }
      disk.write(results);
    });
    writer.put(result(1));
    begun.get_future().wait();
    for (int n = 2; n <= 4; ++n) writer.put(result(n));
    EXPECT_THAT(disk.batches(), testing::IsEmpty()) << "put() does not wait for the disk";
    go_on.set_value();
  }
  EXPECT_THAT(disk.batches(), ElementsAre(ElementsAre("t1"), ElementsAre("t2", "t3", "t4")));
}

TEST(ResultWriter, ADiskThatHangsHoldsUpTheRunsInTheEnd) {
  Disk disk;
  std::promise<void> go_on;
  std::shared_future<void> allowed = go_on.get_future().share();
  constexpr int kResults = 200;
  std::atomic<int> put{0};
  {
    ResultWriter writer([&](const auto& results) {
      allowed.wait();
      disk.write(results);
    });
    std::thread runs([&] {
      for (int n = 0; n < kResults; ++n) {
        writer.put(result(n));
        ++put;
      }
    });
    while (put < 64) std::this_thread::yield();
    EXPECT_LE(put, 129) << "64 that wait, and those that the disk has";
    go_on.set_value();
    runs.join();
  }
  std::vector<std::string> all;
  for (const auto& batch : disk.batches()) all.insert(all.end(), batch.begin(), batch.end());
  ASSERT_EQ(all.size(), size_t{kResults});
  for (int n = 0; n < kResults; ++n) EXPECT_EQ(all[static_cast<size_t>(n)], "t" + std::to_string(n));
}

}  // namespace
}  // namespace tuner
