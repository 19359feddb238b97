#include "measure_server/runner/device_host.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/clock.h"
#include "measure_server/runner/patience.h"
#include "measure_server/runner/peer.h"

namespace tuner {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {

constexpr seconds kEndLimit{10};
constexpr int kChecksBeforeQuarantine = 3;
constexpr int kLongestPauseS = 60;

// Limits of the driver's starts in the life of this runner. It is slow when it is cold: its modules are
// loaded, and every GPU of the host is set up.
class StartLimit {
 public:
  milliseconds next() const {
    const milliseconds first = first_device_start();
    return longest_.count() == 0 ? first : std::min(first, std::max(first / 6, 2 * longest_));
  }
  void took(milliseconds time) { longest_ = std::max({longest_, time, milliseconds(1)}); }

 private:
  milliseconds longest_{0};  // 0: it has not started yet
};
StartLimit start_limit;

std::string seconds_text(milliseconds time) { return str(static_cast<double>(time.count()) / 1000, " s"); }

RunReply trouble(uint64_t id, const std::string& why) {
  RunReply reply;
  reply.id = id;
  reply.error = why;
  return reply;
}

RunReply sick(uint64_t id, const std::string& why) {
  RunReply reply = trouble(id, why);
  reply.device_sick = true;
  return reply;
}

RunReply verdict(uint64_t id, Outcome outcome, const std::string& message) {
  RunReply reply;
  reply.id = id;
  reply.outcome = outcome;
  reply.message = message;
  return reply;
}

// True if the process, whose socket is closed, ended by a signal that somebody else sent. A GPU's candidate
// makes no system call: it sends none.
bool ended_from_outside(pid_t pid, int pidfd) {
  pollfd ended{pidfd, POLLIN, 0};
  while (poll(&ended, 1, 1'000) < 0 && errno == EINTR) {
  }
  siginfo_t how{};
  return ended.revents != 0 &&
         waitid(P_PID, static_cast<id_t>(pid), &how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         (how.si_code == CLD_KILLED || how.si_code == CLD_DUMPED) && is_from_outside(how.si_status);
}

}  // namespace

DeviceHost::~DeviceHost() { end_child(); }

Result<DeviceHost::Process> DeviceHost::spawn(const std::string& mode, const std::string& argument) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return failed("socketpair: ", strerror(errno));
  // A group of its own, so that a helper the driver may have started goes with it.
  std::vector<std::string> words = {"runner", mode};
  if (!argument.empty()) words.push_back(argument);
  const Result<pid_t> pid = start_program(
      {.path = "/proc/self/exe", .words = std::move(words), .handed_over = pair[1], .deaf = true});
  close(pair[1]);
  if (!pid) {
    close(pair[0]);
    return failed("the device child: ", pid.message());
  }
  Process process{.pid = *pid, .socket = pair[0]};
  process.pidfd = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0u));
  if (process.pidfd < 0) {
    const int pidfd_error = errno;
    bool gone = false;
    end(process, gone);
    return failed("pidfd_open: ", strerror(pidfd_error));
  }
  return process;
}

std::string DeviceHost::end(Process& process, bool& gone) {
  gone = true;
  if (process.pid < 0) return "not running";
  kill(-process.pid, SIGKILL);
  kill(process.pid, SIGKILL);
  pollfd ended{process.pidfd, POLLIN, 0};
  if (process.pidfd >= 0) gone = poll(&ended, 1, static_cast<int>(milliseconds(kEndLimit).count())) > 0;
  int status = 0;
  std::string how = "cannot be killed";
  // Reaped at once, or, when the driver holds it, by whoever looks for children later.
  if (waitpid(process.pid, &status, gone ? 0 : WNOHANG) == process.pid) how = ending_text(status);
  if (process.pidfd >= 0) close(process.pidfd);
  if (process.socket >= 0) close(process.socket);
  process = {};
  return how;
}

void DeviceHost::end_child() {
  bool gone = true;
  end(process_, gone);
  if (gone) return;
  // The next child would hang on the same driver: let checks decide, with a pause.
  failed_checks_ = std::max(failed_checks_, kChecksBeforeQuarantine);
  last_failure_ = str("a device child could not be killed within ", kEndLimit.count(), " s");
  next_check_ = steady_clock::now() + seconds(kLongestPauseS);
}

void DeviceHost::list_devices(ProbeReply& reply) {
  Result<Process> process = spawn("--device-list", "");
  if (!process.is_ok()) {
    reply.no_device = process.message();
    return;
  }
  const auto begin = steady_clock::now();
  const milliseconds limit = start_limit.next();
  const Result<std::string> text = read_frame(process->socket, begin + limit);
  bool gone = false;
  const std::string how = end(*process, gone);
  const Result<ProbeReply> listed =
      text.is_ok() ? parse_probe_reply(*text) : Result<ProbeReply>(text.status());
  if (listed.is_ok()) {
    start_limit.took(std::chrono::ceil<milliseconds>(steady_clock::now() - begin));
    reply.devices = listed->devices;
    reply.no_device = listed->no_device;
  } else if (text.status().code() == StatusCode::kDeadlineExceeded) {
    reply.no_device = str("no GPU: the driver gave no answer within ", seconds_text(limit),
                          "; TUNER_DEVICE_START_S grants more");
  } else {
    reply.no_device =
        str("no GPU: the process that asks the driver gave no answer: ", listed.message(), " (", how, ")");
  }
}

// --- one child ---

Status DeviceHost::start(int device) {
  ASSIGN_OR_RETURN(process_, spawn("--device-child", std::to_string(device)));
  device_ = device;
  const auto begin = steady_clock::now();
  const milliseconds limit = start_limit.next();
  const Result<std::string> text = read_frame(process_.socket, begin + limit);
  const Result<DeviceMessage> message =
      text.is_ok() ? parse_device_message(*text) : Result<DeviceMessage>(text.status());
  if (message.is_ok() && message->kind == DeviceMessage::Kind::kReady) {
    start_limit.took(std::chrono::ceil<milliseconds>(steady_clock::now() - begin));
    return Status::ok();
  }
  bool gone = true;
  const std::string how = end(process_, gone);
  if (message.is_ok() && message->kind == DeviceMessage::Kind::kFailed) return failed(message->error);
  if (text.status().code() == StatusCode::kDeadlineExceeded)
    return failed("the device did not answer within ", seconds_text(limit));
  return failed("the device child ended while it checked the device: ", how);
}

Status DeviceHost::ready(int device) {
  if (process_.pid >= 0 && device_ == device) return Status::ok();
  end_child();
  const bool quarantined = failed_checks_ >= kChecksBeforeQuarantine;
  if (!quarantined || steady_clock::now() >= next_check_) {
    const Status status = start(device);
    if (status.is_ok()) {
      failed_checks_ = 0;
      return status;
    }
    ++failed_checks_;
    last_failure_ = status.message();
    const int doublings = std::clamp(failed_checks_ - kChecksBeforeQuarantine, 0, 6);
    next_check_ = steady_clock::now() + seconds(std::min(1 << doublings, kLongestPauseS));
    if (failed_checks_ < kChecksBeforeQuarantine) return failed("device check: ", last_failure_);
  }
  return failed("device quarantined: ", failed_checks_, " checks in a row failed, the last: ", last_failure_);
}

RunReply DeviceHost::run_once(const RunRequest& request, bool& peer_gone) {
  if (const Status status = ready(request.device); !status.is_ok()) return sick(request.id, status.message());
  // A warm child that died since the last candidate (the system was out of memory, say) says nothing about
  // this one: one more try with a fresh one.
  const std::string order = to_json(DeviceOrder{.request = request});
  if (!write_frame(process_.socket, order, seconds_from_now(10)).is_ok()) {
    end_child();
    if (const Status status = ready(request.device); !status.is_ok())
      return sick(request.id, status.message());
    if (const Status sent = write_frame(process_.socket, order, seconds_from_now(10)); !sent.is_ok()) {
      end_child();
      return sick(request.id, "device child: " + sent.message());
    }
  }
  return watch(request.id, request.run_timeout_s, peer_gone).reply;
}

Status DeviceHost::renew(int device) {
  end_child();
  return ready(device);
}

DeviceMessage DeviceHost::ask(const DeviceOrder& order, uint64_t id, double limit_s, bool& peer_gone) {
  if (const Status sent = write_frame(process_.socket, to_json(order), seconds_from_now(10)); sent.is_ok())
    return watch(id, limit_s, peer_gone);
  end_child();
  return {.kind = DeviceMessage::Kind::kDone, .reply = sick(id, "the device child is gone")};
}

RunReply DeviceHost::run(const RunRequest& request, bool& peer_gone) {
  peer_gone = false;
  phase_ = Phase::kStarting;
  const auto begin = steady_clock::now();
  if (request.wary) end_child();  // nothing of an earlier candidate is in a fresh context
  RunReply reply = run_once(request, peer_gone);
  const bool by_one_before = reply.device_sick && phase_ == Phase::kLoading && process_.pid < 0;
  if ((by_one_before || ended_from_outside_) && !peer_gone) reply = run_once(request, peer_gone);
  const bool is_faulty = reply.outcome == Outcome::kCrashed || reply.outcome == Outcome::kRunTimeout;
  if (is_faulty && process_.pid < 0 && !peer_gone)
    if (const Status back = ready(request.device); !back.is_ok())
      return sick(request.id,
                  str("the device was lost while a candidate ran (", reply.message, "): ", back.message()));
  reply.run_ms = ms_since(begin);
  return reply;
}

DeviceMessage DeviceHost::watch(uint64_t id, double limit_s, bool& peer_gone) {
  phase_ = Phase::kStarting;
  ended_from_outside_ = false;
  const auto done = [](RunReply reply) {
    return DeviceMessage{.kind = DeviceMessage::Kind::kDone, .reply = std::move(reply)};
  };
  Patience patience(seconds_from_now(limit_s) - steady_clock::now());
  for (;;) {
    pollfd wait[2] = {{process_.socket, POLLIN, 0}, {peer_, POLLIN, 0}};
    poll(wait, 2, patience.poll_ms());
    if (wait[0].revents != 0) {
      const Result<std::string> text = read_frame(process_.socket, seconds_from_now(10));
      Result<DeviceMessage> message =
          text.is_ok() ? parse_device_message(*text) : Result<DeviceMessage>(text.status());
      if (!message.is_ok()) {
        // The child ended by itself: the driver crashed in it, on what this candidate gave it.
        bool gone = true;
        ended_from_outside_ = !text.is_ok() && ended_from_outside(process_.pid, process_.pidfd);
        const std::string how = end(process_, gone);
        if (ended_from_outside_)
          return done(sick(id, str("the driver's process was ended by somebody else (", how, ")")));
        return done(verdict(id, Outcome::kCrashed,
                            str("the driver's process ended (", how, ") while ", phase_name(phase_))));
      }
      phase_ = message->kind == DeviceMessage::Kind::kPhase ? message->phase : phase_;
      if (message->kind != DeviceMessage::Kind::kDone) continue;
      if (message->poisoned) end_child();
      return *std::move(message);
    }
    if (wait[1].revents != 0) {
      const PeerWish wish = read_wish(peer_, id);
      if (wish == PeerWish::kNothing) continue;
      end_child();
      peer_gone = wish == PeerWish::kGone;
      return done(trouble(id, peer_gone ? "the peer is gone" : "cancelled"));
    }
    if (patience.over()) {
      end_child();
      return done(verdict(id, Outcome::kRunTimeout,
                          str("still running after ", limit_s, " s while ", phase_name(phase_))));
    }
  }
}

}  // namespace tuner
