// tuner: the command. Each subcommand is a file of its own; see command.h.
#include "tuner/cli/main.h"

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string_view>
#include <vector>

#include "compiler_core/backend.h"
#include "compiler_core/base/standard_streams.h"
#include "compiler_core/foreign/commands.h"
#include "db/resolve/documents.h"
#include "db/store.h"
#include "tuner/cli/command.h"
#include "tuner/command_line/overview.h"
#include "tuner/command_line/wrong_use.h"
#include "tuner/text/hint.h"

namespace tuner::cli {

namespace {

// The exit code once everything printed has left. A reader that had enough (`tuner jobs | head -1`) is no
// error: the code is that of the command, so that `set -o pipefail` sees what the command found and not that
// somebody read only the first line. What could not be written otherwise, as on a full disk, is.
int written_out(int exit_code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return exit_code;
  if (has_no_reader(STDOUT_FILENO)) return exit_code;
  std::fprintf(stderr, "tuner: standard output cannot be written to\n");
  return kExitFailed;
}

// Once per command, however many entries of its job file name such a target.
void tell_once(const std::string& advice) {
  static std::atomic<bool> told = false;
  if (!told.exchange(true)) std::fprintf(stderr, "tuner: %s\n", advice.c_str());
}

}  // namespace

int tuner_main(int argc, const char* const* argv) {
  prepare_standard_streams();
  on_target_advice(tell_once);
  set_beside_stores(documents_in);
  allow_own_commands();  // of who types this; workers of a farm are programs of their own

  CommandContext context;
  const std::shared_ptr<CLI::App> made = make_app(context);
  CLI::App& app = *made;
  remember_program(argc > 0 ? argv[0] : nullptr, app);
  const std::vector<const char*> meant = as_spelled_now(help_as_option(argc, argv));
  argc = static_cast<int>(meant.size());
  argv = meant.data();
  for (const auto& wrong : {unknown_command(app, argc, argv), empty_value(app, argc, argv)})
    if (!wrong.empty()) return report(invalid_argument(wrong));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {  // --help and --version print what they are asked for
    std::ostringstream text;
    app.exit(help, text, text);
    std::cout << wrapped_help(with_commands(text.str()));
  } catch (const CLI::ParseError& error) {
    return report(invalid_argument(wrong_use(app, argc, argv, error.what())));
  }
  return written_out(context.exit_code);
}

}  // namespace tuner::cli
