// measure_server: the worker. `measure_server --builder` is its builder process, started by itself.
#include "measure_server/worker/main.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stop_token>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/process_limits.h"
#include "compiler_core/base/room.h"
#include "compiler_core/base/standard_streams.h"
#include "measure_server/worker/blob_link.h"
#include "measure_server/worker/builder.h"
#include "measure_server/worker/builder_worker.h"
#include "measure_server/worker/document_fetcher.h"
#include "measure_server/worker/program_parts.h"
#include "measure_server/worker/worker.h"

namespace tuner {
namespace {

struct Command {
  CommonOptions common;
  std::string kind = "full", isolation = "none";
  int slots = 4, device = 0, builders = 0;
  std::string runner;
  bool builder = false;  // the builder process
  std::vector<int> cpus;
};

pid_t builder_owner = 0;

// Ends this process when its parent is not `owner` any more, whatever it is doing; 0: never. By a timer, not
// a thread: in a process of one thread the C++ library counts references without locked instructions, 4 % of
// the time to compile.
void end_with(pid_t owner) {
  if (owner == 0) return;
  builder_owner = owner;
  struct sigaction look {};
  look.sa_handler = [](int) {
    if (::getppid() != builder_owner) ::_exit(1);
  };
  look.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &look, nullptr);
  const itimerval often{.it_interval = {.tv_sec = 0, .tv_usec = 100'000},
                        .it_value = {.tv_sec = 0, .tv_usec = 100'000}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
}

void add_options(CLI::App& app, Command& command) {
  add_common_options(app, command.common);
  app.add_option(
         "--kind", command.kind,
         "full: builds and measures. builder: builds what runners (measure_runner) need, measures nothing")
      ->check(CLI::IsMember({"full", "builder"}))
      ->capture_default_str();
  app.add_option("--builders", command.builders, "Compilers at once, of --kind builder; 0: one for each CPU")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--runner", command.runner, "The runner executable (default: beside this one)");
  add_isolation(app, command.isolation);
  app.add_option("--slots", command.slots, "Trials held at once: one runs, the others are built")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--device", command.device,
                 "The GPU to measure on, by the driver's count; one worker for each of a host's GPUs")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str();
  app.add_flag("--builder", command.builder, "Run as the builder process of a worker, which starts it")
      ->group("");
  app.add_option("--cpus", command.cpus, "CPUs of the builder")->delimiter(',')->group("");
}

int measure(const Command& command, const DaemonAccess& access, const std::string& program) {
  const CommonOptions& common = command.common;
  std::stop_source ending;
  std::unique_ptr<DocumentFetcher> documents;  // asked only while the worker runs
  WorkerOptions options{.worker_id = common.worker_id,
                        .worker_name = access.worker,
                        .work_dir = common.work_dir,
                        .next_work_dir = common.next_work_dir(),
                        .shared_dir = common.shared_dir,
                        .cache_bytes = common.cache_bytes(),
                        .runner = command.runner,
                        .make_maker = local_builders(program),
                        .stopping = [&ending] { ending.request_stop(); },
                        .fetch_document =
                            [&documents](const v1::Lease& lease) {
                              return documents->for_lease(lease.trial_id(), lease.workload_key(),
                                                          lease.document());
                            },
                        .slots = command.slots,
                        .device = command.device,
                        .least_isolation = *isolation_from_name(command.isolation),
                        .daemon = access.address};
  Result<std::unique_ptr<Worker>> worker = Worker::start(std::move(options));
  if (!worker.is_ok()) {
    spdlog::error("{}", worker.message());
    return exit_status(worker.status());
  }
  const auto link = make_grpc_link(access);
  const auto blobs = make_blob_link(access);
  documents = std::make_unique<DocumentFetcher>(
      common.shared_dir, common.cache_bytes(),
      BlobTransfer(
          *blobs, [&] { return (*worker)->session(); }, ending.get_token()));
  return run_until_told(
      common.owner, [&] { (*worker)->drain(); }, [&] { return (*worker)->run(*link); });
}

int build(const Command& command, const DaemonAccess& access, const std::string& program) {
  const CommonOptions& common = command.common;
  // Of its own: a worker beside it keeps the first folder, its name, and what it has not yet reported.
  const bool is_default = common.work_dir_option->count() == 0;
  Result<std::unique_ptr<BuilderWorker>> worker =
      BuilderWorker::start({.worker_id = common.worker_id,
                            .worker_name = access.worker,
                            .work_dir = is_default ? user_cache_folder() + "/builder" : common.work_dir,
                            .shared_dir = common.shared_dir,
                            .next_work_dir = common.next_work_dir(),
                            .cache_bytes = common.cache_bytes(),
                            .program = program,
                            .builders = command.builders});
  if (!worker.is_ok()) {
    spdlog::error("{}", worker.message());
    return exit_status(worker.status());
  }
  const auto link = make_grpc_link(access);
  const auto blobs = make_blob_link(access);
  return run_until_told(
      common.owner, [&] { (*worker)->drain(); }, [&] { return (*worker)->run(*link, *blobs); });
}

}  // namespace

int measure_server_main(int argc, char** argv) {
  prepare_standard_streams();
  CLI::App app("Measurement worker: takes trials from a daemon, builds, checks and times them on this host.",
               "measure_server");
  Command command;
  add_options(app, command);
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  if (command.builder) {
    use_cpus(command.cpus);
    end_with(command.common.owner);
    return run_builder();
  }
  start_log("measure_server", command.common.log_level);
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) {
    std::fprintf(stderr, "measure_server: /proc/self/exe: %s; is /proc mounted?\n", error.message().c_str());
    return 1;
  }
  const Result<DaemonAccess> access = access_to(command.common.daemon);
  for (const Status& status : {check_process_limits("a worker", kWorkerNeeds), access.status()}) {
    if (status) continue;
    std::fprintf(stderr, "measure_server: %s\n", status.message().c_str());
    return exit_status(status);
  }
  block_signals();  // before any thread starts
  return command.kind == "builder" ? build(command, *access, program) : measure(command, *access, program);
}

}  // namespace tuner
