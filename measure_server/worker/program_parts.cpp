#include "measure_server/worker/program_parts.h"

#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "compiler_core/base/room.h"

namespace tuner {
namespace {

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void add_common_options(CLI::App& app, CommonOptions& options) {
  options.work_dir = user_cache_folder() + "/worker";
  options.shared_dir = shared_cache_folder();
  app.add_option("--daemon", options.daemon,
                 "The daemon to work for: HOST:PORT, unix:/path or a credentials file");
  app.add_option(
      "--worker-id", options.worker_id,
      "Name of this worker, which no other worker of the daemon may have (default: the name in its "
      "credentials, else host name and eight digits, made once and kept in the work folder)");
  options.work_dir_option =
      app.add_option(
             "--work-dir", options.work_dir,
             "Folder for this worker's id and results not yet reported, of one worker at a time. Where "
             "another one uses the default, -2, -3, ... is added; the default of a builder is builder")
          ->capture_default_str();
  app.add_option("--shared-dir", options.shared_dir,
                 "Folder for what all workers on this machine share: artifacts, reference answers, its peaks "
                 "and calm levels")
      ->capture_default_str();
  app.add_option("--cache-gib", options.cache_gib, "What artifacts and reference answers may take there, GiB")
      ->envname("TUNER_CACHE_GIB")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--log-level", options.log_level,
                 "The least that is logged; debug also names each acknowledged result")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.add_option("--exit-with", options.owner,
                 "End when the process with this number ends: the one that started this worker")
      ->check(CLI::PositiveNumber);
}

void add_isolation(CLI::App& app, std::string& level) {
  app.add_option(
         "--isolation", level,
         "The least that candidates must be kept apart from this host: none (limits only), process (and "
         "listed system calls only) or strict (and namespaces). They always get the most there is")
      ->check(CLI::IsMember({"none", "process", "strict"}))
      ->capture_default_str();
}

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  const auto complaint = [](const std::string& text) {
    return text.empty() ? std::string("expected a value, found an empty word; is a shell variable not set?")
                        : "";
  };
  for (CLI::Option* option : app.get_options()) option->transform(CLI::Validator(complaint, ""));
  for (int i = 1; i < argc; ++i)  // CLI11 would take the next word for the value
    if (const std::string_view word = argv[i]; word.starts_with("--") && word.find('=') == word.size() - 1) {
      std::fprintf(stderr, "%s: %s: %s\n", app.get_name().c_str(), argv[i], complaint("").c_str());
      return 2;
    }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : 2;
  }
  return std::nullopt;
}

Result<DaemonAccess> access_to(const std::string& daemon) {
  if (daemon.empty())
    return invalid_argument(
        "--daemon is missing: expected HOST:PORT, unix:/path or a credentials file of a running `tuner "
        "serve`");
  Result<DaemonAccess> access = find_daemon(daemon);
  if (!access) return access.status().with_context("--daemon: ");
  return access;
}

int exit_status(const Status& status) {
  if (status.is_ok()) return 0;
  return status.code() == StatusCode::kInvalidArgument ? 2 : 1;
}

void start_log(const std::string& name, const std::string& level) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt(name));
  spdlog::set_pattern("%H:%M:%S %l: %v");
  spdlog::set_level(spdlog::level::from_str(level));
}

void block_signals() {
  const sigset_t signals = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

int run_until_told(pid_t owner, const std::function<void()>& drain, const std::function<Status()>& work) {
  std::atomic<bool> done{false};
  std::thread watch([&] {
    const sigset_t signals = ending_signals();
    for (int seen = 0; !done;) {
      const timespec wait{0, 100'000'000};
      const int signal = ::sigtimedwait(&signals, nullptr, &wait);
      // The daemon that started this worker is gone (perhaps before this line was first reached), and with it
      // whoever would take the results; they stay in the spool. Runner and builder end with this process.
      if (owner != 0 && ::getppid() != owner) std::_Exit(1);
      if (signal <= 0) continue;
      if (++seen > 1) std::_Exit(1);
      spdlog::info("finishing what is held, then leaving; interrupt again to leave at once");
      drain();
    }
  });
  const Status status = work();
  done = true;
  watch.join();
  return exit_status(status);
}

}  // namespace tuner
