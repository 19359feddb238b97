#include "tuner/daemon/rooms/measure_again.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "db/options_limits.h"
#include "proto/convert.h"
#include "tuner/daemon/edge/messages.h"
#include "tuner/daemon/rooms/farm_releases.h"
#include "tuner/daemon/rooms/job_desk.h"

namespace tuner {
namespace {

constexpr std::chrono::milliseconds kLookAtCaller{
    250};  // how often a blocked call looks whether its caller has gone

}  // namespace

// Waits until `ended`, which is asked under the lock.
Status MeasureAgain::wait_for(Locked<FarmState>& farm, const std::function<bool()>& ended,
                              const TrialWithRecord& trial, const Needs& needs, const Cancelled& cancelled) {
  const int64_t limit = clock_.now_ms() + options_.rerun_limit_ms;
  while (!ended()) {
    if (farm->stopping) return farm->stopped();
    if (cancelled()) return Status(StatusCode::kAborted, "the caller has gone");
    if (const std::string why = why_unbuildable(*farm, needs, clock_.now_ms()); !why.empty())
      return failed("trial ", trial.trial.name(), ": ", why);
    if (clock_.now_ms() >= limit)
      return Status(
          StatusCode::kDeadlineExceeded,
          str("trial ", trial.trial.name(), ": no worker measured it within ", options_.rerun_limit_ms / 1000,
              " s. `tuner workers` lists who is there; it needs one for \"", trial.task.target, "\""));
    news_.wait(farm, kLookAtCaller);
  }
  return Status::ok();
}

Status MeasureAgain::rerun(const v1::RerunRequest& request, v1::MeasureRecord* reply,
                           const Cancelled& cancelled, const Scope& scope) {
  ASSIGN_OR_RETURN(const TrialWithRecord trial, store_.trial(request.trial_id()));
  const std::string& id = trial.trial.id;
  if (!trial.record && trial.trial.state == TrialState::kDone)
    return invalid_argument(
        "trial ", trial.trial.name(),
        ": its record was pruned, so it cannot be measured again; tuner records import brings "
        "it back from the export");
  if (!trial.record)
    return invalid_argument("trial ", trial.trial.name(),
                            " has no result yet, so it cannot be measured again; see tuner jobs");
  ASSIGN_OR_RETURN(const JobRow job, job_in(store_, scope, trial.trial.job_id));
  RETURN_IF_ERROR(documents_.know({trial.task}, job.tenant));
  Work work{.kind = WorkKind::kRerun,
            .task = trial.task,
            .compiler = compiler_of(*Locked(farm_), trial.task),
            .options = trial.record->options,
            .task_index = trial.trial.task_index,
            .template_name = trial.trial.template_name,
            .config = trial.trial.config,
            .template_version = trial.trial.template_version};
  work.options.constants = trial.task.constants;
  work.options = limited(work.options);
  work.options.cut_factor = -1;  // all its samples are wanted
  work.options.precision = 0;
  const Needs needs = needs_of(work);
  const std::string as_job = "rerun " + id;

  Locked farm(farm_);
  if (farm->stopping) return farm->stopped();
  const int attempt = Reruns::attempt_at(options_.wall_us());
  if (farm->reruns.find(id) != nullptr ||
      farm->leases.enqueue_again({.id = id,
                                  .job_id = as_job,
                                  .tenant = job.tenant,
                                  .work = std::move(work),
                                  .attempt = attempt,
                                  .fencing = trial.trial.fencing}) == LeaseTable::Added::kKnownAlready)
    return Status(StatusCode::kAborted, str("trial ", trial.trial.name(),
                                            " is being measured right now; try again when that is done"));
  farm->reruns.begin(id);
  wake_desk_();
  Status status = wait_for(
      farm, [&] { return farm->reruns.find(id)->ended(); }, trial, needs, cancelled);
  const Reruns::Rerun again = *farm->reruns.find(id);
  farm->reruns.end(id);
  farm->leases.forget_job(as_job);
  if (!status) return status;
  if (!again.error.empty()) return failed("trial ", trial.trial.name(), ": ", again.error);
  to_proto(*again.record, reply);
  return Status::ok();
}

Status MeasureAgain::remeasure(const v1::RemeasureRequest& request, v1::RaceResult* reply,
                               const Cancelled& cancelled, const Scope& scope) {
  ASSIGN_OR_RETURN(const TrialWithRecord trial, store_.trial(request.trial_id()));
  ASSIGN_OR_RETURN(const JobRow job, job_in(store_, scope, trial.trial.job_id));
  RETURN_IF_ERROR(parse_target(trial.task.target).status());
  if (!is_raced(trial.task.target))
    return invalid_argument("trial ", trial.trial.name(), " is of \"", trial.task.target,
                            "\", whose kernels are not raced. Use tuner rerun");
  const std::string id = Races::id_of("remeasure " + trial.trial.id, options_.wall_us());
  RETURN_IF_ERROR(documents_.know({trial.task}, job.tenant));
  Work work{.kind = WorkKind::kRace,
            .task = trial.task,
            .compiler = compiler_of(*Locked(farm_), trial.task),
            .options = limited(job.options),
            .race = from_proto(request.options()),
            .finalists = {trial.trial}};
  RETURN_IF_ERROR(within_limits(work.race, "options", /*zero_is_default=*/true));
  work.options.constants = work.race.constants;
  const Needs needs = needs_of(work);

  Locked farm(farm_);
  if (farm->stopping) return farm->stopped();
  farm->leases.enqueue_again({.id = id, .job_id = id, .tenant = job.tenant, .work = std::move(work)});
  farm->races.begin(id, {.needs = needs}, clock_.now_ms());
  wake_desk_();
  Status status = wait_for(
      farm, [&] { return farm->races.find(id)->ended; }, trial, needs, cancelled);
  const Races::Race race = *farm->races.find(id);
  farm->races.forget(id);
  farm->leases.forget_job(id);
  if (!status) return status;
  if (!race.error.empty()) return failed("trial ", trial.trial.name(), ": ", race.error);
  to_proto(*race.result, reply);
  reply->set_race_id(id);
  return Status::ok();
}

}  // namespace tuner
