// tuner query FILE: the best known config of each task of a job file, and what it rests on.
#include <cstdio>
#include <memory>

#include "tuner/cli/command.h"
#include "tuner/cli/facts.h"
#include "tuner/cli/format.h"
#include "tuner/cli/tasks.h"

namespace tuner::cli {

namespace {

struct Options {
  std::string file, db, target;
  bool json = false;
};

void print(const TunedConfig& t, const Workload& workload) {
  const Environment& e = t.environment;
  std::printf("%s\n  target      %s\n  time        %s\n  speed       %s\n", t.workload_key.c_str(),
              t.target.c_str(), format_time(t.time_ns, t.time_low_ns, t.time_high_ns).c_str(),
              format_speed(workload, t.time_ns, t.peak_gflops).c_str());
  std::printf("  race        %s\n", format_race(t).c_str());
  std::printf("  template    %s, version %d\n  config      %s\n", t.template_name.c_str(), t.template_version,
              t.config.c_str());
  if (const std::string mark = algorithm_mark(t.template_name); !mark.empty())
    std::printf("  algorithm   %s\n", mark.c_str());
  std::printf("  rests on    trial %s of %s (%s)\n", t.trial_id.c_str(), std::to_string(t.trials).c_str(),
              format_outcomes(t.outcomes).c_str());
  std::printf("  measured    %s on %s, worker %s\n  hardware    %s\n  toolchain   %s, harness ABI %d\n",
              format_utc(t.finished_at_us).c_str(), e.host.c_str(), e.worker_id.c_str(), e.hardware.c_str(),
              e.toolchain.c_str(), e.harness_abi);
}

int run(const Options& options) {
  const Result<std::vector<CliTask>> tasks = read_tasks(options.file, options.target);
  if (!tasks) return report(tasks.status());
  const std::string again =
      str("tuner submit ", options.file, options.db == default_db_path() ? "" : " --db " + options.db);
  const Result<std::unique_ptr<Store>> store = open_if_there(options.db);
  if (!store) return report(store.status());
  if (*store == nullptr) return report(not_found(options.db, ": there is no database yet. To tune: ", again));

  int missing = 0;
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const CliTask& task : *tasks) {
    const Result<TunedConfig> best =
        (*store)->best(task.key, task.target_name, templates_of(task.algorithms));
    if (!best && best.status().code() != StatusCode::kNotFound) return report(best.status());
    if (!best) {
      ++missing;
      std::fprintf(stderr, "tuner: no record of %s on \"%s\". To tune: %s\n", task.key.c_str(),
                   task.target_name.c_str(), again.c_str());
      continue;
    }
    if (options.json)
      document.push_back(tuned_json(*best, task.workload.flops(), task.workload.bytes()));
    else
      print(*best, task.workload);
  }
  if (options.json && tasks->size() == 1 && missing == 0) std::printf("%s\n", pretty(document[0]).c_str());
  if (options.json && tasks->size() > 1) std::printf("%s\n", pretty(document).c_str());
  if (missing > 0 && tasks->size() > 1)
    std::fprintf(stderr, "tuner: %d of %zu tasks have no record\n", missing, tasks->size());
  return missing > 0 ? kExitFailed : kExitDone;
}

}  // namespace

void add_query_command(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, context, "query", "Print the best known config of each task of a job file",
                  [options] { return run(*options); });
  command->add_option("FILE", options->file, "Job file; - is standard input")->required();
  add_db_option(*command, options->db);
  add_target_option(*command, options->target);
  add_json_option(*command, options->json);
}

}  // namespace tuner::cli
