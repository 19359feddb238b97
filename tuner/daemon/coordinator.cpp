#include "tuner/daemon/coordinator.h"

#include <map>
#include <string>
#include <utility>

#include "tuner/daemon/edge/job_file_call.h"
#include "tuner/daemon/rooms/farm_view.h"

namespace tuner {

Coordinator::Coordinator(Store& store, const Clock& clock, CoordinatorOptions options)
    : clock_(clock),
      options_(std::move(options)),
      answers_(store, options_.present),
      learner_(store),
      farm_(options_),
      news_(store, farm_, clock_, metrics_),
      documents_(store, farm_),
      build_office_(farm_, clock_, options_, documents_, wake().desk),
      referee_(store, farm_, clock_, options_, metrics_),
      loss_office_(store, farm_, options_, metrics_, news_, wake()),
      result_intake_({store, farm_, clock_, options_, metrics_, referee_, loss_office_, news_}, wake()),
      leasing_({store, farm_, clock_, metrics_, news_, build_office_}),
      desk_(
          {farm_, clock_, options_, metrics_, news_, build_office_, loss_office_, result_intake_, leasing_}),
      race_office_({store, farm_, clock_, options_, news_, answers_}, wake()),
      search_({store, farm_, clock_, options_, metrics_, news_, answers_, learner_, build_office_,
               loss_office_, race_office_},
              wake().desk),
      reception_({farm_, clock_, options_, metrics_, build_office_, loss_office_}, wake().desk),
      job_desk_({store, farm_, clock_, options_, news_, race_office_, search_, documents_}),
      watch_desk_(store, farm_, clock_, news_),
      measure_again_(store, farm_, clock_, options_, news_, documents_, wake().desk) {}

Coordinator::~Coordinator() { stop("the daemon is stopping"); }

Status Coordinator::start() {
  RETURN_IF_ERROR(loss_office_.load());
  RETURN_IF_ERROR(referee_.load());
  if (options_.resume_jobs) RETURN_IF_ERROR(job_desk_.resume_jobs());
  Locked(farm_)->started_ms = clock_.now_ms();
  desk_.start();
  search_.start();
  return Status::ok();
}

void Coordinator::stop(const std::string& reason) {
  {
    const Locked farm(farm_);
    if (!farm->stopping) farm->stop_reason = reason;
    farm->stopping = true;
  }
  news_.notify();
  search_.stop();
  desk_.stop();
}

void Coordinator::turn() {
  for (bool some = true; some;) {
    desk_.turn();
    search_.tick();
    while (search_.take_turn()) {
    }
    some = desk_.some_came();
  }
}

// How the rooms wake this one's threads.
Wake Coordinator::wake() {
  return {.desk = [this] { desk_.wake(); }, .search = [this](const std::string& id) { search_.wake(id); }};
}

void Coordinator::set_shares(ShareByTenant shares) { Locked(farm_)->leases.set_shares(std::move(shares)); }

Status Coordinator::list(const v1::ListRequest& request, v1::ListReply* reply, const Scope& scope) const {
  if (!request.known()) return answers_.list(request, scope, reply);
  const Locked farm(farm_);
  list_known(*farm, scope, now_of(*farm, options_.blobs, clock_.now_ms()), metrics_.results_stored(), reply);
  return Status::ok();
}

Status Coordinator::list_workers(v1::ListWorkersReply* reply) const {
  tuner::list_workers(*Locked(farm_), clock_.now_ms(), reply);
  return Status::ok();
}

DaemonNow Coordinator::now() const { return now_of(*Locked(farm_), options_.blobs, clock_.now_ms()); }

Status Coordinator::read_job_file(const v1::ReadJobFileRequest& request, v1::ReadJobFileReply* reply) const {
  std::map<std::string, int> cpus;
  {
    const Locked farm(farm_);
    cpus = farm->workers.cpus(clock_.now_ms());
  }
  return read_job_text(request, cpus, reply);
}

}  // namespace tuner
