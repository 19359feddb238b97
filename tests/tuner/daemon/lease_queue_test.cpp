// Which of what waits a worker gets next: tenants, priorities, what was put back, batches of one job.
#include "tuner/daemon/tables/lease_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tuner {
namespace {

const Needs kCpu{.target = "cpu"}, kGpu{.target = "gpu"};

struct Queue {
  LeaseQueue queue;
  Shares shares;
  std::set<std::string> refused;  // ids that the worker may not have

  void put(const std::string& id, const std::string& job, LeaseQueue::Item item = {}) {
    item.id = id;
    item.job_id = job;
    if (item.needs.target.empty()) item.needs = kCpu;
    queue.put(item);
    shares.wants(item.tenant, 0);
  }
  std::string next(const std::string& worker = "w", int64_t now_ms = 0) {
    return queue
        .choose({.serves = [](const Needs& needs) { return needs == kCpu; },
                 .may_have = [&](const std::string& id) { return !refused.contains(id); },
                 .worker_id = worker,
                 .now_ms = now_ms},
                shares)
        .value_or("nothing");
  }
};

TEST(LeaseQueue, TheOldestComesFirst) {
  Queue q;
  q.put("t1", "j1");
  q.put("t2", "j1");
  EXPECT_EQ(q.next(), "t1");
  EXPECT_EQ(q.next(), "t2");
  EXPECT_EQ(q.next(), "nothing");
  EXPECT_EQ(q.queue.size(), 0u);
}

TEST(LeaseQueue, AWorkerGetsOnlyWhatItServesAndMayHave) {
  Queue q;
  q.put("t1", "j1", {.needs = kGpu});
  q.put("t2", "j2");
  q.put("t3", "j2");
  q.refused = {"t2"};
  EXPECT_EQ(q.next(), "t3");
  EXPECT_EQ(q.next(), "nothing");
  EXPECT_EQ(q.queue.size(), 2u);
}

TEST(LeaseQueue, WhatAWorkerCannotBuildIsNotInTheWayOfWhatItCanAndTheOrderStays) {
  const Needs a{.target = "cpu", .templates = {{"a", 1}}}, b{.target = "cpu", .templates = {{"b", 1}}};
  LeaseQueue queue;
  Shares shares;
  for (const auto& [id, needs] :
       {std::pair("t1", b), std::pair("t2", a), std::pair("t3", b), std::pair("t4", a)})
    queue.put({.id = id, .needs = needs, .job_id = "j1"});
  shares.wants("", 0);
  const auto next = [&](const std::set<Needs>& served) {
    int asked = 0;
    const auto id = queue.choose({.serves = [&](const Needs& needs) { return served.contains(needs); },
                                  .may_have = [&](const std::string&) { return ++asked, true; },
                                  .worker_id = "w"},
                                 shares);
    EXPECT_LE(asked, 2) << "one a line";
    return id.value_or("nothing");
  };
  std::map<Needs, size_t> waiting;
  for (const LeaseQueue::JobLine& line : queue.lines_of("j1")) waiting[line.needs] = line.count;
  EXPECT_EQ(waiting, (std::map<Needs, size_t>{{a, 2}, {b, 2}}));
  EXPECT_TRUE(queue.lines_of("j2").empty());
  EXPECT_EQ(queue.ids_of("j1", b), (std::vector<std::string>{"t1", "t3"}));
  EXPECT_EQ(next({a}), "t2");
  EXPECT_EQ(next({a, b}), "t1") << "the oldest of all lines";
  EXPECT_EQ(next({a, b}), "t3");
  EXPECT_EQ(next({b}), "nothing");
  EXPECT_EQ(next({a, b}), "t4");
}

TEST(LeaseQueue, AWorkerStaysWithAJobForABatchAndThenTakesTheOldest) {
  Queue q;
  for (int i = 0; i < 40; ++i) {
    q.put("a" + std::to_string(i), "ja");
    q.put("b" + std::to_string(i), "jb");
  }
  std::string jobs;
  for (int i = 0; i < 40; ++i) jobs += q.next().front();
  EXPECT_EQ(jobs, std::string(16, 'a') + std::string(16, 'b') + std::string(8, 'a'));
}

TEST(LeaseQueue, ABatchNeverKeepsAWorkerIdle) {
  Queue q;
  q.put("a1", "ja");
  q.put("b1", "jb");
  EXPECT_EQ(q.next(), "a1");
  EXPECT_EQ(q.next(), "b1");
}

TEST(LeaseQueue, EachWorkerHasABatchOfItsOwn) {
  Queue q;
  q.put("b1", "jb");
  q.put("a1", "ja");
  q.put("a2", "ja");
  q.put("b2", "jb");
  EXPECT_EQ(q.next("one"), "b1");
  EXPECT_EQ(q.next("two"), "a1");
  EXPECT_EQ(q.next("one"), "b2");
  EXPECT_EQ(q.next("two"), "a2");
}

TEST(LeaseQueue, PriorityComesBeforeAge) {
  Queue q;
  q.put("low", "j1", {.priority = -1});
  q.put("usual", "j2");
  q.put("high", "j3", {.priority = 1});
  EXPECT_EQ(q.next(), "high");
  EXPECT_EQ(q.next(), "usual");
  EXPECT_EQ(q.next(), "low");
}

TEST(LeaseQueue, WaitingRaisesThePriority) {
  Queue q;
  q.put("low", "j1", {.priority = -1, .queued_ms = 0});
  q.put("high", "j3", {.priority = 1, .queued_ms = 500'000});
  EXPECT_EQ(q.next("w", 599'999), "high");
  q.put("high again", "j3", {.priority = 1, .queued_ms = 599'999});
  EXPECT_EQ(q.next("another", 600'000), "low") << "as high as the other now, and older";
}

TEST(LeaseQueue, WhatWasPutBackComesFirstAlsoWithinABatch) {
  Queue q;
  q.put("a1", "ja");
  q.put("a2", "ja");
  q.put("b1", "jb");
  EXPECT_EQ(q.next(), "a1");
  q.put("b0", "jb", {.first = true});
  EXPECT_EQ(q.next(), "b0");
}

TEST(LeaseQueue, WhatSomebodyWaitsForComesBeforePriorities) {
  Queue q;
  q.put("high", "j1", {.priority = 1});
  q.put("rerun", "rerun t1", {.urgent = true});
  EXPECT_EQ(q.next(), "rerun");
}

TEST(LeaseQueue, TheTenantWhoseTurnItIsComesBeforeAllElse) {
  Queue q;
  q.shares.set({{"heavy", {.weight = 2}}});
  for (int i = 0; i < 30; ++i) {
    q.put("h" + std::to_string(i), "jh", {.tenant = "heavy"});
    q.put("l" + std::to_string(i), "jl", {.tenant = "light", .priority = 1});
  }
  std::map<char, int> given;
  for (int i = 0; i < 30; ++i) {
    const std::string id = q.next();
    ++given[id.front()];
    q.shares.charge(id.front() == 'h' ? "heavy" : "light");
  }
  EXPECT_EQ(given['h'], 20);
  EXPECT_EQ(given['l'], 10);
}

TEST(LeaseQueue, ATenantWithoutRoomIsPassedOver) {
  Queue q;
  q.shares.set({{"full", {.most_leases = 1}}});
  q.put("f1", "j1", {.tenant = "full"});
  q.put("o1", "j2", {.tenant = "other"});
  q.shares.charge("full");
  q.shares.charge("other");
  EXPECT_EQ(q.next(), "o1");
  EXPECT_EQ(q.next(), "nothing");
}

TEST(LeaseQueue, SaysWhatWaitsAndSinceWhen) {
  Queue q;
  EXPECT_EQ(q.queue.oldest_queued_ms(), std::nullopt);
  q.put("t1", "j1", {.tenant = "a", .queued_ms = 70});
  q.put("t2", "j2", {.tenant = "b", .queued_ms = 50});
  q.put("t3", "j2", {.tenant = "b", .queued_ms = 90});
  EXPECT_EQ(q.queue.oldest_queued_ms(), 50);
  EXPECT_EQ(q.queue.waiting_by_tenant(), (std::map<std::string, int64_t>{{"a", 1}, {"b", 2}}));
  q.queue.take("t2");
  q.queue.take("t2");
  EXPECT_EQ(q.queue.oldest_queued_ms(), 70);
  EXPECT_FALSE(q.queue.contains("t2"));
}

}  // namespace
}  // namespace tuner
