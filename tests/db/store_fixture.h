// A database in a folder of its own, and rows with recognisable contents.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "db/store.h"
#include "tests/support/temporary_folder.h"

namespace tuner {

// The one place that chooses the engine under test.
inline std::unique_ptr<Store> must_open(const std::string& path, Store::Mode mode = Store::Mode::kWrite) {
  Result<std::unique_ptr<Store>> store = Store::open(path, mode);
  CHECK(store.is_ok()) << store.message();
  return *std::move(store);
}

inline JobRow job_row(const std::string& id, std::vector<JobRow::Task> tasks = {{"v1 work", "cpu one"}}) {
  return {.id = id,
          .request_id = "request-" + id,
          .tasks = std::move(tasks),
          .trials = 64,
          .search = "random",
          .seed = 0xffffffffffffffffu,
          .submitted_at_us = 1'700'000'000'000'000};
}

inline TrialRow trial_row(const std::string& job, const std::string& config, int task_index = 0) {
  return {.job_id = job,
          .task_index = task_index,
          .template_name = "toy_x86",
          .template_version = 3,
          .config = config,
          .rng_counter = 0xf000000000000001u,
          .model_digest = "m1"};
}

inline MeasureRecord ok_record(const std::string& trial_id, std::vector<double> run_ns) {
  MeasureRecord r{.trial_id = trial_id, .outcome = Outcome::kOk, .run_ns = run_ns};
  r.cpu_ns = std::move(run_ns);
  r.sentinel_before_ns = 100.25;
  r.sentinel_after_ns = 101.5;
  r.build_ms = 12.5;
  r.run_ms = 30;
  r.queue_ms = 0.125;
  r.artifact_digest = "d1g35t";
  r.max_error = 0.1;
  r.peak_gflops = 83.2;
  r.environment = {"cpu X", "llvm 22", 1, "w1", "inc1", "host1"};
  r.options.repeats = 5;
  r.options.precision = 0.125;
  r.finished_at_us = 1'700'000'001'000'000;
  return r;
}

// Adds one trial a config and returns their ids.
inline std::vector<std::string> add_trials(Store& store, const std::string& job,
                                           const std::vector<std::string>& configs, int task_index = 0) {
  std::vector<TrialRow> rows;
  rows.reserve(configs.size());
  for (const std::string& config : configs) rows.push_back(trial_row(job, config, task_index));
  const Status status = store.add_trials(rows);
  CHECK(status.is_ok()) << status.message();
  std::vector<std::string> ids;
  ids.reserve(rows.size());
  for (const TrialRow& row : rows) ids.push_back(row.id);
  return ids;
}

#define ASSERT_OK(expr)                                                  \
  do {                                                                   \
    const ::tuner::Status status_of_assert = (expr);                     \
    ASSERT_TRUE(status_of_assert.is_ok()) << status_of_assert.message(); \
  } while (0)

}  // namespace tuner
