// Start, stop, jobs and what clients ask. Workers: coordinator_workers.cpp; the search thread:
// coordinator_search.cpp.
#include "tuner/daemon/coordinator.h"

#include <google/protobuf/util/json_util.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "compiler_core/base/clock.h"
#include "db/resolve/default_time.h"
#include "proto/convert.h"
#include "templates/schedule_template.h"
#include "templates/workload/task_memory.h"
#include "templates/workload/workload.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLook{250};         // how often a blocked call looks whether its caller has gone
constexpr int64_t kProgressEveryMs = 100;  // to one watcher
constexpr int64_t kCancelLimitMs = 30'000;

bool terminal(JobState state) {
  return state == JobState::kFinished || state == JobState::kCancelled || state == JobState::kFailed;
}

}  // namespace

Coordinator::Coordinator(Store& store, const Clock& clock, CoordinatorOptions options)
    : store_(store),
      clock_(clock),
      options_(std::move(options)),
      resolver_(&store, {.present = options_.present}),
      learner_(store),
      leases_(options_.leases) {}

Coordinator::~Coordinator() { stop("the daemon is stopping"); }

Status Coordinator::start() {
  if (options_.resume_jobs) {
    ASSIGN_OR_RETURN(std::vector<JobRow> jobs, store_.jobs());
    for (JobRow& row : jobs) {
      if (terminal(row.state)) continue;
      const std::string id = row.id;
      {
        const std::lock_guard lock(mutex_);
        add_job_locked(row, row.trials);
      }
      // Before any worker can speak: the leases of one that lived through the restart must be known.
      ASSIGN_OR_RETURN(std::vector<TrialWithRecord> trials, store_.trials(id));
      std::vector<TrialRow> open;
      for (TrialWithRecord& t : trials)
        if (!t.record && t.trial.state != TrialState::kCancelled) open.push_back(std::move(t.trial));
      queue_trials(id, open);
      spdlog::info("job {} goes on: {} open trials", id, open.size());
    }
  }
  search_thread_ = std::thread([this] { search_loop(); });
  return Status::ok();
}

void Coordinator::stop(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) stop_reason_ = reason;
    stopping_ = true;
  }
  work_.notify_all();
  search_.notify_all();
  news_.notify_all();
  if (search_thread_.joinable()) search_thread_.join();
}

void Coordinator::add_job_locked(JobRow row, int limit) {
  auto job = std::make_shared<Job>();
  job->limit = limit;
  job->state = JobState::kQueued;
  for (const JobRow::Task& task : row.tasks) {
    const Result<Workload> workload = workload_from_key(task.workload_key);
    job->flops.push_back(workload ? workload->flops() : 0);
  }
  job->race = options_.race;
  job->idle_since_ms = clock_.now_ms();
  const std::string id = row.id;
  job->row = std::move(row);
  jobs_[id] = std::move(job);
  search_woken_ = true;
  search_.notify_all();
}

Status Coordinator::submit(const v1::SubmitRequest& request, v1::SubmitReply* reply) {
  ASSIGN_OR_RETURN(JobRow wanted, job_from_proto(request));
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
      RETURN_IF_ERROR(fits(*workload, {.candidate_bytes = wanted.options.memory_limit_bytes}));

  const std::lock_guard one_at_a_time(submit_mutex_);
  ASSIGN_OR_RETURN(const std::vector<JobRow> all, store_.jobs());
  std::optional<JobRow> existing;
  for (const JobRow& row : all)
    if (row.request_id == wanted.request_id) existing = row;  // the same call, repeated
  if (!existing && !request.fresh()) {
    Result<JobRow> found = store_.find_job(wanted.tasks, wanted.search, wanted.seed);
    if (!found && found.status().code() != StatusCode::kNotFound) return found.status();
    if (found) existing = *std::move(found);
  }
  if (!existing) {
    int64_t last = 0;
    for (const JobRow& row : all) last = std::max<int64_t>(last, std::atoll(row.id.c_str() + 1));
    wanted.id = str("j", last + 1);
    wanted.submitted_at_us = wall_time_us();
    wanted.state = JobState::kQueued;
    RETURN_IF_ERROR(store_.add_job(wanted));
    const std::lock_guard lock(mutex_);
    if (stopping_) return unavailable(stop_reason_);
    reply->set_job_id(wanted.id);
    add_job_locked(wanted, wanted.trials);
    return Status::ok();
  }

  reply->set_job_id(existing->id);
  reply->set_continued(true);
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return unavailable(stop_reason_);
    const auto running = jobs_.find(existing->id);
    if (running != jobs_.end() && !terminal(running->second->state)) {
      if (wanted.trials <= running->second->limit) return Status::ok();  // joins it
      return Status(StatusCode::kAborted,
                    str("job ", existing->id, " is running with --trials ", running->second->limit,
                        "; when it is finished, submit again with --trials ", wanted.trials));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> trials, store_.trials(existing->id));
  const auto done = std::count_if(trials.begin(), trials.end(),
                                  [](const TrialWithRecord& t) { return t.record.has_value(); });
  const bool enough = done >= int64_t{wanted.trials} * static_cast<int64_t>(existing->tasks.size());
  if (existing->state == JobState::kFinished && enough) {
    reply->set_already_finished(true);
    return Status::ok();
  }
  RETURN_IF_ERROR(store_.extend_job(existing->id, wanted.trials, wanted.stop));
  existing->trials = std::max(existing->trials, wanted.trials);
  existing->options = wanted.options;
  existing->stop = wanted.stop;
  const std::lock_guard lock(mutex_);
  add_job_locked(*existing, wanted.trials);
  return Status::ok();
}

Status Coordinator::watch(const v1::WatchRequest& request,
                          const std::function<bool(const v1::JobEvent&)>& send, const Cancelled& cancelled) {
  ASSIGN_OR_RETURN(JobRow row, store_.job(request.job_id()));
  int64_t after = request.after_seq(), events_seen = -1, progress_seen = 0, progress_sent_ms = 0;
  while (true) {
    v1::JobEvent progress;
    int64_t event_version = 0;
    bool ended = false, stopping = false, loaded = false;
    {
      const std::lock_guard lock(mutex_);
      stopping = stopping_;
      if (const auto found = jobs_.find(row.id); found != jobs_.end()) {
        Job& job = *found->second;
        loaded = true;
        event_version = job.event_version;
        ended = terminal(job.state);
        const bool due = ended || clock_.now_ms() - progress_sent_ms >= kProgressEveryMs;
        if (job.progress_version != progress_seen && due) {
          progress.set_state(
              to_proto(job.state == JobState::kQueued ? JobState::kQueued : JobState::kRunning));
          *progress.mutable_progress() = job.progress;
          add_races_locked(row.id, progress.mutable_progress());
          progress_seen = job.progress_version;
        }
      }
    }
    if (!loaded) {
      ended = terminal(row.state);
      if (!ended)
        return not_found("job ", row.id, " is ", job_state_name(row.state),
                         " and no daemon runs it. Submit its file again to continue");
    }
    if (progress.has_progress()) {
      progress.set_seq(after);
      progress_sent_ms = clock_.now_ms();
      if (!send(progress)) return Status(StatusCode::kAborted, "the reader has gone");
    }
    if (event_version != events_seen) {
      events_seen = event_version;
      while (true) {
        ASSIGN_OR_RETURN(const auto events, store_.events(row.id, after, 256));
        if (events.empty()) break;
        for (const auto& [seq, json] : events) {
          v1::JobEvent event;
          if (!google::protobuf::util::JsonStringToMessage(json, &event).ok())
            return failed("event ", seq, " of job ", row.id, " cannot be read back");
          event.set_seq(seq);
          after = seq;
          // A terminal event of an earlier run is history here: the job was continued after it.
          if (!ended && event.state() != v1::QUEUED) event.set_state(v1::JOB_RUNNING);
          if (!send(event)) return Status(StatusCode::kAborted, "the reader has gone");
        }
      }
    }
    if (ended) {
      ASSIGN_OR_RETURN(row, store_.job(row.id));
      v1::JobEvent last;
      last.set_seq(after);
      last.set_state(to_proto(row.state));
      last.set_message(row.message);
      return send(last) ? Status::ok() : Status(StatusCode::kAborted, "the reader has gone");
    }
    std::unique_lock lock(mutex_);
    if (stopping_ && stopping) return unavailable(stop_reason_);
    if (cancelled()) return Status(StatusCode::kAborted, "the reader has gone");
    const auto found = jobs_.find(row.id);
    const bool news = found == jobs_.end() || found->second->event_version != events_seen || stopping_;
    if (!news)
      news_.wait_for(
          lock, found->second->progress_version != progress_seen ? milliseconds(kProgressEveryMs) : kLook);
  }
}

Status Coordinator::list(v1::ListReply* reply) const {
  ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store_.jobs());
  for (const JobRow& row : jobs) {
    v1::JobSummary* summary = reply->add_jobs();
    to_proto(row, summary);
    ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> trials, store_.trials(row.id));
    for (const TrialWithRecord& t : trials) {
      if (!t.record) continue;
      summary->set_trials_done(summary->trials_done() + 1);
      if (t.record->outcome != Outcome::kOk || t.record->cut) continue;
      const Result<Workload> workload = workload_from_key(t.task.workload_key);
      const double time_ns = record_time_ns(*t.record);
      if (workload && time_ns > 0)
        summary->set_best_gflops(
            std::max(summary->best_gflops(), static_cast<double>(workload->flops()) / time_ns));
    }
  }
  return Status::ok();
}

Status Coordinator::cancel(const v1::CancelRequest& request, v1::CancelReply* reply) {
  ASSIGN_OR_RETURN(JobRow row, store_.job(request.job_id()));
  std::unique_lock lock(mutex_);
  const auto found = jobs_.find(row.id);
  if (found != jobs_.end() && !terminal(found->second->state)) {
    const std::shared_ptr<Job> job = found->second;
    job->cancel_asked = true;
    search_woken_ = true;
    search_.notify_all();
    const bool done =
        news_.wait_for(lock, milliseconds(kCancelLimitMs), [&] { return terminal(job->state) || stopping_; });
    if (!done)
      return Status(StatusCode::kDeadlineExceeded,
                    str("job ", row.id, " has not stopped within ", kCancelLimitMs / 1000, " s"));
    if (!terminal(job->state)) return unavailable(stop_reason_);
    reply->set_state(to_proto(job->state));
    return Status::ok();
  }
  lock.unlock();
  if (!terminal(row.state)) {
    RETURN_IF_ERROR(store_.cancel_open_trials(row.id));
    RETURN_IF_ERROR(store_.set_job_state(row.id, JobState::kCancelled, "cancelled"));
    row.state = JobState::kCancelled;
  }
  reply->set_state(to_proto(row.state));
  return Status::ok();
}

Status Coordinator::rerun(const v1::RerunRequest& request, v1::MeasureRecord* reply,
                          const Cancelled& cancelled) {
  ASSIGN_OR_RETURN(TrialWithRecord trial, store_.trial(request.trial_id()));
  if (!trial.record)
    return invalid_argument("trial ", trial.trial.id,
                            " has no result yet, so it cannot be measured again; see tuner jobs");
  ASSIGN_OR_RETURN(const JobRow job, store_.job(trial.trial.job_id));
  MeasureOptions options = trial.record->options;
  options.cut_factor = -1;  // all its samples are wanted
  options.precision = 0;
  const std::string id = trial.trial.id;
  const int64_t limit = clock_.now_ms() + options_.rerun_limit_ms;

  std::unique_lock lock(mutex_);
  if (stopping_) return unavailable(stop_reason_);
  // A rerun's attempt is a million and its time in seconds: each is a sample of its own, told apart from the
  // job's.
  const int attempt = static_cast<int>(1'000'000 + wall_time_us() / 1'000'000 % 1'000'000'000);
  LeaseTable::Trial again{id, "rerun " + id, trial.task.target, attempt, trial.trial.fencing};
  if (reruns_.contains(id) || leases_.enqueue_again(again) == LeaseTable::Added::kKnownAlready)
    return Status(StatusCode::kAborted,
                  str("trial ", id, " is being measured right now; try again when that is done"));
  reruns_[id] = {};
  v1::Lease lease;
  to_proto(trial.trial, trial.task, options, &lease);
  specs_[id] = lease;
  work_.notify_all();
  Status status;
  while (!reruns_[id].record && reruns_[id].error.empty()) {
    if (stopping_) {
      status = unavailable(stop_reason_);
    } else if (cancelled()) {
      status = Status(StatusCode::kAborted, "the caller has gone");
    } else if (clock_.now_ms() >= limit) {
      status =
          Status(StatusCode::kDeadlineExceeded,
                 str("trial ", id, ": no worker measured it within ", options_.rerun_limit_ms / 1000,
                     " s. `tuner workers` lists who is there; it needs one for \"", trial.task.target, "\""));
    }
    if (!status) break;
    news_.wait_for(lock, kLook);
  }
  if (reruns_[id].record) *reply = *reruns_[id].record;
  if (status && !reruns_[id].error.empty()) status = failed("trial ", id, ": ", reruns_[id].error);
  reruns_.erase(id);
  specs_.erase(id);
  leases_.forget_job("rerun " + id);
  return status;
}

Status Coordinator::list_workers(v1::ListWorkersReply* reply) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [session, worker] : workers_) {
    v1::WorkerSummary* summary = reply->add_workers();
    summary->set_worker_id(worker.owner.worker_id);
    summary->set_host(worker.host);
    for (const std::string& target : worker.targets) summary->add_targets(target);
    summary->set_leases(static_cast<int>(leases_.leases_of(worker.owner)));
    summary->set_trials_done(worker.trials_done);
    summary->set_silent_s(static_cast<double>(clock_.now_ms() - worker.last_seen_ms) / 1000);
  }
  return Status::ok();
}

Result<TunedConfig> Coordinator::best_of(const JobRow::Task& task) const {
  ASSIGN_OR_RETURN(TunedConfig best,
                   store_.best(task.workload_key, task.target, templates_of(task.algorithms),
                               /*counted=*/true, task.constants));
  const Result<Workload> workload = workload_from_key(task.workload_key);
  const Result<Target> target = parse_target(task.target);
  if (workload && target)
    RETURN_IF_ERROR(add_default_time(store_, *workload, *target, task.algorithms, best));
  return best;
}

Status Coordinator::query(const v1::QueryRequest& request, v1::QueryReply* reply) const {
  ASSIGN_OR_RETURN(const JobRow::Task task, from_proto(request.task()));
  ASSIGN_OR_RETURN(const Workload workload, workload_from_key(task.workload_key));
  ASSIGN_OR_RETURN(const Target target, parse_target(task.target));
  ASSIGN_OR_RETURN(Answer answer, resolver_.resolve(workload, target, task.algorithms, task.constants));
  if (answer.kind == AnswerKind::kExact && !request.without_outcomes()) {
    ASSIGN_OR_RETURN(answer.tuned, best_of(task));
  }
  to_proto(answer, workload.flops(), reply->mutable_answer());
  reply->set_found(answer.kind == AnswerKind::kExact);
  if (reply->found()) {
    *reply->mutable_tuned() = reply->answer().tuned();
    return Status::ok();
  }
  // What was tuned is told, also where this program cannot build it.
  const Result<TunedConfig> best = best_of(task);
  if (!best) return best.status().code() == StatusCode::kNotFound ? Status::ok() : best.status();
  reply->set_found(true);
  to_proto(*best, workload.flops(), reply->mutable_tuned());
  return Status::ok();
}

void Coordinator::add_event(const std::string& job_id, JobState state, const std::string& message,
                            const v1::TunedConfig* tuned) {
  v1::JobEvent event;
  event.set_state(to_proto(state));
  event.set_message(message);
  if (tuned != nullptr) *event.mutable_tuned() = *tuned;
  std::string json;
  CHECK(google::protobuf::util::MessageToJsonString(event, &json).ok())
      << "a JobEvent of ours has a JSON form";
  if (const Result<int64_t> added = store_.add_event(job_id, json); !added)
    spdlog::error("job {}: its event \"{}\" is lost: {}", job_id, message, added.message());
  const std::lock_guard lock(mutex_);
  if (const auto found = jobs_.find(job_id); found != jobs_.end()) ++found->second->event_version;
  news_.notify_all();
}

}  // namespace tuner
