// tuner study simulate: plays search strategies on recorded spaces; no device, no database.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "tuner/cli/study_commands.h"
#include "tuner/study/simulator.h"
#include "tuner/text/facts.h"
#include "tuner/text/progress_line.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {

namespace {

// Of the runs; on a terminal only.
void show_progress(size_t done, size_t runs, const std::string& what) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  if (!terminal) return;
  if (what.empty()) return erase_progress();
  draw_progress(shortened(str("run ", done, " of ", runs, ": ", what), terminal_width(STDERR_FILENO) - 1));
}

int run_simulate(const SimulateOptions& options) {
  Simulator simulator(options);
  if (const Status status = simulator.run(show_progress); !status) {
    report(status);
    return kExitWrongUse;
  }
  if (options.json)
    std::printf("%s\n", pretty(simulator.json()).c_str());
  else
    std::printf("%s", simulator.text().c_str());
  return kExitDone;
}

}  // namespace

void add_simulate_command(Command study, CommandContext& context) {
  auto options = std::make_shared<SimulateOptions>();
  const Command command =
      add_command(study, context, "simulate", "Play search strategies on recorded spaces; needs no device",
                  [options] { return run_simulate(*options); });
  command.add_option("SPACE", options->spaces, "Recorded spaces, CSV or gzip").required().type_name("SPACE");
  command
      .add_option("--strategy", options->strategies,
                  "Strategies to play, with commas between; annealing is always printed beside them")
      .delimiter(',')
      .type_name("STRATEGY[,STRATEGY...]")
      .show_default();
  command.add_option("--trials", options->trials, "Trials a run").in_range(1, 1000000).show_default();
  command.add_option("--seeds", options->seeds, "Runs of each space, each with its own seed")
      .in_range(1, 100000)
      .show_default();
  command.add_option("--first-seed", options->first_seed, "Seed of the first run").show_default();
  command.add_option("--warm", options->warm, "Recorded spaces of the same kernel that are known beforehand")
      .type_name("SPACE");
  command.add_flag("--warm-others", options->warm_others,
                   "Each space is played with the other SPACEs of the same knobs known beforehand");
  command.add_option("--warm-rows", options->warm_rows, "Random rows of each that are known beforehand")
      .in_range(1, 1000000)
      .show_default();
  command.add_option("--in-flight", options->in_flight, "Configs proposed before the results of any are seen")
      .in_range(1, 4096)
      .show_default();
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
