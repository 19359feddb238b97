// How a subcommand joins the `tuner` executable: each is one file with one function add_NAME_command(),
// listed below and in app.cpp.
//
//   void add_jobs_command(Command app, CommandContext& context) {
//     auto options = std::make_shared<Options>();      // lives as long as the command
//     const Command command =
//         add_command(app, context, "jobs", "Lists jobs", [options] { return run(*options); });
//     add_db_option(command, options->db);
//     command.add_option("FILE", options->file, "Job file").required();
//   }
//
// A body returns its exit status: 0 done, 1 failed or nothing found, 2 wrong use. Facts go to stdout,
// everything else to stderr.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/command_line/arguments.h"

namespace tuner::cli {

constexpr int kExitDone = 0, kExitFailed = 1, kExitWrongUse = 2;

// State that main() and the commands share.
struct CommandContext {
  int exit_code = kExitDone;  // set by the command that ran
  int verbose = 0;            // -v: shows progress; -vv: shows more
};

// Builds `tuner` with all its subcommands, ready to parse. `context` must outlive it.
std::shared_ptr<CLI::App> make_app(CommandContext& context);

// Adds a subcommand with -v. Its body runs after parsing, and the result becomes context.exit_code.
Command add_command(Command app, CommandContext& context, const std::string& name,
                    const std::string& description, std::function<int()> body);

// Adds --db PATH, with default_db_path() as its default.
void add_db_option(Command command, std::string& path);
// Adds --identity DIR: whom a farm's daemon knows. Empty: beside the database.
void add_identity_option(Command command, std::string& folder);
// Adds --daemon ADDRESS; `more` follows what it may be in its help, as "; else ...".
Option add_daemon_option(Command command, std::string& address, const std::string& more);
// Adds job files as the next words of the command.
Option add_job_file(Command command, std::string& file, const std::string& help);
Option add_job_file(Command command, std::vector<std::string>& files, const std::string& help);
// Adds --json: facts as one JSON document on stdout.
void add_json_option(Command command, bool& json);
// Adds --target TARGET: replaces the target of every entry of the job file.
void add_target_option(Command command, std::string& target);
// Adds --for CPUS: one library for several CPUs (tuner/bundle/cpu_variants.h).
void add_cpus_option(Command command, std::string& cpus);

// Adds --lock FILE: the lock file that decides.
void add_lock_option(Command command, std::string& path);

// Adds --batch N and --dim NAME=N: extents that a model leaves open.
void add_extent_options(Command command, int64_t& batch, std::vector<std::string>& dims);

// Prints "tuner: message" on stderr, with commands in the message made ready to paste (hint.h). Returns 2 for
// InvalidArgument and 1 for other errors. For an OK status it prints nothing and returns 0.
int report(const Status& status);

// What to do where another process writes the database (Aborted by Store::open), behind its message: a daemon
// can be ended, and goes on with its jobs when it is started again. Any other status stays as it is.
Status with_way_to_write(const Status& status, const std::string& db_path);

void add_query_command(Command app, CommandContext& context);
void add_learn_command(Command app, CommandContext& context);
void add_jobs_command(Command app, CommandContext& context);
void add_records_command(Command app, CommandContext& context);
void add_study_command(Command app, CommandContext& context);
void add_report_command(Command app, CommandContext& context);
void add_estimate_command(Command app, CommandContext& context);
void add_pack_command(Command app, CommandContext& context);
void add_verify_command(Command app, CommandContext& context);
void add_compile_command(Command app, CommandContext& context);
void add_build_command(Command app, CommandContext& context);
void add_lock_command(Command app, CommandContext& context);
void add_run_command(Command app, CommandContext& context);
void add_show_command(Command app, CommandContext& context);
void add_cover_command(Command app, CommandContext& context);
void add_extract_command(Command app, CommandContext& context);
void add_kernel_command(Command app, CommandContext& context);
void add_completion_command(Command app, CommandContext& context);
void add_manual_command(Command app, CommandContext& context);
void add_admin_command(Command app, CommandContext& context);
// These talk to a daemon.
void add_serve_command(Command app, CommandContext& context);
void add_submit_command(Command app, CommandContext& context);
void add_watch_command(Command app, CommandContext& context);
void add_cancel_command(Command app, CommandContext& context);
void add_rerun_command(Command app, CommandContext& context);
void add_revalidate_command(Command app, CommandContext& context);
void add_farm_command(Command app, CommandContext& context);
void add_top_command(Command app, CommandContext& context);
void add_dashboard_command(Command app, CommandContext& context);
void add_workers_command(Command app, CommandContext& context);
void add_health_command(Command app, CommandContext& context);

}  // namespace tuner::cli
