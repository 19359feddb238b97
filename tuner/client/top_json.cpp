#include "tuner/client/top_json.h"

#include <nlohmann/json.hpp>

#include "proto/convert.h"

namespace tuner {
namespace {

nlohmann::ordered_json json_of(const v1::JobSummary& job) {
  const v1::Progress& p = job.progress();
  const Result<JobState> state = from_proto(job.state(), "state");
  return {{"job", job.job_id()},
          {"state", state ? std::string(job_state_name(*state)) : "unknown"},
          {"workload", job.tasks().empty() ? "" : job.tasks(0).workload_key()},
          {"task_count", job.task_count()},
          {"trials_done", p.trials_done()},
          {"trials_total", p.trials_total()},
          {"trials_per_s", p.trials_per_second()},
          {"best_ns", p.best_ns()},
          {"left_s", p.eta_s()},
          {"races", p.races_size()}};
}

}  // namespace

std::string top_json(const TopLook& look) {
  using Json = nlohmann::ordered_json;
  const v1::DaemonSummary& d = look.list.daemon();
  Json jobs = Json::array(), workers = Json::array(), tenants = Json::array();
  for (const v1::TenantSummary& t : d.tenants())
    tenants.push_back({{"tenant", t.tenant()},
                       {"weight", t.weight()},
                       {"device_s", t.device_s()},
                       {"leases", t.leased()},
                       {"queued", t.queued()}});
  for (const v1::JobSummary& job : look.list.jobs()) jobs.push_back(json_of(job));
  for (const v1::WorkerSummary& w : look.workers.workers())
    workers.push_back({{"worker", w.worker_id()},
                       {"host", w.host()},
                       {"leases", w.leases()},
                       {"trials_done", w.trials_done()},
                       {"silent_s", w.silent_s()},
                       {"unfit", w.unfit()},
                       {"paused_s", w.paused_s()},
                       {"paused_why", w.paused_why()},
                       {"quarantined", w.quarantined()},
                       {"other_release", w.other_release()}});
  const Json all{{"daemon",
                  {{"address", look.daemon},
                   {"up_s", d.up_s()},
                   {"queued", d.queued()},
                   {"oldest_queued_s", d.oldest_queued_s()},
                   {"leased", d.leased()},
                   {"results", d.results()},
                   {"trials_per_s", look.trials_per_second}}},
                 {"tenants", tenants},
                 {"jobs", jobs},
                 {"workers", workers}};
  return all.dump(2);
}

}  // namespace tuner
