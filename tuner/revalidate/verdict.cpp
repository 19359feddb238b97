#include "tuner/revalidate/verdict.h"

#include <algorithm>
#include <memory>

#include "compiler_core/base/statistics.h"
#include "tuner/client/job_watch.h"
#include "tuner/search/known_best.h"

namespace tuner {
namespace {

bool same_config(const TunedConfig& a, const TunedConfig& b) {
  return a.template_name == b.template_name && a.template_version == b.template_version &&
         a.config == b.config;
}

}  // namespace

Result<RevalidateVerdict> measure_again(const DaemonClient& client, const RevalidateItem& item, int top,
                                        std::chrono::steady_clock::time_point deadline,
                                        const std::function<bool()>& interrupted, ProgressView& view) {
  RevalidateVerdict verdict;
  const JobRow job{.request_id = new_request_id(),
                   .tasks = {item.task},
                   .trials = top + 1,
                   .search = std::string(kKnownBestStrategy)};
  ASSIGN_OR_RETURN(const v1::SubmitReply reply, client.submit(job, /*fresh=*/true));
  verdict.job_id = reply.job_id();
  const std::unique_ptr<JobWatch> watch = client.watch(verdict.job_id, 0);
  while (true) {
    const JobWatch::Next next = watch->next(100);
    if (interrupted() || std::chrono::steady_clock::now() >= deadline) {
      static_cast<void>(
          client.cancel(verdict.job_id, kWindUp_s));  // the database keeps it cancelled or queued
      return verdict;
    }
    RETURN_IF_ERROR(client.worker_state());
    if (next.event) {
      view.show(*next.event);
      if (next.event->state() == v1::JOB_FAILED) verdict.error = next.event->message();
    } else if (next.ended) {
      RETURN_IF_ERROR(next.status);
      break;
    }
  }
  verdict.finished = true;
  ASSIGN_OR_RETURN(verdict.after, client.tuned(item.task));
  return verdict;
}

Status look_up(const Store& store, const RevalidateItem& item, RevalidateVerdict& verdict) {
  ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> trials, store.trials(verdict.job_id));
  ASSIGN_OR_RETURN(const std::vector<RaceRow> races, store.races(verdict.job_id));
  for (const TrialWithRecord& t : trials) {
    if (t.trial.template_name != item.before.template_name || t.trial.config != item.before.config ||
        !t.record || t.record->outcome != Outcome::kOk)
      continue;
    verdict.old_config_now_ns = record_time_ns(*t.record);
    for (const RaceRow& race : races)
      for (const RaceFinalist& f : race.finalists)
        if (f.trial_id == t.trial.id) {
          verdict.tied = std::ranges::find(race.tie_set, f.trial_id) != race.tie_set.end();
          verdict.old_config_now_ns = race.winner_trial_id == f.trial_id ? race.time_ns : raced_time_ns(f);
        }
  }
  return Status::ok();
}

std::string_view ending(const RevalidateItem& item, const RevalidateVerdict& v) {
  if (!v.finished) return "unfinished";
  if (!v.after || !v.error.empty()) return "failed";
  return same_config(item.before, *v.after) ? "kept" : "replaced";
}

}  // namespace tuner
