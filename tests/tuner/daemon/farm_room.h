// What a room of the coordinator stands in (tuner/daemon/README.md): a farm's state and a store, without a
// coordinator and without threads. EmptyFarm: nobody is there. FarmRoom: worker "w" has attempt 1 of trial
// `trial_`, the only one of job j1.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/store.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/analytic_task.h"
#include "tuner/daemon/rooms/document_office.h"
#include "tuner/daemon/rooms/job_news.h"
#include "tuner/daemon/rooms/wake.h"

namespace tuner::testing {

class EmptyFarm : public ::testing::Test {
 protected:
  explicit EmptyFarm(CoordinatorOptions options = {}) : options_(std::move(options)) {}

  struct : Clock {
    int64_t now = 1'000'000;
    int64_t now_ms() const override { return now; }
  } clock_;
  TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = Store::open(folder_.file("db"), Store::Mode::kWrite).value();
  const CoordinatorOptions options_;
  Guarded<FarmState> farm_{options_};
  DocumentOffice documents_{*store_, farm_};
  DaemonMetrics metrics_;
};

class FarmRoom : public EmptyFarm {
 protected:
  explicit FarmRoom(CoordinatorOptions options = {}) : EmptyFarm(std::move(options)) {
    const JobRow row{.id = "j1", .tasks = {{kAnalyticKey, kAnalyticTarget}}, .search = "random"};
    EXPECT_TRUE(store_->add_job(row).is_ok());
    std::vector<TrialRow> trials{{.job_id = "j1", .template_name = "t", .config = "a=1"}};
    EXPECT_TRUE(store_->add_trials(trials).is_ok());
    trial_ = trials[0].id;
    const auto leased = store_->lease_trials({LeaseWish{trial_, life_.worker_id, life_.incarnation}}).value();
    EXPECT_EQ(leased.size(), 1);
    const Locked farm(farm_);
    farm->jobs.add(row, 1, clock_.now);
    EXPECT_TRUE(farm->workers.enter("session", {.life = life_, .targets = {kAnalyticTarget}}, clock_.now));
    farm->leases.enqueue({.id = trial_,
                          .job_id = "j1",
                          .work = {.task = row.tasks[0], .template_name = "t", .config = "a=1"}});
    const LeaseTable::Asker asker{.worker_id = life_.worker_id,
                                  .incarnation = life_.incarnation,
                                  .serves = [](const Needs&) { return true; },
                                  .others = [](const Needs&, const std::set<std::string>&) { return false; }};
    EXPECT_EQ(farm->leases.reserve(asker, {}, 1).size(), 1);
    EXPECT_TRUE(farm->leases.grant(trial_, life_, 1, 1, clock_.now));
  }
  Wake wake() {
    return {.desk = [this] { ++desk_woken_; },
            .search = [this](const std::string& job) { searches_woken_.push_back(job); }};
  }
  // One more trial of j1, which waits. Returns its id.
  std::string queue_trial(const std::string& config) {
    std::vector<TrialRow> rows{{.job_id = "j1", .template_name = "t", .config = config}};
    EXPECT_TRUE(store_->add_trials(rows).is_ok());
    const Work work{.task = {kAnalyticKey, kAnalyticTarget}, .template_name = "t", .config = config};
    Locked(farm_)->leases.enqueue({.id = rows[0].id, .job_id = "j1", .work = work});
    return rows[0].id;
  }
  TrialRow row() const { return store_->trial(trial_)->trial; }
  std::vector<MeasureRecord> records() const { return store_->records(trial_).value(); }
  bool is_open() const { return Locked(farm_)->leases.find(trial_) != nullptr; }

  const WorkerLife life_{"w", "1"};
  JobNews news_{*store_, farm_, clock_, metrics_};
  int desk_woken_ = 0;
  std::vector<std::string> searches_woken_;  // ids of jobs
  std::string trial_;
};

}  // namespace tuner::testing
