#include "tuner/daemon/rooms/farm_view.h"

#include <map>
#include <utility>

#include "proto/convert.h"
#include "tuner/daemon/edge/messages.h"

namespace tuner {
namespace {

// Tenants that have something, or had. A farm without tenants has one without a name, which nobody wants to
// see.
void add_tenants(const FarmState& farm, const Scope& scope, v1::DaemonSummary& daemon) {
  std::map<std::string, v1::TenantSummary> tenants;
  for (const auto& [tenant, use] : farm.leases.shares().uses()) {
    v1::TenantSummary& out = tenants[tenant];
    out.set_device_s(use.device_ms / 1000);
    out.set_leased(use.leases);
  }
  for (const auto& [tenant, count] : farm.leases.waiting_by_tenant()) tenants[tenant].set_queued(count);
  if (tenants.size() == 1 && tenants.begin()->first.empty()) return;
  for (auto& [tenant, out] : tenants) {
    if (scope && tenant != *scope) continue;
    out.set_tenant(tenant);
    out.set_weight(farm.leases.shares().of(tenant).weight);
    *daemon.add_tenants() = std::move(out);
  }
}

}  // namespace

void list_known(const FarmState& farm, const Scope& scope, const DaemonNow& now, uint64_t results,
                v1::ListReply* reply) {
  for (const auto& [id, job] : farm.jobs.all()) {
    if (scope && job->row().tenant != *scope) continue;
    v1::JobSummary* const out = reply->add_jobs();
    out->set_job_id(id);
    to_proto(job->row().tasks.front(), out->add_tasks());
    out->set_task_count(static_cast<int>(job->row().tasks.size()));
    out->set_search(job->row().search);
    out->set_seed(job->row().seed);
    out->set_tenant(job->row().tenant);
    out->set_priority(job->row().priority);
    out->set_state(to_proto(job->state()));
    out->set_trials(job->trials());
    if (job->progress_version() == 0) continue;
    v1::Progress* const progress = out->mutable_progress();
    to_proto(job->report(), progress);
    progress->clear_phases();
    out->set_trials_done(progress->trials_done());
    out->set_best_gflops(progress->best_gflops());
    for (const Races::Race* race : farm.races.of_job(id))
      if (!race->ended) to_proto(*race, progress->add_races());
  }
  v1::DaemonSummary* const daemon = reply->mutable_daemon();
  daemon->set_queued(static_cast<int64_t>(now.queued));
  daemon->set_leased(static_cast<int64_t>(now.leased));
  daemon->set_oldest_queued_s(now.oldest_queued_s);
  daemon->set_results(static_cast<int64_t>(results));
  daemon->set_up_s(now.up_s);
  add_tenants(farm, scope, *daemon);
}

void list_workers(const FarmState& farm, int64_t now_ms, v1::ListWorkersReply* reply) {
  for (const Workers::Entry& worker : farm.workers.list(now_ms)) {
    v1::WorkerSummary* const summary = reply->add_workers();
    to_proto(worker, farm.leases.leases_of(worker.offer.life), summary);
    summary->set_orders(static_cast<int>(farm.builds.orders_of(worker.offer.life)));
  }
}

DaemonNow now_of(const FarmState& farm, const BlobStore* blobs, int64_t now_ms) {
  DaemonNow now;
  now.queued = farm.leases.queued();
  now.leased = farm.leases.leased();
  now.oldest_queued_s = static_cast<double>(now_ms - farm.leases.oldest_queued_ms(now_ms)) / 1000;
  now.races_open = farm.races.open_races();
  now.orders_waiting = farm.builds.waiting();
  now.orders_at_builders = farm.builds.at_builders();
  if (blobs != nullptr) now.artifact_bytes = blobs->bytes();
  now.up_s = static_cast<double>(now_ms - farm.started_ms) / 1000;
  for (const auto& [id, job] : farm.jobs.all()) {
    now.jobs_queued += job->state() == JobState::kQueued ? 1 : 0;
    now.jobs_running += job->state() == JobState::kRunning ? 1 : 0;
  }
  for (const Workers::Entry& worker : farm.workers.list(now_ms)) {
    if (!worker.here)
      ++now.workers_silent;
    else if (!worker.unfit.empty())
      ++now.workers_unfit;
    else if (worker.paused_ms > 0)
      ++now.workers_paused;
    else
      ++now.workers_here;
  }
  return now;
}

}  // namespace tuner
