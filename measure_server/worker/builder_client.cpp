#include "measure_server/worker/builder_client.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "measure_server/runner/frame.h"

extern char** environ;

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
  // Above kBuilderFd, so that dup2 in the child always makes a new descriptor, without close-on-exec.
  const int theirs = ::fcntl(ends[1], F_DUPFD_CLOEXEC, kBuilderFd + 1);
  ::close(ends[1]);
  std::string cpu_list;
  for (const int cpu : cpus_) cpu_list += (cpu_list.empty() ? "" : ",") + std::to_string(cpu);
  std::vector<std::string> words = {program_, "--builder", "--exit-with", std::to_string(::getpid())};
  if (!cpu_list.empty()) words.insert(words.end(), {"--cpus", cpu_list});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs, kBuilderFd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Own process group: Ctrl-C at a terminal reaches the worker, which decides. Signals as a new program
  // expects them.
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGTERM);
  sigaddset(&defaults, SIGINT);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = ::posix_spawn(&pid_, program_.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(theirs);
  if (error != 0) {
    ::close(ends[0]);
    pid_ = -1;
    return unavailable("builder: ", program_, " cannot be started: ", std::strerror(error));
  }
  socket_ = ends[0];
  return Status::ok();
}

std::string BuilderClient::stop() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  if (pid_ <= 0) return "not running";
  // It may have died by itself: then this kill finds a zombie and the status tells the true end.
  int status = 0;
  pid_t reaped = 0;
  for (int i = 0; i < 20 && reaped == 0; ++i) {
    reaped = ::waitpid(pid_, &status, WNOHANG);
    if (reaped == 0) ::usleep(1000);
  }
  if (reaped == 0) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) return str("signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  return str("exit code ", WEXITSTATUS(status));
}

Result<BuildReply> BuilderClient::ask(const BuildRequest& request, std::chrono::milliseconds limit) {
  // One that died while idle is replaced: that was no candidate's doing.
  if (int status = 0; pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
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
  return failed("the builder died: ", stop());
}

}  // namespace tuner
