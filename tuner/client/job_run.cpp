#include "tuner/client/job_run.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace tuner {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::seconds kReconnectFor{60};
constexpr double kLearnFor = 15;  // seconds after the last job, at most

// Whatever ends the run leaves the drawing behind.
class Ending {
 public:
  explicit Ending(ProgressView& view) : view_(view) {}
  ~Ending() { view_.finish(); }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  ProgressView& view_;
};

}  // namespace

struct JobRun::Turn {
  Status status;
  bool interrupted = false;
};

JobRun::JobRun(const JobRow& job, bool fresh, ConnectOptions where, std::function<bool()> interrupted)
    : job_(job),
      fresh_(fresh),
      where_(std::move(where)),
      interrupted_(std::move(interrupted)),
      view_(static_cast<int>(job.tasks.size())) {
  out_.tuned.resize(job.tasks.size());
}

Status JobRun::run() {
  const steady_clock::time_point began = steady_clock::now();
  const Ending below(view_);  // what the command says next
  steady_clock::time_point alive = began;
  while (true) {
    const Result<DaemonClient> client = DaemonClient::connect(where_);
    Status status = client.status();
    if (client) {
      out_.hosted = client->hosts();
      const int64_t seq_before = after_seq_;
      const Turn turn = follow(*client);
      if (after_seq_ != seq_before) alive = steady_clock::now();
      end_host(*client, turn);
      out_.interrupted = turn.interrupted;
      out_.wall_s = std::chrono::duration<double>(steady_clock::now() - began).count();
      status = turn.status;
      if (status) return status;
    }
    if (interrupted_()) {
      out_.interrupted = true;
      return Status::ok();
    }
    // Only a job that had been accepted is worth waiting for.
    if (status.code() != StatusCode::kUnavailable || out_.job_id.empty() ||
        steady_clock::now() - alive > kReconnectFor)
      return status;
    view_.say(str("  ", status.message(), "; continuing job ", out_.job_id));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

// Submits over this connection and follows the job until it ends, the connection breaks or the user stops it.
JobRun::Turn JobRun::follow(const DaemonClient& client) {
  const Result<v1::SubmitReply> reply = client.submit(job_, fresh_);
  if (!reply) return {reply.status()};
  const bool first_turn = out_.job_id.empty();
  out_.job_id = reply->job_id();
  out_.already_finished = reply->already_finished();
  if (reply->already_finished()) {
    out_.state = v1::FINISHED;
  } else {
    if (first_turn) say_accepted(client, *reply);
    const Turn watched = watch(client);
    if (!watched.status || watched.interrupted) return watched;
  }
  for (size_t i = 0; i < job_.tasks.size(); ++i) {
    const Result<v1::QueryReply> answer = client.query(job_.tasks[i]);
    if (!answer) return {answer.status()};
    out_.tuned[i] = answer->found() ? std::optional(answer->tuned()) : std::nullopt;
  }
  return {};
}

void JobRun::say_accepted(const DaemonClient& client, const v1::SubmitReply& reply) {
  view_.say(str("job ", out_.job_id, reply.continued() ? " continues " : " runs ",
                client.hosts() ? "on this machine" : "by " + client.name(), ": ", job_.tasks.size(),
                job_.tasks.size() == 1 ? " task, " : " tasks, ", job_.trials, " trials each, ", job_.search,
                ", seed ", job_.seed));
  // A continued job has a history of its own; only what comes now is news.
  if (reply.continued()) after_seq_ = -1;
}

JobRun::Turn JobRun::watch(const DaemonClient& client) {
  live_ = after_seq_ >= 0;
  const std::unique_ptr<JobWatch> watch = client.watch(out_.job_id, std::max<int64_t>(after_seq_, 0));
  while (true) {
    const JobWatch::Next next = watch->next(100);
    if (interrupted_()) return {Status::ok(), true};
    if (Status worker = client.worker_state(); !worker) return {worker};
    if (next.event)
      take_in(*next.event);
    else if (next.ended)
      return {next.status};
  }
}

void JobRun::take_in(const v1::JobEvent& event) {
  after_seq_ = std::max(after_seq_, event.seq());
  if (event.has_progress()) {
    const int64_t done = event.progress().trials_done();
    out_.progress = event.progress();
    live_ = true;
    if (out_.trials_before < 0) out_.trials_before = done;
    if (done > out_.trials_before) {
      out_.last_result = steady_clock::now();
      if (!out_.first_result) {
        out_.first_result = out_.last_result;
        out_.first_done = done;
      }
    }
    out_.trials_after = done;
  }
  if (live_ || event.state() != v1::JOB_RUNNING) view_.show(event);
  out_.state = event.state();
  out_.message = event.message();
}

void JobRun::end_host(const DaemonClient& client, const Turn& turn) {
  if (turn.interrupted) {
    view_.say("stopping...");
    view_.erase();
  }
  if (!client.hosts()) return;
  if (turn.status && !turn.interrupted && !client.wait_until_learned(kLearnFor))
    view_.say("  the lessons of this job for other shapes are not learned yet: tuner learn");
  client.stop_host(str("the command that hosted the daemon (process ", getpid(), ") has ended"));
}

}  // namespace tuner
