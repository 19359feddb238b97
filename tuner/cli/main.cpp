// tuner: the command. Each subcommand is a file of its own; see command.h.
#include "tuner/cli/main.h"

#include <csignal>
#include <cstdio>

#include "tuner/cli/command.h"

namespace tuner::cli {

int tuner_main(int argc, char** argv) {
  // A reader that goes away (`tuner jobs | head`) ends a write with an error, not the process without a word.
  std::signal(SIGPIPE, SIG_IGN);

  CLI::App app(
      "Finds the fastest configuration of a kernel's schedule for each shape and machine, and keeps it.",
      "tuner");
  app.require_subcommand(1);
  app.fallthrough(false);
  app.set_version_flag("--version", "tuner " TUNER_VERSION);
  app.footer(
      "First steps: tuner submit examples/conv2d.json, then tuner query examples/conv2d.json\n"
      "Exit codes: 0 done, 1 failed or nothing found, 2 wrong use.");
  CommandContext context;
  add_submit_command(app, context);
  add_query_command(app, context);
  add_learn_command(app, context);
  add_build_command(app, context);
  add_show_command(app, context);
  add_verify_command(app, context);
  add_pack_command(app, context);
  add_simulate_command(app, context);
  add_cover_command(app, context);
  add_extract_command(app, context);
  add_jobs_command(app, context);
  add_records_command(app, context);
  add_replay_command(app, context);
  add_whatif_command(app, context);
  add_report_command(app, context);
  add_estimate_command(app, context);
  add_watch_command(app, context);
  add_cancel_command(app, context);
  add_rerun_command(app, context);
  add_revalidate_command(app, context);
  add_serve_command(app, context);
  add_workers_command(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitDone : kExitWrongUse;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    std::fprintf(stderr, "tuner: standard output cannot be written to\n");
    return kExitFailed;
  }
  return context.exit_code;
}

}  // namespace tuner::cli
