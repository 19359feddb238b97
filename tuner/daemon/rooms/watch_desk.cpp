#include "tuner/daemon/rooms/watch_desk.h"

#include <chrono>
#include <utility>

#include "proto/convert.h"
#include "tuner/daemon/edge/messages.h"
#include "tuner/daemon/rooms/job_desk.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLook{250};         // how often a blocked call looks whether its caller has gone
constexpr int64_t kProgressEveryMs = 100;  // to one watcher

Status reader_has_gone() { return Status(StatusCode::kAborted, "the reader has gone"); }

}  // namespace

// Sends the job's events behind `after`, which grows with them.
Status WatchDesk::send_events(const std::string& job_id, bool ended, const Send& send, int64_t& after) const {
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
bool WatchDesk::send_store_trouble(int64_t after, const Send& send, std::string& told) const {
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
Result<JobRow> WatchDesk::known_job(const JobRow& as_was) const {
  {
    const Locked farm(farm_);
    if (farm->jobs.find(as_was.id) != nullptr) return as_was;
  }
  return store_.job(as_was.id);
}

Status WatchDesk::watch(const v1::WatchRequest& request, const Send& send, const Cancelled& cancelled,
                        const Scope& scope) {
  ASSIGN_OR_RETURN(JobRow row, job_in(store_, scope, request.job_id()));
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

}  // namespace tuner
