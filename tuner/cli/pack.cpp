// tuner pack FILE -o PACK: candidates compiled here, to be measured on another host by `runner run-pack`.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "compiler_core/base/output_file.h"
#include "tuner/cli/command.h"
#include "tuner/pack/pack_builder.h"
#include "tuner/text/hint.h"

namespace tuner::cli {

namespace {

struct PackCommandOptions {
  std::string file, target, output, db, caches = "warm";
  PackOptions build;
  double deadline_s = 600, min_repeat_ms = 1;
  double run_timeout_s = 0;  // 0: not given
};

// "100 of 800 configs drawn are in: 1 default, 80 by estimated time, 19 at random; one that is not: ..."
std::string told(const PackCounts& counts, size_t candidates) {
  std::string text = str(candidates, " of ", counts.drawn, " configs drawn are in");
  const char* separator = ": ";
  for (const auto& [picked, n] : counts.picked) {
    const char* how = picked == PackPick::kDefault    ? " default"
                      : picked == PackPick::kKnown    ? " known"
                      : picked == PackPick::kEstimate ? " by estimated time"
                                                      : " at random";
    text += str(separator, n, how);
    separator = ", ";
  }
  return counts.last_refusal.empty() ? text : str(text, "; one that is not: ", counts.last_refusal);
}

PackLimits limits_of(const CliTask& task, const PackCommandOptions& options) {
  PackLimits limits{.memory_limit_bytes = task.memory_limit_bytes};
  if (task.run_timeout_s) limits.run_timeout_s = *task.run_timeout_s;
  if (options.run_timeout_s > 0) limits.run_timeout_s = options.run_timeout_s;
  return limits;
}

Result<Pack> make_pack(const PackCommandOptions& options) {
  RETURN_IF_ERROR(check_output(options.output,
                               {&options.file, 1}));  // before anything is compiled, which may take an hour
  ASSIGN_OR_RETURN(const std::vector<CliTask> tasks, read_tasks(options.file, options.target));
  for (const CliTask& task : tasks) RETURN_IF_ERROR(check_pack_size(task));
  std::unique_ptr<Store> store;
  if (options.build.known > 0) {
    ASSIGN_OR_RETURN(store, Store::open(options.db, Store::Mode::kRead));
  }
  Pack pack;
  pack.about = str("tuner ", TUNER_VERSION, ", ", options.build.candidates, " candidates a task, seed ",
                   options.build.seed, options.build.emulate ? ", emulated" : "");
  pack.plan = default_pack_plan();
  pack.plan.deadline_s = options.deadline_s;
  pack.plan.min_repeat_ms = options.min_repeat_ms;
  pack.plan.caches = caches_from_name(options.caches).value_or(Caches::kWarm);
  for (const CliTask& task : tasks) {
    const bool repeated = std::any_of(pack.tasks.begin(), pack.tasks.end(), [&](const PackTask& t) {
      return t.workload_key == task.key &&
             (t.target == task.target_name || t.target == task.target_name + " -emulated");
    });
    if (repeated) continue;  // the same layer twice is measured once
    RETURN_IF_ERROR(fits_here(task.workload, task.memory_limit_bytes, /*this_machine=*/true)
                        .with_context(options.file + ": "));
    PackCounts counts;
    ASSIGN_OR_RETURN(PackTask packed, pack_task(task, options.build, store.get(), counts));
    std::fprintf(stderr, "%s\n  on %s: %s\n", task.key.c_str(), packed.target.c_str(),
                 told(counts, packed.candidates.size()).c_str());
    packed.limits = limits_of(task, options);
    pack.tasks.push_back(std::move(packed));
  }
  return pack;
}

int run_pack(const PackCommandOptions& options) {
  const Result<Pack> pack = make_pack(options);
  if (!pack) return report(pack.status());
  if (const Status written = write_pack(*pack, options.output); !written) return report(written);
  size_t candidates = 0;
  for (const PackTask& task : pack->tasks) candidates += task.candidates.size();
  std::printf(
      "%zu candidates of %zu %s written to %s\nnext, where they are to be measured: "
      "runner run-pack %s -o results.jsonl\nthen, here: %s\n",
      candidates, pack->tasks.size(), pack->tasks.size() == 1 ? "task" : "tasks", options.output.c_str(),
      shell_quoted(options.output).c_str(), command_line("records import results.jsonl").c_str());
  return kExitDone;
}

}  // namespace

void add_pack_command(Command app, CommandContext& context) {
  auto options = std::make_shared<PackCommandOptions>();
  const Command command =
      add_command(app, context, "pack", "Compile candidates into one file, to be measured on a GPU host",
                  [options] { return run_pack(*options); });
  add_job_file(command, options->file, "Job file; - is standard input").required();
  command.add_option("-o,--output", options->output, "Pack to write").type_name("PACK").required();
  command.add_option("--candidates", options->build.candidates, "Candidates of each task")
      .in_range(1, 1'000'000)
      .show_default();
  command.add_option("--seed", options->build.seed, "Draws other configs").show_default();
  command
      .add_option(
          "--random-share", options->build.random_percent,
          "CUDA: percent of the candidates drawn at random. The others are the best by estimated time out of "
          "eight times as many; results repeat the estimate, so that it can be judged")
      .in_range(0, 100)
      .show_default();
  command
      .add_option("--known", options->build.known,
                  "So many of the database's fastest configs of each task come right after the defaults, "
                  "today's answer before the others")
      .in_range(0, 1'000'000)
      .show_default();
  command.add_option("--hardware", options->build.known_hardware,
                     "With --known: by records of this machine only");
  add_db_option(command, options->db);
  command.add_flag("--emulate", options->build.emulate,
                   "Compile CUDA tasks as CPU kernels made by the emulator, to try every step without a GPU. "
                   "Their records have a target of their own");
  command.add_option("--deadline", options->deadline_s, "Seconds that the whole measurement may take")
      .positive()
      .between_zero_and(kMostDeadlineS)
      .show_default();
  command
      .add_option(
          "--run-timeout", options->run_timeout_s,
          "Seconds that one candidate may take in a round. By default the job file's run_timeout_s, or "
          "2 where it states none")
      .positive()
      .between_zero_and(kMostRunTimeoutS);
  command.add_option("--min-repeat-ms", options->min_repeat_ms, "One sample is as many calls as fill this")
      .between_zero_and(kMostMinRepeatMs)
      .show_default();
  command
      .add_option(
          "--caches", options->caches,
          "What a GPU's L2 holds before a timed call: warm (what the call before left there), flush, rotate")
      .one_of({"warm", "flush", "rotate"})
      .show_default();
  add_target_option(command, options->target);
}

}  // namespace tuner::cli
