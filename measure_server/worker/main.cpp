// measure_server: the worker. `measure_server --builder` is its builder process, started by itself.
#include "measure_server/worker/main.h"

#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/room.h"
#include "measure_server/worker/builder.h"
#include "measure_server/worker/worker.h"

namespace {

// Ends this process when its parent is not `owner` any more, whatever it is doing; 0: never.
void end_with(pid_t owner) {
  if (owner == 0) return;
  std::thread([owner] {
    while (::getppid() == owner) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::_Exit(1);
  }).detach();
}

tuner::Result<tuner::DaemonAccess> access_to(const std::string& daemon) {
  if (daemon.empty())
    return tuner::invalid_argument(
        "--daemon is missing: expected HOST:PORT, unix:/path or a credentials file of a running `tuner "
        "serve`");
  tuner::Result<tuner::DaemonAccess> access = tuner::find_daemon(daemon);
  if (!access) return access.status().with_context("--daemon: ");
  return access;
}

// 2: something in the command line has to change first.
int exit_status(const tuner::Status& status) {
  if (status.is_ok()) return 0;
  return status.code() == tuner::StatusCode::kInvalidArgument ? 2 : 1;
}

void add_isolation(CLI::App& app, std::string& level) {
  app.add_option(
         "--isolation", level,
         "The least that candidates must be kept apart from this host: none (limits only), process (and "
         "listed system calls only) or strict (and namespaces). They always get the most there is")
      ->check(CLI::IsMember({"none", "process", "strict"}))
      ->capture_default_str();
}

// How much it takes on, and where.
void add_work(CLI::App& app, tuner::WorkerOptions& options) {
  app.add_option("--slots", options.slots, "Trials held at once: one runs, the others are built")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--device", options.device,
                 "The GPU to measure on, by the driver's count; one worker for each of a host's GPUs")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str();
}

// `owner`: the process that started this one and with which it ends; 0: none.
int work(const tuner::DaemonAccess& daemon, const tuner::WorkerOptions& options, pid_t owner) {
  // Blocked here, before any thread starts, so that only the thread below receives them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

  auto worker = tuner::Worker::start(options);
  if (!worker.is_ok()) {
    spdlog::error("{}", worker.message());
    return exit_status(worker.status());
  }
  std::atomic<bool> done{false};
  std::thread watch([&signals, &done, owner, w = worker->get()] {
    for (int seen = 0; !done;) {
      const timespec wait{0, 100'000'000};
      const int signal = ::sigtimedwait(&signals, nullptr, &wait);
      // The daemon that started this worker is gone (perhaps before this line was first reached), and with it
      // whoever would take the results; they stay in the spool. Runner and builder end with this process.
      if (owner != 0 && ::getppid() != owner) std::_Exit(1);
      if (signal <= 0) continue;
      if (++seen > 1) std::_Exit(1);
      spdlog::info("finishing held trials, then leaving; interrupt again to leave at once");
      w->drain();
    }
  });

  const auto link = tuner::make_grpc_link(daemon);
  const tuner::Status status = (*worker)->run(*link);
  done = true;
  watch.join();
  return exit_status(status);
}

}  // namespace

namespace tuner {

int measure_server_main(int argc, char** argv) {
  CLI::App app("Measurement worker: takes trials from a daemon, builds, checks and times them on this host.",
               "measure_server");
  std::string daemon;
  bool builder = false;
  pid_t owner = 0;
  double cache_gib = 4;
  std::string log_level = "info";
  std::vector<int> cpus;
  tuner::WorkerOptions options;
  options.work_dir = tuner::user_cache_folder() + "/worker";
  options.shared_dir = tuner::shared_cache_folder();
  app.add_option("--daemon", daemon, "The daemon to work for: HOST:PORT, unix:/path or a credentials file");
  app.add_option(
      "--worker-id", options.worker_id,
      "Name of this worker, which no other worker of the daemon may have (default: the name in its "
      "credentials, else host name and eight digits, made once and kept in the work folder)");
  const CLI::Option* const work_dir =
      app.add_option(
             "--work-dir", options.work_dir,
             "Folder for this worker's id and results not yet reported, of one worker at a time. Where "
             "another one uses the default, -2, -3, ... is added")
          ->capture_default_str();
  app.add_option("--shared-dir", options.shared_dir,
                 "Folder for what all workers on this machine share: artifacts, reference answers, its peaks "
                 "and calm levels")
      ->capture_default_str();
  app.add_option("--cache-gib", cache_gib, "What artifacts and reference answers may take there, GiB")
      ->envname("TUNER_CACHE_GIB")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--runner", options.runner, "The runner executable (default: beside this one)");
  std::string isolation = "none";
  add_isolation(app, isolation);
  add_work(app, options);
  app.add_option("--log-level", log_level,
                 "The least that is logged; debug also names each acknowledged result")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.add_option("--exit-with", owner,
                 "End when the process with this number ends: the one that started this worker")
      ->check(CLI::PositiveNumber);
  app.add_flag("--builder", builder, "Run as the builder process of a worker, which starts it")->group("");
  app.add_option("--cpus", cpus, "CPUs of the builder")->delimiter(',')->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : 2;
  }
  options.least_isolation = *tuner::isolation_from_name(isolation);
  options.next_work_dir = work_dir->count() == 0;
  options.cache_bytes = static_cast<int64_t>(cache_gib * (int64_t{1} << 30));
  if (builder) {
    tuner::use_cpus(cpus);
    end_with(owner);
    return tuner::run_builder();
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("measure_server"));
  spdlog::set_pattern("%H:%M:%S %l: %v");
  spdlog::set_level(spdlog::level::from_str(log_level));
  std::error_code error;
  options.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) {
    std::fprintf(stderr, "measure_server: /proc/self/exe: %s; is /proc mounted?\n", error.message().c_str());
    return 1;
  }
  const tuner::Result<tuner::DaemonAccess> access = access_to(daemon);
  if (!access) {
    std::fprintf(stderr, "measure_server: %s\n", access.message().c_str());
    return exit_status(access.status());
  }
  options.daemon = access->address;
  options.worker_name = access->worker;
  return work(*access, options, owner);
}

}  // namespace tuner
