// The whole command line as an object: parsed by main.cpp, described by manual.h and completion.h.
#include "tuner/cli/command.h"

namespace tuner::cli {

std::unique_ptr<CLI::App> make_app(CommandContext& context) {
  auto made = std::make_unique<CLI::App>(
      "Finds the fastest configuration of a kernel's schedule for each shape and machine, and keeps it.",
      "tuner");
  CLI::App& app = *made;
  app.require_subcommand(1);
  app.fallthrough(false);
  app.set_version_flag("--version", "tuner " TUNER_VERSION);
  app.footer(
      "First steps: tuner submit examples/conv2d.json, then tuner query examples/conv2d.json\n"
      "Exit codes: 0 done, 1 failed or nothing found, 2 wrong use.");
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
  add_completion_command(app, context);
  add_manual_command(app, context);
  return made;
}

}  // namespace tuner::cli
