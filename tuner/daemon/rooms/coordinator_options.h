// CoordinatorOptions: how a coordinator leases, waits and searches, and what tests put in its place.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler_core/base/clock.h"
#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "db/blobs/blob_store.h"
#include "db/blobs/made_index.h"
#include "db/resolve/resolve.h"
#include "db/store.h"
#include "tuner/daemon/edge/releases.h"
#include "tuner/daemon/search/job_runner.h"
#include "tuner/daemon/search/task_space.h"
#include "tuner/daemon/tables/lease_table.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

// A name that nobody guesses: 32 hexadecimal digits.
std::string random_session();

struct CoordinatorOptions {
  LeaseOptions leases;
  int search_threads = 0;        // 0: one for each CPU that the search may use, at most four
  bool resume_jobs = false;      // take up the store's unfinished jobs at start
  int64_t max_wait_ms = 20'000;  // longest Sync
  int64_t take_over_ms = 5'000;  // a worker silent for so long may lose its id to another process
  int64_t no_worker_hint_ms = 5'000;
  int64_t rerun_limit_ms = 300'000;
  RaceOptions race;
  int64_t race_wait_ms = 30'000;  // for a worker that can race, when the last one has gone
  TaskSpaceFactory make_space = make_task_space;
  std::function<Status(const JobRow::Task&)> check_task = tuner::check_task;
  std::vector<TemplateVersion> templates = own_templates();  // of this daemon's release
  StrategyFactory make_search = make_strategy;
  // Both outlive the coordinator. Without the first: no builders and no runners (an embedded daemon); without
  // the second what is known of builds ends with the daemon.
  BlobStore* blobs = nullptr;
  MadeIndex* made = nullptr;
  // Simulations (tests/sim): no threads of its own, turn() does their work; the same names and times again.
  bool by_hand = false;
  std::function<std::string()> make_session = random_session;
  std::function<int64_t()> wall_us = wall_time_us;
  // What a record of the target would say today, by which Query judges what is stale (ResolverOptions).
  std::function<Present(const Target& target)> present;
};

}  // namespace tuner
