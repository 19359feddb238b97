#include "measure_server/worker/builder_client.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "compiler_core/base/child_process.h"
#include "measure_server/runner/frame.h"

namespace tuner {

Result<std::unique_ptr<BuilderClient>> BuilderClient::start(std::string program, std::vector<int> cpus) {
  std::unique_ptr<BuilderClient> client(new BuilderClient(std::move(program), std::move(cpus)));
  RETURN_IF_ERROR(client->spawn());
  ASSIGN_OR_RETURN(client->hello_, client->ask({.kind = "hello"}, std::chrono::seconds(30)));
  return client;
}

BuilderClient::~BuilderClient() { stop(); }

Status BuilderClient::spawn() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return unavailable("builder: socketpair: ", std::strerror(errno));
  std::string cpu_list;
  for (const int cpu : cpus_) cpu_list += (cpu_list.empty() ? "" : ",") + std::to_string(cpu);
  std::vector<std::string> words = {program_, "--builder", "--exit-with", std::to_string(::getpid())};
  if (!cpu_list.empty()) words.insert(words.end(), {"--cpus", cpu_list});
  static_assert(kBuilderFd == kHandedOver);
  const Result<pid_t> pid =
      start_program({.path = program_, .words = std::move(words), .handed_over = ends[1], .deaf = true});
  ::close(ends[1]);
  if (!pid) {
    ::close(ends[0]);
    return unavailable("builder: ", pid.message());
  }
  pid_ = *pid;
  socket_ = ends[0];
  return Status::ok();
}

int BuilderClient::stop() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  if (pid_ <= 0) return 0;
  // It may have died by itself: then the status tells its true end.
  std::optional<int> status = wait_for_end(pid_, std::chrono::milliseconds(20));
  if (!status) status = end_program(pid_, std::chrono::milliseconds(0));
  pid_ = -1;
  return *status;
}

Result<BuildReply> BuilderClient::ask(const BuildRequest& request, std::chrono::milliseconds limit) {
  constexpr int kTries = 2;
  for (int i = 1;; ++i) {
    bool from_outside = false;
    Result<BuildReply> reply = ask_once(request, limit, from_outside);
    if (!from_outside || i == kTries) return reply;
  }
}

Result<BuildReply> BuilderClient::ask_once(const BuildRequest& request, std::chrono::milliseconds limit,
                                           bool& from_outside) {
  // One that died while idle is replaced: that was no candidate's doing.
  if (status_if_ended(pid_)) {
    pid_ = -1;
    stop();
  }
  if (pid_ <= 0) RETURN_IF_ERROR(spawn());
  const Deadline deadline = std::chrono::steady_clock::now() + limit;
  Status status = write_frame(socket_, to_json(request), deadline);
  if (status.is_ok()) {
    const Result<std::string> frame = read_frame(socket_, deadline);
    if (frame.is_ok()) return parse_build_reply(*frame);
    status = frame.status();
  }
  if (status.code() == StatusCode::kDeadlineExceeded) {
    ::kill(pid_, SIGKILL);
    stop();
    return Status(StatusCode::kDeadlineExceeded,
                  str("the build did not end in ", limit.count() / 1000.0, " s"));
  }
  // Its socket is closed, so it has ended, or does in a moment. Waited for, or stop() would kill it.
  const std::optional<int> ended = wait_for_end(pid_, std::chrono::seconds(1));
  if (ended) pid_ = -1;
  const int how = ended ? *ended : stop();
  if (ended) stop();
  from_outside = ended && WIFSIGNALED(how) && is_from_outside(WTERMSIG(how));
  if (from_outside)
    return unavailable("the builder was ended by somebody else (", ending_text(how),
                       "); does this machine have too little memory?");
  return failed("the builder died: ", ending_text(how));
}

std::function<Result<std::unique_ptr<Maker>>(const std::vector<int>&)> local_builders(std::string program) {
  return [program = std::move(program)](const std::vector<int>& cpus) -> Result<std::unique_ptr<Maker>> {
    ASSIGN_OR_RETURN(std::unique_ptr<BuilderClient> client, BuilderClient::start(program, cpus));
    return std::unique_ptr<Maker>(std::move(client));
  };
}

}  // namespace tuner
