// tuner: the command. Each subcommand is a file of its own; see command.h.
#include "tuner/cli/main.h"

#include <csignal>
#include <cstdio>

#include "tuner/cli/command.h"

namespace tuner::cli {

int tuner_main(int argc, char** argv) {
  // A reader that goes away (`tuner jobs | head`) ends a write with an error, not the process without a word.
  std::signal(SIGPIPE, SIG_IGN);

  CommandContext context;
  const std::unique_ptr<CLI::App> made = make_app(context);
  CLI::App& app = *made;
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
