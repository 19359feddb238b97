// measure_runner: a worker that builds nothing. It fetches what builders (measure_server --kind builder) have
// made, checks and times it here. Needs no compiler: this program and the runner beside it are all that a
// board has to have.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <stop_token>

#include "compiler_core/base/process_limits.h"
#include "compiler_core/base/standard_streams.h"
#include "compiler_core/target.h"
#include "measure_server/worker/document_fetcher.h"
#include "measure_server/worker/program_parts.h"
#include "measure_server/worker/remote_maker.h"
#include "measure_server/worker/runner_host.h"
#include "measure_server/worker/worker.h"

namespace tuner {
namespace {

struct Command {
  CommonOptions common;
  std::string isolation = "none", runner, mcpu;
  int slots = 16, fetchers = 4, device = 0;
};

void add_options(CLI::App& app, Command& command) {
  add_common_options(app, command.common);
  add_isolation(app, command.isolation);
  app.add_option("--runner", command.runner, "The runner executable (default: beside this one)");
  app.add_option(
      "--mcpu", command.mcpu,
      "LLVM's name of this CPU, which kernels are built for (default: as found, on x86 one of x86-64-v2, "
      "-v3 and -v4)");
  app.add_option("--slots", command.slots,
                 "Trials held at once: one runs, the others are built elsewhere or fetched")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--fetchers", command.fetchers, "Artifacts fetched at once")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  app.add_option("--device", command.device, "The GPU to measure on, by the driver's count")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str();
}

int measure(const Command& command, const DaemonAccess& access, BuildReply hello) {
  const CommonOptions& common = command.common;
  const auto blobs = make_blob_link(access);
  std::stop_source ending;
  std::unique_ptr<Worker> worker;
  // Asked only while the worker runs.
  const auto session = [&worker] { return worker->session(); };
  const auto builds =
      std::make_shared<RemoteBuilds>(std::move(hello), BlobTransfer(*blobs, session, ending.get_token()));
  DocumentFetcher documents(common.shared_dir, common.cache_bytes(),
                            BlobTransfer(*blobs, session, ending.get_token()));
  WorkerOptions options{.worker_id = common.worker_id,
                        .worker_name = access.worker,
                        .work_dir = common.work_dir,
                        .next_work_dir = common.next_work_dir(),
                        .shared_dir = common.shared_dir,
                        .cache_bytes = common.cache_bytes(),
                        .runner = command.runner,
                        .make_maker = [builds](const std::vector<int>&) -> Result<std::unique_ptr<Maker>> {
                          return std::unique_ptr<Maker>(std::make_unique<RemoteMaker>(builds));
                        },
                        .take_built = [builds](const v1::LeaseBuilt& built) { builds->take(built); },
                        .fetchers = command.fetchers,
                        .stopping = [&ending] { ending.request_stop(); },
                        .fetch_document =
                            [&documents](const v1::Lease& lease) {
                              return documents.for_lease(lease.trial_id(), lease.workload_key(),
                                                         lease.document());
                            },
                        .slots = command.slots,
                        .device = command.device,
                        .least_isolation = *isolation_from_name(command.isolation),
                        .daemon = access.address};
  Result<std::unique_ptr<Worker>> started = Worker::start(std::move(options));
  if (!started.is_ok()) {
    spdlog::error("{}", started.message());
    return exit_status(started.status());
  }
  worker = *std::move(started);
  const auto link = make_grpc_link(access);
  return run_until_told(
      common.owner, [&] { worker->drain(); }, [&] { return worker->run(*link); });
}

int run(int argc, char** argv) {
  prepare_standard_streams();
  CLI::App app(
      "Measurement worker without a compiler: takes trials from a daemon, fetches what builders have made of "
      "them, "
      "checks and times it on this host.",
      "measure_runner");
  Command command;
  add_options(app, command);
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  start_log("measure_runner", command.common.log_level);
  const Result<DaemonAccess> access = access_to(command.common.daemon);
  const Result<BuildReply> hello = runner_host(command.mcpu);
  for (const Status& status :
       {check_process_limits("a worker", {.files = kWorkerNeeds.files}), access.status(), hello.status()}) {
    if (status) continue;
    std::fprintf(stderr, "measure_runner: %s\n", status.message().c_str());
    return exit_status(status);
  }
  block_signals();  // before any thread starts
  return measure(command, *access, *hello);
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) { return tuner::run(argc, argv); }
