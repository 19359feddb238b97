#include "tuner/search/task_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tuner {
namespace {

constexpr int64_t kShare = 800;  // floor: 80

TaskStanding known(double best_ns, double gain, double weight = 1) {
  return {.weight = weight, .done = 100, .open = 0, .best_ns = best_ns, .expected_gain = gain};
}

TEST(TaskAllocator, FloorIsATenthOfTheShareWithinBounds) {
  EXPECT_EQ(allocation_floor(1000), 100);
  EXPECT_EQ(allocation_floor(100), 64);
  EXPECT_EQ(allocation_floor(8), 8);
}

// Gives trials out until `total` are open, as JobRunner does; returns the tasks in the order of their
// batches.
std::vector<size_t> give_out(std::vector<TaskStanding>& tasks, int64_t even_share, int64_t total) {
  std::vector<size_t> order;
  while (total > 0) {
    const size_t next = *next_task(tasks, even_share, static_cast<int64_t>(order.size()));
    const int64_t batch = std::min(total, next_batch(tasks[next], even_share, /*most=*/16));
    tasks[next].open += batch;
    total -= batch;
    order.push_back(next);
  }
  return order;
}

TEST(TaskAllocator, FourTrialsForEachOfThreeTasksAreSharedAndNotTwelveForOne) {
  std::vector<TaskStanding> tasks(3);
  EXPECT_EQ(give_out(tasks, 4, 12), (std::vector<size_t>{0, 1, 2, 0, 1, 2}));
  for (const TaskStanding& t : tasks) EXPECT_EQ(t.open, 4);
}

TEST(TaskAllocator, EveryTaskGetsItsDefaultBeforeAnyGetsASecondTrialTheMostUsedFirst) {
  std::vector<TaskStanding> tasks(31);
  tasks[7].weight = 5;
  tasks[20].weight = 16;
  const std::vector<size_t> order = give_out(tasks, 64, 31);
  EXPECT_EQ(order[0], 20u);
  EXPECT_EQ(order[1], 7u);
  for (const TaskStanding& t : tasks) EXPECT_EQ(t.open, 1);
}

TEST(TaskAllocator, BatchesAreWholeWhereTheBudgetAllows) {
  TaskStanding task;
  std::vector<int64_t> batches;
  while (task.done < 96) {
    batches.push_back(next_batch(task, /*even_share=*/100, /*most=*/16));
    task.done += batches.back();
  }
  EXPECT_EQ(batches, (std::vector<int64_t>{1, 16, 16, 16, 15, 16, 16}));
}

TEST(TaskAllocator, OfTasksThatAreEquallyFarTheOneWithTheMostTimeToSaveComesFirst) {
  std::vector<TaskStanding> tasks{known(100, 1), known(900, 1), known(300, 1, /*weight=*/4)};
  for (TaskStanding& t : tasks) t.done = 1;
  EXPECT_EQ(next_task(tasks, kShare, 0), 2u);
  tasks[2].open = 16;
  EXPECT_EQ(next_task(tasks, kShare, 1), 1u);
}

TEST(TaskAllocator, EveryTaskGetsItsFloorTheLeastAdvancedFirst) {
  std::vector<TaskStanding> tasks{known(1e9, 1), known(10, 0.01), known(10, 0.01)};
  tasks[1].done = 60;
  tasks[2].done = 16;
  tasks[2].open = 8;
  EXPECT_EQ(next_task(tasks, kShare, 0), 2u);
  tasks[2].open = 64;
  EXPECT_EQ(next_task(tasks, kShare, 1), 1u);
  tasks[1].done = 80;
  EXPECT_EQ(next_task(tasks, kShare, 2), 0u);
}

TEST(TaskAllocator, ThenTheGreatestExpectedSavingWeightedByUseCount) {
  std::vector<TaskStanding> tasks{known(1000, 0.10), known(5000, 0.03), known(400, 0.10, 2)};
  EXPECT_EQ(next_task(tasks, kShare, 1), 1u);  // 100, 150, 80 ns
  tasks[2].weight = 4;                         // 160 ns
  EXPECT_EQ(next_task(tasks, kShare, 1), 2u);
  tasks[2].settled = true;
  EXPECT_EQ(next_task(tasks, kShare, 1), 1u);
  tasks[1].open = 100;  // halves it to 75
  EXPECT_EQ(next_task(tasks, kShare, 1), 0u);
}

TEST(TaskAllocator, ATaskWithoutARightResultIsTriedAgainInEveryFourthTurn) {
  std::vector<TaskStanding> tasks{known(1000, 0.5), known(0, 1), known(0, 1)};
  tasks[2].done = 90;
  int tried = 0;
  for (int turn = 0; turn < 100; ++turn) {
    const size_t next = *next_task(tasks, kShare, turn);
    tasks[next].done += 16;
    tried += next != 0 ? 1 : 0;
  }
  EXPECT_EQ(tried, 25);
  EXPECT_NEAR(static_cast<double>(tasks[1].done), static_cast<double>(tasks[2].done), 32);
  tasks[0].settled = true;  // nothing else to do: all turns are theirs
  EXPECT_NE(next_task(tasks, kShare, 1), 0u);
}

TEST(TaskAllocator, NothingWhenAllAreSettled) {
  std::vector<TaskStanding> tasks{known(1000, 0.5), known(0, 1)};
  for (TaskStanding& t : tasks) t.settled = true;
  EXPECT_EQ(next_task(tasks, kShare, 0), std::nullopt);
  EXPECT_EQ(next_task({}, kShare, 0), std::nullopt);
}

}  // namespace
}  // namespace tuner
