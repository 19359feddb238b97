#include "tuner/daemon/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <vector>

extern char** environ;

namespace tuner {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::seconds kSoon{10};  // dying sooner than this after a start counts as failing to start
constexpr int kGiveUpAfter = 3;

std::string describe(int status) {
  if (WIFSIGNALED(status))
    return str("was ended by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return str("exited with code ", WEXITSTATUS(status));
}

}  // namespace

Result<std::string> find_measure_server() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path program = self.parent_path() / "measure_server";
  if (error || access(program.c_str(), X_OK) != 0)
    return not_found(program.string(),
                     ": the worker is not there. It is built beside `tuner`: cmake --build --preset release");
  return program.string();
}

WorkerProcess::WorkerProcess(Options options) : options_(std::move(options)) {
  std::error_code error;
  fs::create_directories(options_.work_dir, error);  // spawn() reports what this could not do
  // The worker dies with the thread that started it (PDEATHSIG): one thread starts and watches it.
  thread_ = std::thread([this] { supervise(); });
}

WorkerProcess::~WorkerProcess() { stop(0); }

void WorkerProcess::stop(int grace_ms) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) grace_ms_ = grace_ms;
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status WorkerProcess::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

// posix_spawn: a program that uses gRPC must not fork without exec.
Result<pid_t> WorkerProcess::spawn() const {
  const std::string log = options_.work_dir + "/worker.log";
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  // Its own process group: Ctrl-C is for the command, which then stops the worker in order. Signals as at a
  // login.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = {options_.program,  "--daemon",    options_.daemon,         "--work-dir",
                                    options_.work_dir, "--exit-with", std::to_string(getpid())};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, options_.program.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return failed(options_.program, ": cannot be started (log ", log, "): ", std::strerror(error));
  return pid;
}

void WorkerProcess::supervise() {
  int failures = 0;
  while (true) {
    const Clock::time_point started = Clock::now();
    std::string how;
    const Result<pid_t> pid = spawn();
    if (pid) {
      int status = 0;
      bool stopping = false;
      while (!stopping && waitpid(*pid, &status, WNOHANG) == 0) {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, kLook, [&] { return stopping_; });
        stopping = stopping_;
      }
      if (stopping) {
        kill(*pid, SIGTERM);
        const Clock::time_point limit = Clock::now() + std::chrono::milliseconds(grace_ms_);
        while (waitpid(*pid, &status, WNOHANG) == 0) {
          if (Clock::now() >= limit) {
            kill(*pid, SIGKILL);
            waitpid(*pid, &status, 0);
            break;
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return;
      }
      how = str("measure_server ", describe(status));
    } else {
      how = pid.message();
    }
    failures = Clock::now() - started < kSoon ? failures + 1 : 1;
    spdlog::warn("{}; its log: {}/worker.log", how, options_.work_dir);
    std::unique_lock lock(mutex_);
    if (failures >= kGiveUpAfter) {
      state_ = failed("the worker does not stay up: ", how, ", ", failures,
                      " times soon after its start. Its log: ", options_.work_dir, "/worker.log");
      wake_.wait(lock, [&] { return stopping_; });
      return;
    }
    if (wake_.wait_for(lock, std::chrono::milliseconds(200 * failures), [&] { return stopping_; })) return;
  }
}

}  // namespace tuner
