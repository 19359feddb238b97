// tuner kernel judge FILE --job JOB: is this kernel right, and how fast is it (docs/judge.md)?
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tuner/cli/kernel_commands.h"
#include "tuner/judge/judge_kernel.h"
#include "tuner/judge/verdict_report.h"
#include "tuner/text/facts.h"

namespace tuner::cli {
namespace {

struct Options {
  JudgeWish wish;
  uint64_t seed = 0;
  std::string isolation = "strict";
  bool on_host = false, json = false;
};

int run_judge(const Options& options, int verbose) {
  const Result<JudgedKernels> kernels = read_judged_kernels(options.wish);
  if (!kernels) return report(kernels.status());
  KernelJudgeOptions judge{.seed = options.seed,
                           .at_most = isolation_from_name(options.isolation).value_or(Isolation::kStrict),
                           .on_host = options.on_host};
  if (verbose > 0) judge.tell = [](const std::string& step) { std::fprintf(stderr, "%s\n", step.c_str()); };
  const Result<KernelJudgement> judgement = judge_kernel(*kernels, judge);
  if (!judgement) return report(judgement.status());
  if (options.json) {
    std::printf("%s\n", pretty(judgement_json(*judgement, kernels->rival_name)).c_str());
  } else {
    for (const std::string& line : judgement_text(*judgement, kernels->rival_name))
      std::printf("%s\n", line.c_str());
  }
  const bool right =
      judgement->verdict == KernelVerdict::kRight || judgement->verdict == KernelVerdict::kRightNotTimed;
  return right ? kExitDone : kExitFailed;
}

}  // namespace

void add_kernel_judge_command(Command kernel, CommandContext& context) {
  auto options = std::make_shared<Options>();
  const Command command = add_command(
      kernel, context, "judge",
      "Is this kernel right, and how fast is it? It takes the place of the job file's source, and "
      "is compared and raced with the job file's reference",
      [options, &context] { return run_judge(*options, context.verbose); });
  JudgeWish& wish = options->wish;
  command.add_option("FILE", wish.file, "C, C++ or CUDA source of the kernel").required().type_name("FILE");
  command
      .add_option("--job", wish.job,
                  "Job file that says what the kernel has to compute; each knob has its default")
      .required()
      .type_name("FILE");
  command.add_option("--function", wish.function, "The kernel's function; by default that of the job file");
  const Option against = command
                             .add_option("--against", wish.against,
                                         "Race with this source; by default with the reference, or "
                                         "in CUDA with the job file's own kernel")
                             .type_name("FILE");
  command
      .add_option("--against-function", wish.against_function,
                  "Its function; by default that of the job file")
      .needs(against);
  command.add_option("--seed", options->seed, "Draws the inputs; 0: a fresh seed, which the verdict names")
      .show_default();
  command.add_option("--isolation", options->isolation, "Run kernels at most at this level of isolation")
      .one_of({"none", "process", "strict"})
      .show_default();
  command.add_flag("--on-host", options->on_host,
                   "Compare a CUDA kernel's answers on this host's CPU: needs no GPU, tells no time");
  add_target_option(command, wish.target);
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
