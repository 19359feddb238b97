#include "tuner/daemon/rooms/job_desk.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "compiler_core/base/room.h"
#include "db/options_limits.h"
#include "proto/convert.h"
#include "templates/workload/task_memory.h"
#include "templates/workload/workload.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/daemon/edge/messages.h"

namespace tuner {
namespace {

constexpr int64_t kCancelLimitMs = 30'000;

}  // namespace

Result<JobRow> job_in(const Store& store, const Scope& scope, const std::string& job_id) {
  ASSIGN_OR_RETURN(JobRow row, store.job(job_id));
  if (!scope || row.tenant == *scope) return row;
  return not_found("job ", row.id, " is not one of ", scope->empty() ? "yours" : "tenant " + *scope,
                   "; `tuner jobs` lists those that are");
}

Status JobDesk::resume_jobs() {
  ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, of_.store.jobs());
  for (const JobRow& row : jobs) {
    if (has_ended(row.state)) continue;
    if (const Status known = of_.documents.know(row.tasks, row.tenant); !known)
      spdlog::error("job {} waits: {}", row.id, known.message());
    std::shared_ptr<Job> job;
    {
      const Locked farm(of_.farm);
      add_job(*farm, row, row.trials);
      job = farm->jobs.find(row.id);
    }
    // Before any worker can speak: the leases of one that lived through the restart must be known.
    RETURN_IF_ERROR(of_.search.queue_open_trials(*job));
    RETURN_IF_ERROR(of_.races.resume_races(row.id));
  }
  return Status::ok();
}

void JobDesk::add_job(FarmState& farm, JobRow row, int trials) {
  const std::string id = row.id;
  row.options = limited(row.options);  // an earlier release may have let in more
  farm.jobs.add(std::move(row), trials, of_.clock.now_ms());
  of_.search.wake(id);
}

Status JobDesk::has_room_for_job(const JobRow& wanted) const {
  const Locked farm(of_.farm);
  const int most = farm->leases.shares().of(wanted.tenant).most_jobs;
  int open = 0;
  for (const auto& [id, job] : farm->jobs.all())
    open += !job->ended() && job->row().tenant == wanted.tenant ? 1 : 0;
  if (most == 0 || open < most) return Status::ok();
  return failed("tenant ", wanted.tenant, " has ", open, " unfinished jobs, and may have ", most,
                ": wait for one to end, or cancel it (tuner cancel)");
}

Status JobDesk::has_room_for_sources(const std::string& tenant, const std::vector<KernelRow>& brought) const {
  const int most_mib = Locked(of_.farm)->leases.shares().of(tenant).most_source_mib;
  if (tenant.empty() || most_mib == 0) return Status::ok();
  int64_t more = 0;
  for (const KernelRow& kernel : brought) {
    const Status stored = of_.store.kernel(kernel.digest, tenant).status();
    if (!stored && stored.code() != StatusCode::kNotFound) return stored;
    if (stored.code() == StatusCode::kNotFound) more += std::ssize(kernel.document);
  }
  if (more == 0) return Status::ok();
  ASSIGN_OR_RETURN(const int64_t stored, of_.store.kernel_bytes(tenant));
  if (stored + more <= int64_t{most_mib} << 20) return Status::ok();
  return failed("tenant ", tenant, " has ", bytes_text(stored), " of sources here and brings ",
                bytes_text(more), " more, and may have ", most_mib,
                " MiB: ask the farm's administrator for more (tuner admin tenant ", tenant,
                " --sources MIB)");
}

Status JobDesk::submit(const v1::SubmitRequest& request, v1::SubmitReply* reply, const Scope& scope) {
  // First: what a key names must be here, and the tenant's, before anything is said of it.
  ASSIGN_OR_RETURN(std::vector<KernelRow> documents, of_.documents.take(request, scope));
  ASSIGN_OR_RETURN(JobRow wanted, job_from_proto(request));
  wanted.tenant = scope.value_or("");
  if (!is_strategy(wanted.search)) {
    std::string list;
    for (const std::string& name : strategy_names()) list += (list.empty() ? "" : ", ") + name;
    return invalid_argument("search: found \"", wanted.search, "\", expected one of ", list);
  }
  for (size_t i = 0; i < wanted.tasks.size(); ++i)
    RETURN_IF_ERROR(of_.options.check_task(wanted.tasks[i])
                        .with_context(wanted.tasks.size() > 1 ? str("task ", i, ": ") : ""));
  for (const JobRow::Task& task : wanted.tasks)
    if (const Result<Workload> workload = workload_from_key(task.workload_key))
      RETURN_IF_ERROR(fits(*workload, {.candidate_bytes = wanted.options.memory_limit_bytes,
                                       .program_bytes = kCandidateProgramBytes}));

  const std::lock_guard one_at_a_time(submit_mutex_);
  ASSIGN_OR_RETURN(std::optional<JobRow> earlier, earlier_job(wanted, request.fresh()));
  return earlier ? continue_job(*std::move(earlier), wanted, reply)
                 : start_new_job(std::move(wanted), documents, reply);
}

// The job of the same call, which is repeated, or of the same search.
Result<std::optional<JobRow>> JobDesk::earlier_job(const JobRow& wanted, bool fresh) const {
  Result<JobRow> found = of_.store.job_by_request(wanted.request_id);
  if (found && found->tenant != wanted.tenant)
    return invalid_argument("request_id: a job of another tenant has it; leave it out, or draw another one");
  if (!found && found.status().code() == StatusCode::kNotFound && !fresh)
    found = of_.store.find_job(wanted.tasks, wanted.search, wanted.seed, wanted.tenant);
  if (found) return std::optional<JobRow>(*std::move(found));
  if (found.status().code() == StatusCode::kNotFound) return std::optional<JobRow>();
  return found.status();
}

// Nobody else adds jobs while this daemon has the database open: they are counted once.
Result<std::string> JobDesk::next_job_id() {
  if (last_job_number_ < 0) {
    ASSIGN_OR_RETURN(const std::vector<JobRow> all, of_.store.jobs());
    last_job_number_ = 0;
    for (const JobRow& row : all)
      last_job_number_ = std::max<int64_t>(last_job_number_, std::atoll(row.id.c_str() + 1));
  }
  return str("j", ++last_job_number_);
}

Status JobDesk::start_new_job(JobRow wanted, const std::vector<KernelRow>& documents,
                              v1::SubmitReply* reply) {
  RETURN_IF_ERROR(has_room_for_job(wanted));
  RETURN_IF_ERROR(has_room_for_sources(wanted.tenant, documents));
  ASSIGN_OR_RETURN(wanted.id, next_job_id());
  wanted.submitted_at_us = of_.options.wall_us();
  wanted.state = JobState::kQueued;
  RETURN_IF_ERROR(of_.store.add_job(wanted, documents));
  RETURN_IF_ERROR(of_.documents.know(wanted.tasks, wanted.tenant));
  const Locked farm(of_.farm);
  if (farm->stopping) return farm->stopped();
  reply->set_job_id(wanted.id);
  const int trials = wanted.trials;
  {
    const LogAbout about({.job = wanted.id, .request = wanted.request_id});
    spdlog::info("job {} is submitted: {} tasks, {} trials each", wanted.id, wanted.tasks.size(), trials);
  }
  add_job(*farm, std::move(wanted), trials);
  return Status::ok();
}

Status JobDesk::continue_job(JobRow existing, const JobRow& wanted, v1::SubmitReply* reply) {
  reply->set_job_id(existing.id);
  reply->set_continued(true);
  {
    const Locked farm(of_.farm);
    if (farm->stopping) return farm->stopped();
    const std::shared_ptr<Job> running = farm->jobs.find(existing.id);
    if (running != nullptr && !running->ended()) {
      if (wanted.trials <= running->trials()) return Status::ok();  // joins it
      return Status(StatusCode::kAborted,
                    str("job ", existing.id, " is running with --trials ", running->trials(),
                        "; when it is finished, submit again with --trials ", wanted.trials));
    }
  }
  ASSIGN_OR_RETURN(const int64_t done, of_.store.trials_done(existing.id));
  const bool enough = done >= int64_t{wanted.trials} * static_cast<int64_t>(existing.tasks.size());
  if (existing.state == JobState::kFinished && enough) {
    reply->set_already_finished(true);
    return Status::ok();
  }
  RETURN_IF_ERROR(has_room_for_job(existing));
  RETURN_IF_ERROR(of_.documents.know(existing.tasks, existing.tenant));
  RETURN_IF_ERROR(of_.store.extend_job(existing.id, wanted.trials, wanted.stop));
  existing.trials = std::max(existing.trials, wanted.trials);
  existing.options = wanted.options;
  existing.stop = wanted.stop;
  {
    const LogAbout about({.job = existing.id, .request = wanted.request_id});
    spdlog::info("job {} is continued, with {} trials each", existing.id, wanted.trials);
  }
  const Locked farm(of_.farm);
  add_job(*farm, std::move(existing), wanted.trials);
  return Status::ok();
}

Status JobDesk::cancel(const v1::CancelRequest& request, v1::CancelReply* reply, const Scope& scope) {
  ASSIGN_OR_RETURN(JobRow row, job_in(of_.store, scope, request.job_id()));
  {
    Locked farm(of_.farm);
    if (const std::shared_ptr<Job> job = farm->jobs.find(row.id); job != nullptr && !job->ended()) {
      job->ask_to_cancel();
      of_.search.wake(job->id());
      const bool done = of_.news.wait(farm, std::chrono::milliseconds(kCancelLimitMs),
                                      [&] { return job->ended() || farm->stopping; });
      if (!done)
        return Status(StatusCode::kDeadlineExceeded,
                      str("job ", row.id, " has not stopped within ", kCancelLimitMs / 1000, " s"));
      if (!job->ended()) return farm->stopped();
      reply->set_state(to_proto(job->state()));
      return Status::ok();
    }
  }
  if (!has_ended(row.state)) {
    RETURN_IF_ERROR(of_.store.cancel_open_trials(row.id));
    RETURN_IF_ERROR(of_.store.set_job_state(row.id, JobState::kCancelled, "cancelled"));
    row.state = JobState::kCancelled;
  }
  reply->set_state(to_proto(row.state));
  return Status::ok();
}

}  // namespace tuner
