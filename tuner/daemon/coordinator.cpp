// Start, stop, and jobs as clients see them. Workers: desk.h and coordinator_workers.cpp; the
// search: search_threads.h.
#include "tuner/daemon/coordinator.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "compiler_core/base/clock.h"
#include "db/options_limits.h"
#include "proto/convert.h"
#include "templates/workload/task_memory.h"
#include "templates/workload/workload.h"
#include "tuner/daemon/job_file_call.h"
#include "tuner/daemon/messages.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLook{250};         // how often a blocked call looks whether its caller has gone
constexpr int64_t kProgressEveryMs = 100;  // to one watcher
constexpr int64_t kCancelLimitMs = 30'000;

Status reader_has_gone() { return Status(StatusCode::kAborted, "the reader has gone"); }

}  // namespace

Coordinator::Coordinator(Store& store, const Clock& clock, CoordinatorOptions options)
    : store_(store),
      clock_(clock),
      options_(std::move(options)),
      answers_(store, options_.present),
      learner_(store),
      farm_(options_),
      news_(store, farm_, clock_, metrics_),
      build_office_(farm_, clock_, options_, [this] { wake_desk(); }),
      referee_(store, farm_, clock_, options_, metrics_),
      loss_office_(store, farm_, options_, metrics_, news_, wake()),
      result_intake_({store, farm_, clock_, options_, metrics_, referee_, loss_office_, news_}, wake()),
      leasing_({store, farm_, clock_, metrics_, news_, build_office_}),
      desk_(
          {farm_, clock_, options_, metrics_, news_, build_office_, loss_office_, result_intake_, leasing_}),
      race_office_({store, farm_, clock_, options_, news_, answers_}, wake()),
      search_({store, farm_, clock_, options_, metrics_, news_, answers_, learner_, build_office_,
               loss_office_, race_office_},
              [this] { wake_desk(); }) {}

Coordinator::~Coordinator() { stop("the daemon is stopping"); }

Status Coordinator::start() {
  RETURN_IF_ERROR(loss_office_.load());
  RETURN_IF_ERROR(referee_.load());
  if (options_.resume_jobs) {
    ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store_.jobs());
    for (const JobRow& row : jobs) {
      if (has_ended(row.state)) continue;
      std::shared_ptr<Job> job;
      {
        const Locked farm(farm_);
        add_job(*farm, row, row.trials);
        job = farm->jobs.find(row.id);
      }
      // Before any worker can speak: the leases of one that lived through the restart must be known.
      RETURN_IF_ERROR(search_.queue_open_trials(*job));
      RETURN_IF_ERROR(race_office_.resume_races(row.id));
    }
  }
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
  return {.desk = [this] { wake_desk(); }, .search = [this](const std::string& id) { search_.wake(id); }};
}

void Coordinator::add_job(FarmState& farm, JobRow row, int trials) {
  const std::string id = row.id;
  row.options = limited(row.options);  // an earlier release may have let in more
  farm.jobs.add(std::move(row), trials, clock_.now_ms());
  search_.wake(id);
}

// The stored job, if the caller may see it.
Result<JobRow> Coordinator::job_in(const Scope& scope, const std::string& job_id) const {
  ASSIGN_OR_RETURN(JobRow row, store_.job(job_id));
  if (!scope || row.tenant == *scope) return row;
  return not_found("job ", row.id, " is not one of ", scope->empty() ? "yours" : "tenant " + *scope,
                   "; `tuner jobs` lists those that are");
}

Status Coordinator::has_room_for_job(const JobRow& wanted) const {
  const Locked farm(farm_);
  const int most = farm->leases.shares().of(wanted.tenant).most_jobs;
  int open = 0;
  for (const auto& [id, job] : farm->jobs.all())
    open += !job->ended() && job->row().tenant == wanted.tenant ? 1 : 0;
  if (most == 0 || open < most) return Status::ok();
  return failed("tenant ", wanted.tenant, " has ", open, " unfinished jobs, and may have ", most,
                ": wait for one to end, or cancel it (tuner cancel)");
}

void Coordinator::set_shares(ShareByTenant shares) {
  const Locked farm(farm_);
  farm->leases.set_shares(std::move(shares));
}

Status Coordinator::submit(const v1::SubmitRequest& request, v1::SubmitReply* reply, const Scope& scope) {
  ASSIGN_OR_RETURN(JobRow wanted, job_from_proto(request));
  wanted.tenant = scope.value_or("");
  if (!is_strategy(wanted.search)) {
    std::string list;
    for (const std::string& name : strategy_names()) list += (list.empty() ? "" : ", ") + name;
    return invalid_argument("search: found \"", wanted.search, "\", expected one of ", list);
  }
  for (size_t i = 0; i < wanted.tasks.size(); ++i)
    RETURN_IF_ERROR(options_.check_task(wanted.tasks[i])
                        .with_context(wanted.tasks.size() > 1 ? str("task ", i, ": ") : ""));
  for (const JobRow::Task& task : wanted.tasks)
    if (const Result<Workload> workload = workload_from_key(task.workload_key))
      RETURN_IF_ERROR(fits(*workload, {.candidate_bytes = wanted.options.memory_limit_bytes,
                                       .program_bytes = kCandidateProgramBytes}));

  const std::lock_guard one_at_a_time(submit_mutex_);
  ASSIGN_OR_RETURN(std::optional<JobRow> earlier, earlier_job(wanted, request.fresh()));
  return earlier ? continue_job(*std::move(earlier), wanted, reply) : start_new_job(std::move(wanted), reply);
}

// The job of the same call, which is repeated, or of the same search.
Result<std::optional<JobRow>> Coordinator::earlier_job(const JobRow& wanted, bool fresh) const {
  Result<JobRow> found = store_.job_by_request(wanted.request_id);
  if (found && found->tenant != wanted.tenant)
    return invalid_argument("request_id: a job of another tenant has it; leave it out, or draw another one");
  if (!found && found.status().code() == StatusCode::kNotFound && !fresh)
    found = store_.find_job(wanted.tasks, wanted.search, wanted.seed, wanted.tenant);
  if (found) return std::optional<JobRow>(*std::move(found));
  if (found.status().code() == StatusCode::kNotFound) return std::optional<JobRow>();
  return found.status();
}

// Nobody else adds jobs while this daemon has the database open: they are counted once.
Result<std::string> Coordinator::next_job_id() {
  if (last_job_number_ < 0) {
    ASSIGN_OR_RETURN(const std::vector<JobRow> all, store_.jobs());
    last_job_number_ = 0;
    for (const JobRow& row : all)
      last_job_number_ = std::max<int64_t>(last_job_number_, std::atoll(row.id.c_str() + 1));
  }
  return str("j", ++last_job_number_);
}

Status Coordinator::start_new_job(JobRow wanted, v1::SubmitReply* reply) {
  RETURN_IF_ERROR(has_room_for_job(wanted));
  ASSIGN_OR_RETURN(wanted.id, next_job_id());
  wanted.submitted_at_us = options_.wall_us();
  wanted.state = JobState::kQueued;
  RETURN_IF_ERROR(store_.add_job(wanted));
  const Locked farm(farm_);
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

Status Coordinator::continue_job(JobRow existing, const JobRow& wanted, v1::SubmitReply* reply) {
  reply->set_job_id(existing.id);
  reply->set_continued(true);
  {
    const Locked farm(farm_);
    if (farm->stopping) return farm->stopped();
    const std::shared_ptr<Job> running = farm->jobs.find(existing.id);
    if (running != nullptr && !running->ended()) {
      if (wanted.trials <= running->trials()) return Status::ok();  // joins it
      return Status(StatusCode::kAborted,
                    str("job ", existing.id, " is running with --trials ", running->trials(),
                        "; when it is finished, submit again with --trials ", wanted.trials));
    }
  }
  ASSIGN_OR_RETURN(const int64_t done, store_.trials_done(existing.id));
  const bool enough = done >= int64_t{wanted.trials} * static_cast<int64_t>(existing.tasks.size());
  if (existing.state == JobState::kFinished && enough) {
    reply->set_already_finished(true);
    return Status::ok();
  }
  RETURN_IF_ERROR(has_room_for_job(existing));
  RETURN_IF_ERROR(store_.extend_job(existing.id, wanted.trials, wanted.stop));
  existing.trials = std::max(existing.trials, wanted.trials);
  existing.options = wanted.options;
  existing.stop = wanted.stop;
  {
    const LogAbout about({.job = existing.id, .request = wanted.request_id});
    spdlog::info("job {} is continued, with {} trials each", existing.id, wanted.trials);
  }
  const Locked farm(farm_);
  add_job(*farm, std::move(existing), wanted.trials);
  return Status::ok();
}

// Sends the job's events behind `after`, which grows with them.
Status Coordinator::send_events(const std::string& job_id, bool ended, const Send& send,
                                int64_t& after) const {
  while (true) {
    ASSIGN_OR_RETURN(std::vector<v1::JobEvent> events, news_.after(job_id, after));
    if (events.empty()) return Status::ok();
    for (v1::JobEvent& event : events) {
      after = event.seq();
      // A terminal event of an earlier run is history here: the job was continued after it.
      if (!ended && event.state() != v1::QUEUED) event.set_state(v1::JOB_RUNNING);
      if (!send(event)) return reader_has_gone();
    }
  }
}

// An event would have to be stored, too. False: the reader has gone.
bool Coordinator::send_store_trouble(int64_t after, const Send& send, std::string& told) const {
  v1::JobEvent event;
  {
    const Locked farm(farm_);
    const std::string_view trouble = farm->store_trouble.now(clock_.now_ms());
    if (told == trouble) return true;
    told = trouble;
  }
  event.set_seq(after);
  event.set_state(v1::JOB_RUNNING);
  event.set_message(told.empty() ? "results can be stored again: the job goes on"
                                 : str("results cannot be stored: ", told,
                                       ". The job waits, and goes on when they can; workers keep them"));
  return send(event);
}

// The job as the store has it, when this daemon does not know it; else as it was.
Result<JobRow> Coordinator::known_job(const JobRow& as_was) const {
  {
    const Locked farm(farm_);
    if (farm->jobs.find(as_was.id) != nullptr) return as_was;
  }
  return store_.job(as_was.id);
}

Status Coordinator::watch(const v1::WatchRequest& request, const Send& send, const Cancelled& cancelled,
                          const Scope& scope) {
  ASSIGN_OR_RETURN(JobRow row, job_in(scope, request.job_id()));
  int64_t after = request.after_seq(), events_seen = -1, progress_seen = 0, progress_sent_ms = 0;
  std::string trouble_told;
  while (true) {
    v1::JobEvent progress;
    int64_t event_version = 0;
    ASSIGN_OR_RETURN(row, known_job(row));
    bool ended = has_ended(row.state), stopping = false;
    {
      const Locked farm(farm_);
      stopping = farm->stopping;
      const std::shared_ptr<const Job> job = farm->jobs.find(row.id);
      if (job == nullptr && !ended)
        return not_found("job ", row.id, " is ", job_state_name(row.state),
                         " and no daemon runs it. Submit its file again to continue");
      if (job != nullptr) {
        event_version = job->event_version();
        ended = job->ended();
        const bool due = ended || clock_.now_ms() - progress_sent_ms >= kProgressEveryMs;
        if (job->progress_version() != progress_seen && due) {
          progress.set_state(job->state() == JobState::kQueued ? v1::QUEUED : v1::JOB_RUNNING);
          to_proto(job->report(), progress.mutable_progress());
          for (const Races::Race* race : farm->races.of_job(row.id))
            if (!race->ended) to_proto(*race, progress.mutable_progress()->add_races());
          progress_seen = job->progress_version();
        }
      }
    }
    if (progress.has_progress()) {
      progress.set_seq(after);
      progress_sent_ms = clock_.now_ms();
      if (!send(progress)) return reader_has_gone();
    }
    if (!send_store_trouble(after, send, trouble_told)) return reader_has_gone();
    if (event_version != events_seen) {
      events_seen = event_version;
      RETURN_IF_ERROR(send_events(row.id, ended, send, after));
    }
    if (ended) {
      ASSIGN_OR_RETURN(row, store_.job(row.id));
      v1::JobEvent last;
      last.set_seq(after);
      last.set_state(to_proto(row.state));
      last.set_message(row.message);
      return send(last) ? Status::ok() : reader_has_gone();
    }
    Locked farm(farm_);
    if (farm->stopping && stopping) return farm->stopped();
    if (cancelled()) return reader_has_gone();
    const std::shared_ptr<const Job> job = farm->jobs.find(row.id);
    if (job == nullptr || job->event_version() != events_seen || farm->stopping) continue;
    news_.wait(farm, job->progress_version() != progress_seen ? milliseconds(kProgressEveryMs) : kLook);
  }
}

Status Coordinator::cancel(const v1::CancelRequest& request, v1::CancelReply* reply, const Scope& scope) {
  ASSIGN_OR_RETURN(JobRow row, job_in(scope, request.job_id()));
  {
    Locked farm(farm_);
    if (const std::shared_ptr<Job> job = farm->jobs.find(row.id); job != nullptr && !job->ended()) {
      job->ask_to_cancel();
      search_.wake(job->id());
      const bool done =
          news_.wait(farm, milliseconds(kCancelLimitMs), [&] { return job->ended() || farm->stopping; });
      if (!done)
        return Status(StatusCode::kDeadlineExceeded,
                      str("job ", row.id, " has not stopped within ", kCancelLimitMs / 1000, " s"));
      if (!job->ended()) return farm->stopped();
      reply->set_state(to_proto(job->state()));
      return Status::ok();
    }
  }
  if (!has_ended(row.state)) {
    RETURN_IF_ERROR(store_.cancel_open_trials(row.id));
    RETURN_IF_ERROR(store_.set_job_state(row.id, JobState::kCancelled, "cancelled"));
    row.state = JobState::kCancelled;
  }
  reply->set_state(to_proto(row.state));
  return Status::ok();
}

Status Coordinator::read_job_file(const v1::ReadJobFileRequest& request, v1::ReadJobFileReply* reply) const {
  std::map<std::string, int> cpus;
  {
    const Locked farm(farm_);
    cpus = farm->workers.cpus(clock_.now_ms());
  }
  return read_job_text(request, cpus, reply);
}

}  // namespace tuner
