// The whole command line as an object: parsed by main.cpp, described by manual.h and completion.h.
#include "tuner/cli/command.h"
#include "tuner/command_line/overview.h"
#include "tuner/command_line/program_app.h"

namespace tuner::cli {

std::shared_ptr<CLI::App> make_app(CommandContext& context) {
  auto made = std::make_shared<ProgramApp>(
      "Finds the fastest configuration of a kernel's schedule for each shape and machine, and keeps it.",
      "tuner");
  CLI::App& app = *made;
  app.require_subcommand(1);
  app.fallthrough(false);
  app.set_version_flag("--version", "tuner " TUNER_VERSION);
  app.footer(
      "First steps: tuner submit examples/conv2d.json, then tuner query examples/conv2d.json\n"
      "tuner help COMMAND lists the options of a command.\n"
      "Exit codes: 0 done, 1 failed or nothing found, 2 wrong use.");
  const Command program(app);
  add_submit_command(program, context);
  add_query_command(program, context);
  add_learn_command(program, context);
  add_compile_command(program, context);
  add_build_command(program, context);
  add_lock_command(program, context);
  add_run_command(program, context);
  add_show_command(program, context);
  add_verify_command(program, context);
  add_pack_command(program, context);
  add_cover_command(program, context);
  add_extract_command(program, context);
  add_kernel_command(program, context);
  add_jobs_command(program, context);
  add_records_command(program, context);
  add_report_command(program, context);
  add_study_command(program, context);
  add_estimate_command(program, context);
  add_watch_command(program, context);
  add_cancel_command(program, context);
  add_rerun_command(program, context);
  add_revalidate_command(program, context);
  add_serve_command(program, context);
  add_admin_command(program, context);
  add_farm_command(program, context);
  add_top_command(program, context);
  add_dashboard_command(program, context);
  add_workers_command(program, context);
  add_health_command(program, context);
  add_completion_command(program, context);
  add_manual_command(program, context);
  // Of the whole program alone: subcommands have got theirs already.
  app.formatter_fn(
      [](const CLI::App*, const std::string&, CLI::AppFormatMode) { return command_overview(); });
  return made;
}

}  // namespace tuner::cli
