// tuner verify FILE: are random configs right (tuner/verify/verify_tasks.h, verify_on_host.h), or, with
// --times, are published times true (tuner/revalidate/published_times.h)?
#include <memory>

#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/jobs/tasks.h"
#include "tuner/revalidate/published_times.h"
#include "tuner/verify/published.h"
#include "tuner/verify/verify_on_host.h"
#include "tuner/verify/verify_tasks.h"

namespace tuner::cli {

namespace {

struct Options {
  std::string target;
  VerifyOptions configs;
  bool on_host = false, has_samples = false;
  bool times_asked = false;
  TimesOptions times;
};

// Without a GPU here, one that the file leaves to the host may be any.
constexpr char kAnyGpu[] = "cuda -arch=sm_80";

int run_on_host(Options& options) {
  if (options.times_asked || options.configs.oracle)
    return report(invalid_argument("--on-host runs kernels on this host's CPU; leave ",
                                   options.times_asked ? "--times" : "--oracle", " out"));
  const Result<std::vector<CliTask>> tasks = read_tasks(options.configs.file, options.target, kAnyGpu);
  if (!tasks) return report(tasks.status());
  if (!options.has_samples) options.configs.samples = kHostSamples;
  const Result<int64_t> wrong = verify_on_host(*tasks, options.configs);
  if (!wrong) return report(wrong.status());
  return *wrong > 0 ? kExitFailed : kExitDone;
}

int run_verify(Options& options, int verbose) {
  if (options.on_host) return run_on_host(options);
  const Result<std::vector<CliTask>> tasks = read_tasks(options.configs.file, options.target);
  if (!tasks) return report(tasks.status());
  if (options.times_asked) {
    log_to_stderr(verbose > 0 ? spdlog::level::info : spdlog::level::err);
    options.times.file = options.configs.file;
    const Result<bool> inside = verify_times(*tasks, options.times);
    if (!inside) return report(inside.status());
    return *inside ? kExitDone : kExitFailed;
  }
  options.configs.verbose = verbose > 0;
  const Result<int64_t> wrong = verify_tasks(*tasks, options.configs);
  if (!wrong) return report(wrong.status());
  return *wrong > 0 ? kExitFailed : kExitDone;
}

}  // namespace

void add_verify_command(Command app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  const Command command =
      add_command(app, context, "verify",
                  "Run random configs of every template (CUDA: emulated) and compare their answers",
                  [options, &context] { return run_verify(*options, context.verbose); });
  add_job_file(command, options->configs.file, "Job file; - is standard input").required();
  command
      .add_option("--samples", options->configs.samples,
                  "Configs of each template and task; with --on-host 16 unless given")
      .in_range(uint64_t{1}, uint64_t{1'000'000})
      .when_given([options] { options->has_samples = true; })
      .show_default();
  command.add_option("--seed", options->configs.seed, "Draws other configs and other inputs").show_default();
  command.add_flag("--oracle", options->configs.oracle,
                   "Also run every schedule in the plain interpreter, where the shape is small enough");
  command.add_flag("--on-host", options->on_host,
                   "CUDA sources: run them on this host's CPU, and look for races, bounds and barriers");
  add_target_option(command, options->target);
  const Option times =
      command.add_flag("--times", options->times_asked,
                       "Instead measure the tuned kernels again in fresh processes: inside their "
                       "published intervals?");
  command.add_option("--processes", options->times.processes, "With --times: processes of each kernel")
      .in_range(kFewestProcesses, 100)
      .needs(times)
      .show_default();
  add_daemon_option(command, options->times.daemon, ", with --times; without it this machine measures")
      .needs(times);
  command.add_flag("--json", options->times.json, "With --times: print JSON").needs(times);
  add_db_option(command, options->times.db);
}

}  // namespace tuner::cli
