#include "tuner/daemon/worker_process.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <vector>

#include "compiler_core/base/child_process.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using Steady = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLookAtWorker{100};
constexpr std::chrono::seconds kSoon{10};  // dying sooner than this after a start counts as failing to start
constexpr int kGiveUpAfter = 3;

}  // namespace

Result<std::string> find_measure_server() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return failed("/proc/self/exe: ", error.message(), "; is /proc mounted?");
  const fs::path program = self.parent_path() / "measure_server";
  if (access(program.c_str(), X_OK) != 0)
    return not_found(program.string(),
                     ": the worker is not there. It is built beside `tuner`: cmake --build --preset release");
  return program.string();
}

WorkerProcess::WorkerProcess(Options options) : options_(std::move(options)) {
  std::error_code error;
  fs::create_directories(options_.work_dir, error);
  if (error) {
    state_ = failed("the worker's folder ", options_.work_dir, " cannot be made: ", error.message(),
                    ". XDG_CACHE_HOME names another place for it");
    return;
  }
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

Result<pid_t> WorkerProcess::spawn() const {
  const std::string log = options_.work_dir + "/worker.log";
  const Result<pid_t> pid =
      start_program({.path = options_.program,
                     .words = {options_.program, "--daemon", options_.daemon, "--work-dir", options_.work_dir,
                               "--exit-with", std::to_string(getpid())},
                     .log = log});
  if (!pid) return failed(pid.message(), " (log ", log, ")");
  return pid;
}

void WorkerProcess::supervise() {
  int failures = 0;
  while (true) {
    const Steady::time_point started = Steady::now();
    std::string how;
    const Result<pid_t> pid = spawn();
    if (pid) {
      std::optional<int> status;
      bool stopping = false;
      while (!stopping && !(status = status_if_ended(*pid))) {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, kLookAtWorker, [&] { return stopping_; });
        stopping = stopping_;
      }
      if (!status) {
        end_program(*pid, std::chrono::milliseconds(grace_ms_));
        return;
      }
      how = str("measure_server ended: ", ending_text(*status));
    } else {
      how = pid.message();
    }
    failures = Steady::now() - started < kSoon ? failures + 1 : 1;
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
