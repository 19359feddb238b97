// What rooms stand in that think about jobs (tuner/daemon/README.md): a farm without workers, its searches by
// hand or in two threads, and the rooms that these need. No coordinator, no desk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/tuner/daemon/farm_room.h"
#include "tuner/daemon/rooms/search_threads.h"

namespace tuner::testing {

class SearchRoom : public EmptyFarm {
 protected:
  static CoordinatorOptions analytic_options(bool by_hand) {
    return {.search_threads = 2,
            .no_worker_hint_ms = 5'000,
            .make_space = [](const JobRow::Task&) { return analytic_space(6); },
            .check_task = [](const JobRow::Task&) { return Status::ok(); },
            .by_hand = by_hand};
  }
  explicit SearchRoom(bool by_hand = true) : EmptyFarm(analytic_options(by_hand)) {}

  std::shared_ptr<Job> job(const std::string& id) const { return Locked(farm_)->jobs.find(id); }
  size_t queued() const { return Locked(farm_)->leases.queued(); }
  std::vector<TrialWithRecord> open_trials(const std::string& job) const {
    return store_->trials(TrialQuery{.job = job, .open = true}).value();
  }

  int desk_woken_ = 0;
  const Answers answers_{*store_, nullptr};
  Learner learner_{*store_};
  JobNews news_{*store_, farm_, clock_, metrics_};
  BuildOffice builds_{farm_, clock_, options_, documents_, [] {}};
  const Wake wake_{.desk = [this] { ++desk_woken_; },
                   .search = [this](const std::string& id) { search_.wake(id); }};
  LossOffice losses_{*store_, farm_, options_, metrics_, news_, wake_};
  RaceOffice races_{{*store_, farm_, clock_, options_, news_, answers_}, wake_};
  SearchThreads search_{
      {*store_, farm_, clock_, options_, metrics_, news_, answers_, learner_, builds_, losses_, races_},
      wake_.desk};
};

}  // namespace tuner::testing
