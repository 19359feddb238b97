// A database of jobs whose times are a formula, for tests of their reports.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "db/store.h"
#include "tests/support/temporary_folder.h"
#include "tuner/daemon/search/task_space.h"
#include "tuner/report/report_facts.h"

namespace tuner::testing {

inline constexpr char kMatmul[] =
    "v1 matmul b=1 m=64 n=64 k=64 ta=0 tb=0 bias=0 act=none dtype=float32 const=b";
inline constexpr char kSoftmax[] = "v1 softmax rows=16 columns=64 dtype=float32";
inline constexpr char kTarget[] = "llvm -mcpu=haswell -threads=1";
inline constexpr char kNasty[] = "</script><script>alert(\"x\")</script><!-- & 'quoted' \xff";

class ReportTest : public ::testing::Test {
 protected:
  void add_job(const std::string& id, const std::string& search, std::vector<JobRow::Task> tasks) {
    JobRow job{.id = id, .request_id = id, .tasks = std::move(tasks), .trials = 64, .search = search};
    job.submitted_at_us = 1'790'000'000'000'000;
    ASSERT_TRUE(store_->add_job(job).is_ok());
  }
  // `n` configs of the task's space, whose time grows with the sum of their features; every 9th fails.
  std::vector<std::string> measure(const std::string& job, int task_index, int n, uint64_t seed,
                                   const std::string& hardware = "machine", int64_t begin_us = 0) {
    const JobRow row = store_->job(job).value();
    const TaskSpace space = make_task_space(row.tasks[static_cast<size_t>(task_index)]).value();
    std::mt19937_64 random(seed);
    std::vector<TrialRow> trials;
    for (int i = 0; i < n; ++i) {
      const size_t part = random() % space.search.parts.size();
      const ConfigSpace& of = *space.search.parts[part].space;
      const bool first = i == 0;
      trials.push_back(
          {.job_id = job,
           .task_index = task_index,
           .template_name = space.search.parts[first ? 0 : part].template_name,
           .template_version = space.template_versions[first ? 0 : part],
           .config =
               first ? space.search.parts[0].space->at(space.search.parts[0].space->default_index()).to_text()
                     : of.at(of.sample(random)).to_text()});
    }
    EXPECT_TRUE(store_->add_trials(trials).is_ok());
    std::vector<MeasureRecord> records;
    std::vector<std::string> ids;
    for (size_t i = 0; i < trials.size(); ++i) {
      double sum = 0;
      const Config config = config_from_text(trials[i].config).value();
      for (const auto& [knob, value] : config.values()) sum += std::log2(1.0 + static_cast<double>(value));
      MeasureRecord r{.trial_id = trials[i].id};
      if (i % 9 == 8) {
        r.outcome = i % 2 == 0 ? Outcome::kBuildError : Outcome::kCrashed;
        r.message = kNasty;
      } else {
        const double ns = 2000 + 300 * std::abs(sum - 9);
        r.run_ns = r.cpu_ns = {ns, ns * 1.01, ns * 0.99};
        r.run_ms = 12, r.peak_gflops = 200;
      }
      r.build_ms = 30;
      r.environment = {.hardware = hardware,
                       .toolchain = "llvm 1 codegen 1",
                       .worker_id = "w",
                       .worker_incarnation = "1",
                       .host = "<b>host</b>"};
      r.finished_at_us = 1'790'000'000'000'000 + begin_us + static_cast<int64_t>(i) * 50'000;
      records.push_back(r);
      ids.push_back(trials[i].id);
    }
    EXPECT_TRUE(store_->add_records(records).is_ok());
    return ids;
  }
  // The first of `ids` wins, the second ties, the last is the default.
  void race(const std::string& job, int task_index, const std::vector<std::string>& ids,
            const std::string& uncertified_why = "") {
    RaceRow row{
        .job_id = job, .task_index = task_index, .winner_trial_id = ids[0], .tie_set = {ids[0], ids[1]}};
    for (size_t i = 0; i < ids.size(); ++i) {
      RaceFinalist f{.trial_id = ids[i]};
      for (int s = 0; s < 12; ++s) {
        f.samples_ns.push_back(1900 + 40.0 * static_cast<double>(i) + s % 3);
        f.sentinel_ns.push_back(500);
        f.process.push_back(s / 4);
      }
      row.finalists.push_back(std::move(f));
    }
    row.time_ns = 1900, row.time_low_ns = 1890, row.time_high_ns = 1915;
    row.ratio = 3.8, row.ratio_low = 3.7, row.ratio_high = 3.9, row.regret_bound = 0.004;
    row.default_trial_id = ids.back(), row.default_time_ns = 2400;
    row.environment.hardware = "machine";
    row.certified = uncertified_why.empty();
    row.uncertified_why = uncertified_why;
    const Status added = store_->add_race(row);
    ASSERT_TRUE(added.is_ok()) << added.message();
  }
  nlohmann::ordered_json facts(const std::string& job) {
    const auto made = report_facts(*store_, job, {.measure_roofs = false});
    EXPECT_TRUE(made.is_ok()) << made.message();
    return made ? *made : nlohmann::ordered_json();
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = Store::open(folder_.file("db"), Store::Mode::kWrite).value();
};

}  // namespace tuner::testing
