#include "measure_server/runner/runner_client.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "compiler_core/base/child_process.h"

namespace tuner {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {
// For other processes' timed runs to end. Many may stand before us, each with a run of a second or a heat.
constexpr seconds kDeviceWait{60};
}  // namespace

Result<std::unique_ptr<RunnerClient>> RunnerClient::start(const std::string& runner_path, Isolation at_most) {
  std::unique_ptr<RunnerClient> client(new RunnerClient(runner_path, at_most));
  RETURN_IF_ERROR(client->spawn());
  // An executable that is no runner is told now, not at the first candidate.
  Result<std::string> hello =
      client->ask(to_json(ProbeRequest{.max_threads = -1}), steady_clock::now() + seconds(10));
  if (!hello.is_ok()) return failed(runner_path, ": does not answer as a runner: ", hello.message());
  return client;
}

RunnerClient::~RunnerClient() { stop(); }

Status RunnerClient::spawn() {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return failed("socketpair: ", std::strerror(errno));

  const Result<pid_t> pid =
      start_program({.path = runner_path_,
                     .words = {"runner", "--serve", "--isolation", std::string(isolation_name(at_most_))},
                     .handed_over = pair[1],
                     .deaf = true});
  close(pair[1]);
  if (!pid) {
    close(pair[0]);
    return pid.status();
  }
  std::lock_guard lock(socket_mutex_);
  socket_ = pair[0];
  pid_ = *pid;
  return Status::ok();
}

std::string RunnerClient::stop() {
  {
    std::lock_guard lock(socket_mutex_);
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }
  const pid_t pid = pid_.exchange(-1);
  if (pid < 0) return "not running";
  // A child it may have dies with it (PR_SET_PDEATHSIG).
  return ending_text(end_program(pid, std::chrono::milliseconds(0)));
}

Status RunnerClient::take_turn(Deadline deadline) {
  std::unique_lock lock(turn_mutex_);
  if (!turn_free_.wait_until(lock, deadline, [this] { return !busy_; }))
    return {StatusCode::kDeadlineExceeded, "the runner was busy with another request"};
  busy_ = true;
  return Status::ok();
}

void RunnerClient::end_turn() {
  {
    std::lock_guard lock(turn_mutex_);
    busy_ = false;
  }
  turn_free_.notify_one();
}

Result<std::string> RunnerClient::ask(const std::string& message, Deadline deadline) {
  RETURN_IF_ERROR(take_turn(deadline));
  Result<std::string> reply = exchange(message, deadline);
  end_turn();
  return reply;
}

Result<DeviceLocks::Held> RunnerClient::lock(uint64_t id, const Devices& devices) {
  bool waited = false;
  const auto cancelled = [&] { return id != 0 && cancelled_ == id; };
  const auto wait = [&] {
    if (!std::exchange(waited, true) && on_wait_) on_wait_(true);
    return cancelled();
  };
  const auto say = [&](const std::string& line) {
    if (on_long_wait_) return on_long_wait_(line);
    std::fprintf(stderr, "%s\n", line.c_str());
  };
  Result<DeviceLocks::Held> held = locks_.take(devices, kDeviceWait, wait, say);
  if (waited && on_wait_) on_wait_(false);
  // The runner was told before it heard of the run, if it was told at all.
  if (cancelled()) return Status(StatusCode::kAborted, str("run ", id, " was cancelled"));
  return held;
}

Result<std::string> RunnerClient::ask_timed(const std::string& message, uint64_t id, const Devices& devices,
                                            Deadline deadline) {
  RETURN_IF_ERROR(take_turn(deadline));
  const auto begin = steady_clock::now();
  Result<std::string> reply = failed("not asked");
  if (const Result<DeviceLocks::Held> held = lock(id, devices); held.is_ok())
    reply = exchange(message, deadline + (steady_clock::now() - begin));
  else
    reply = held.status();
  end_turn();
  return reply;
}

Result<std::string> RunnerClient::exchange(const std::string& message, Deadline deadline) {
  if (pid_ < 0) RETURN_IF_ERROR(spawn().with_context("restarting the runner: "));
  Status sent;
  {
    std::lock_guard lock(socket_mutex_);
    sent = write_frame(socket_, message, deadline);
  }
  Result<std::string> reply = sent.is_ok() ? read_frame(socket_, deadline) : Result<std::string>(sent);
  if (reply.is_ok()) return reply;
  // A runner that is late, dead or speaks nonsense is replaced; what it was doing says nothing about the
  // candidate. Give a dying one a moment to be reaped as what it was, before it is killed.
  std::string ended;
  if (reply.status().code() == StatusCode::kUnavailable) {
    if (const std::optional<int> status = wait_for_end(pid_, milliseconds(100))) {
      ended = ending_text(*status);
      pid_ = -1;
    }
  }
  const std::string killed = stop();
  if (ended.empty()) ended = killed;
  const Status again = spawn();
  const std::string next =
      again.is_ok() ? "it was restarted" : str("it cannot be restarted: ", again.message());
  if (reply.status().code() == StatusCode::kDeadlineExceeded)
    return Status(StatusCode::kDeadlineExceeded,
                  str("the runner gave no answer in time and was killed; ", next));
  return unavailable("the runner died (", ended, "): ", reply.message(), "; ", next);
}

Result<RunReply> RunnerClient::run(const RunRequest& request, Deadline deadline) {
  ASSIGN_OR_RETURN(
      const std::string text,
      ask_timed(to_json(request), request.id, {.cpus = request.cpus, .gpu = request.device_uuid}, deadline));
  ASSIGN_OR_RETURN(RunReply reply, parse_run_reply(text));
  if (reply.error == "cancelled")
    return Status(StatusCode::kAborted, str("run ", request.id, " was cancelled"));
  if (reply.device_sick) return unavailable("runner: ", reply.error);
  if (reply.refused) return invalid_argument("the runner refuses the request: ", reply.error);
  if (!reply.error.empty()) return failed("runner: ", reply.error);
  if (reply.id != request.id)
    return Status(StatusCode::kInternal,
                  str("runner: asked for run ", request.id, ", answered run ", reply.id));
  return reply;
}

Deadline RunnerClient::deadline_of(const RunRequest& request) {
  // The device child starts twice at most: when one before left an error, and after a fault.
  const seconds starts = request.device_uuid.empty() ? seconds(0) : 2 * first_device_start();
  return steady_clock::now() + milliseconds(static_cast<int64_t>(request.run_timeout_s * 1000)) +
         seconds(30) + starts;
}

Result<RunReply> RunnerClient::run(const RunRequest& request) { return run(request, deadline_of(request)); }

Result<RaceReply> RunnerClient::race(const RaceRequest& request) {
  ASSIGN_OR_RETURN(
      const std::string text,
      ask_timed(to_json(request), request.base.id,
                {.cpus = request.base.cpus, .gpu = request.base.device_uuid}, deadline_of(request.base)));
  ASSIGN_OR_RETURN(RaceReply reply, parse_race_reply(text));
  if (reply.error == "cancelled")
    return Status(StatusCode::kAborted, str("race ", request.base.id, " was cancelled"));
  if (reply.device_sick) return unavailable("runner: ", reply.error);
  if (reply.refused) return invalid_argument("the runner refuses the request: ", reply.error);
  if (!reply.error.empty()) return failed("runner: ", reply.error);
  if (reply.id != request.base.id || reply.candidates.size() != request.candidates.size())
    return Status(StatusCode::kInternal,
                  str("runner: asked for race ", request.base.id, " of ", request.candidates.size(),
                      ", answered race ", reply.id, " of ", reply.candidates.size()));
  return reply;
}

void RunnerClient::cancel(uint64_t id) {
  cancelled_ = id;
  std::lock_guard lock(socket_mutex_);
  // A runner that cannot take 40 bytes in a second is about to miss its deadline anyway.
  if (socket_ >= 0) (void)write_frame(socket_, to_json(CancelRequest{id}), steady_clock::now() + seconds(1));
}

Deadline RunnerClient::probe_deadline() { return steady_clock::now() + seconds(60) + first_device_start(); }

Result<ProbeReply> RunnerClient::probe(int max_threads, Deadline deadline) {
  return probe(ProbeRequest{max_threads}, deadline);
}

Result<ProbeReply> RunnerClient::probe(const ProbeRequest& request, Deadline deadline) {
  const bool timed = request.max_threads >= 0 && !request.devices_only;
  Result<std::string> text =
      timed ? ask_timed(to_json(request), /*id=*/0, {}, deadline) : ask(to_json(request), deadline);
  // Peaks taken beside somebody's runs are better than none.
  if (timed && is_device_busy(text.status())) text = ask(to_json(request), deadline + kDeviceWait);
  if (!text.is_ok()) return text.status();
  return parse_probe_reply(*text);
}

Result<std::string> find_runner() {
  if (const char* given = std::getenv("TUNER_RUNNER"); given != nullptr && *given != '\0')
    return std::string(given);
  char self[4096];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self);
  if (n > 0 && n < static_cast<ssize_t>(sizeof self)) {
    const std::string path(self, n);
    const std::string beside = path.substr(0, path.rfind('/') + 1) + "runner";
    if (access(beside.c_str(), X_OK) == 0) return beside;
  }
  return not_found("no executable `runner` beside this program; set TUNER_RUNNER to its path");
}

}  // namespace tuner
