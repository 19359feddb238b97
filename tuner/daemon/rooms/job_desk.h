// JobDesk: jobs come, go on, and are taken back. Any thread may call it, without the lock of the farm; one
// submit decides at a time.
//
// The store comes first: a job is in it before it is known here.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/coordinator_options.h"
#include "tuner/daemon/rooms/document_office.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/job_news.h"
#include "tuner/daemon/rooms/locked.h"
#include "tuner/daemon/rooms/race_office.h"
#include "tuner/daemon/rooms/search_threads.h"
#include "tuner/daemon/tables/work.h"
#include "tuning.pb.h"

namespace tuner {

// The stored job, if the caller may see it. NotFound: there is none, or it is another tenant's.
Result<JobRow> job_in(const Store& store, const Scope& scope, const std::string& job_id);

class JobDesk {
 public:
  // All of these outlive it.
  struct Parts {
    Store& store;
    Guarded<FarmState>& farm;
    const Clock& clock;
    const CoordinatorOptions& options;
    JobNews& news;
    RaceOffice& races;
    SearchThreads& search;
    DocumentOffice& documents;
  };
  explicit JobDesk(Parts parts) : of_(parts) {}

  // At the start: goes on with the store's unfinished jobs.
  Status resume_jobs();
  // As Coordinator::submit() and cancel().
  Status submit(const v1::SubmitRequest& request, v1::SubmitReply* reply, const Scope& scope);
  Status cancel(const v1::CancelRequest& request, v1::CancelReply* reply, const Scope& scope);

 private:
  Result<std::optional<JobRow>> earlier_job(const JobRow& wanted, bool fresh) const;
  Status start_new_job(JobRow wanted, const std::vector<KernelRow>& documents, v1::SubmitReply* reply);
  Status continue_job(JobRow existing, const JobRow& wanted, v1::SubmitReply* reply);
  Result<std::string> next_job_id();
  void add_job(FarmState& farm, JobRow row, int trials);
  Status has_room_for_job(const JobRow& wanted) const;
  // What its tenant has brought before takes no more room.
  Status has_room_for_sources(const std::string& tenant, const std::vector<KernelRow>& brought) const;

  const Parts of_;
  std::mutex submit_mutex_;       // one submit decides at a time; taken before the farm's
  int64_t last_job_number_ = -1;  // under submit_mutex_; -1: not read yet
};

}  // namespace tuner
