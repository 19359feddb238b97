// tuner completion: what a shell reads to complete this command.
#include <cstdio>
#include <memory>

#include "tuner/cli/command.h"
#include "tuner/command_line/bash_completion.h"

namespace tuner::cli {

void add_completion_command(Command app, CommandContext& context) {
  auto shell = std::make_shared<std::string>();
  const Command command = add_command(
      app, context, "completion",
      "Print what lets a shell complete this command: source <(tuner completion bash)", [app, shell] {
        CHECK(*shell == "bash") << "a shell that the command line does not take";
        std::fputs(bash_completion(app.app()).c_str(), stdout);
        return kExitDone;
      });
  command.add_option("SHELL", *shell, "The shell").required().one_of({"bash"});
}

}  // namespace tuner::cli
