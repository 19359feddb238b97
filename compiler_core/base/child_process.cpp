#include "compiler_core/base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <thread>

#include "compiler_core/base/process_emulator.h"

extern char** environ;

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What a child begins with: its descriptors, signals and group.
class Start {
 public:
  explicit Start(const ChildProgram& program) {
    posix_spawn_file_actions_init(&files_);
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!program.log.empty()) {
      posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, program.log.c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0644);
      posix_spawn_file_actions_adddup2(&files_, STDOUT_FILENO, STDERR_FILENO);
    }
    const bool hands_over = program.handed_over >= 0;
    if (hands_over) posix_spawn_file_actions_adddup2(&files_, program.handed_over, kHandedOver);
    posix_spawn_file_actions_addclosefrom_np(&files_, hands_over ? kHandedOver + 1 : kHandedOver);
    sigset_t blocked, all;
    sigemptyset(&blocked);
    if (program.deaf) blocked = asking_signals();
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    posix_spawnattr_setsigmask(&attributes_, &blocked);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;
  ~Start() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  int run(const std::string& path, char* const* argv, pid_t& pid) const {
    return ::posix_spawn(&pid, path.c_str(), &files_, &attributes_, argv, environ);
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

// What is started is for this architecture, as we are. Where an emulator runs us, the system may not know how
// to start it: our emulator does, with the options that we are run with.
ChildProgram under_our_emulator(ChildProgram program) {
  if (emulator_words().empty()) return program;
  if (program.path == "/proc/self/exe") program.path = path_of_this_program();
  std::ifstream in(program.path, std::ios::binary);
  std::string begin(64, '\0');
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  if (!begin.starts_with("\177ELF") || is_foreign_program(begin)) return program;  // a script, or the host's
  std::vector<std::string> words = emulator_words();
  words.push_back(program.path);
  if (!program.words.empty()) words.insert(words.end(), program.words.begin() + 1, program.words.end());
  program.path = words[0];
  program.words = std::move(words);
  return program;
}

int reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

Result<pid_t> start_program(const ChildProgram& asked) {
  const ChildProgram program = under_our_emulator(asked);
  std::vector<std::string> words = program.words;
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // dup2 onto itself would keep close-on-exec: from above, it always makes a new descriptor.
  ChildProgram placed = program;
  if (program.handed_over >= 0) {
    placed.handed_over = ::fcntl(program.handed_over, F_DUPFD_CLOEXEC, kHandedOver + 1);
    if (placed.handed_over < 0) return failed(program.path, ": cannot be started: ", std::strerror(errno));
  }
  pid_t pid = -1;
  const int error = Start(placed).run(program.path, argv.data(), pid);
  if (placed.handed_over >= 0) ::close(placed.handed_over);
  if (error != 0) return failed(program.path, ": cannot be started: ", std::strerror(error));
  return pid;
}

std::optional<int> status_if_ended(pid_t pid) {
  int status = 0;
  const pid_t ended = pid > 0 ? ::waitpid(pid, &status, WNOHANG) : 0;
  if (ended == pid) return status;
  return ended < 0 && errno == ECHILD ? std::optional<int>(0) : std::nullopt;
}

std::optional<int> wait_for_end(pid_t pid, milliseconds limit) {
  const steady_clock::time_point end = steady_clock::now() + limit;
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0u));
  for (;;) {
    if (const std::optional<int> status = status_if_ended(pid); status || steady_clock::now() >= end) {
      if (pidfd >= 0) ::close(pidfd);
      return status;
    }
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now()).count();
    pollfd ended{pidfd, POLLIN, 0};
    if (pidfd >= 0)
      ::poll(&ended, 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX)));
    else
      std::this_thread::sleep_for(milliseconds(std::clamp<int64_t>(left, 0, 5)));  // a kernel before 5.3
  }
}

int end_program(pid_t pid, milliseconds grace) {
  if (grace.count() > 0) {
    ::kill(pid, SIGTERM);
    if (const std::optional<int> status = wait_for_end(pid, grace)) return *status;
  }
  ::kill(pid, SIGKILL);
  return reap(pid);
}

sigset_t asking_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) sigaddset(&signals, signal);
  return signals;
}

bool is_from_outside(int signal) {
  const sigset_t asking = asking_signals();
  return signal == SIGKILL || signal == SIGXCPU || sigismember(&asking, signal) == 1;
}

std::string ending_text(int status) {
  if (!WIFSIGNALED(status)) return str("exit status ", WEXITSTATUS(status));
  return signal_text(WTERMSIG(status));
}

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return str("signal ", signal, " (", name != nullptr ? str("SIG", name) : "unknown", ")");
}

}  // namespace tuner
