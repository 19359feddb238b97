// tuner completion: what a shell reads to complete this command; tuner complete: what it asks at each tab.
#include "tuner/command_line/completion.h"

#include <cstdio>
#include <memory>

#include "tuner/cli/command.h"
#include "tuner/jobs/known_names.h"

namespace tuner::cli {

void add_completion_command(Command app, CommandContext& context) {
  auto shell = std::make_shared<std::string>();
  const Command command = add_command(
      app, context, "completion",
      "Print what lets a shell complete this command, with values of options\n"
      "  source <(tuner completion bash)\n  source <(tuner completion zsh)\n  tuner completion fish | source",
      [shell] { return std::fputs(completion_script(*shell).c_str(), stdout), kExitDone; });
  command.add_option("SHELL", *shell, "The shell").required().one_of(completion_shells());

  auto words = std::make_shared<std::vector<std::string>>();
  const Command asked =
      add_command(app, context, "complete",
                  "Print what may stand for the last of the words of a command line", [app, words] {
                    std::fputs(completion_text(complete(app.app(), *words, known_names)).c_str(), stdout);
                    return kExitDone;
                  });
  asked.add_option("WORD", *words, "Behind --").may_be_empty();
  asked.hide();
}

}  // namespace tuner::cli
