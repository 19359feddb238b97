// tuner kernel new FILE: a job file for a kernel that somebody brings as source, drafted from its text.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "db/exchange/text_output.h"
#include "tuner/cli/kernel_commands.h"
#include "tuner/jobs/kernel_draft.h"
#include "tuner/text/hint.h"

namespace tuner::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSourceBytes = size_t{1} << 20;

struct NewOptions {
  std::string source, function, output = "-";
};

// The source as a job file at `output` names it: relative to its folder, without leaving it.
Result<std::string> named_from(const std::string& source, const std::string& output) {
  const fs::path here =
      fs::current_path();  // links are not followed: a job file's reader refuses those that leave
  const fs::path folder = output == "-" ? here : (here / output).lexically_normal().parent_path();
  const fs::path relative = (here / source).lexically_normal().lexically_relative(folder);
  if (relative.empty() || *relative.begin() == "..")
    return invalid_argument("--output: expected a file beside ", source, ", or in a folder above it, found ",
                            output, output == "-" ? " (this folder)" : "");
  return relative.generic_string();
}

int run_new(const NewOptions& options) {
  if (options.output != "-")
    if (const Status s = check_output(options.output, {&options.source, 1}); !s) return report(s);
  const Result<std::string> text = read_file(options.source, "a C or C++ source", kMostSourceBytes);
  if (!text) return report(text.status());
  const Result<std::string> name = named_from(options.source, options.output);
  if (!name) return report(name.status());
  const Result<KernelDraft> draft = draft_kernel_job({.source = *name, .function = options.function}, *text);
  if (!draft) return report(draft.status());
  if (const Status s = exchange::write_text(options.output, draft->job); !s) return report(s);
  for (const std::string& line : draft->to_fill) std::fprintf(stderr, "fill in  %s\n", line.c_str());
  for (const std::string& line : draft->guesses) std::fprintf(stderr, "look at  %s\n", line.c_str());
  if (options.output != "-")
    std::printf("written: %s\nnext: %s\n", options.output.c_str(),
                command_line("show " + shell_quoted(options.output) + " --as space").c_str());
  return kExitDone;
}

}  // namespace

void add_kernel_command(Command app, CommandContext& context) {
  const Command kernel = app.add_subcommand("kernel", "Brings kernels of your own");
  kernel.need_subcommand();
  auto options = std::make_shared<NewOptions>();
  const Command command =
      add_command(kernel, context, "new",
                  "Draft a job file from a function's prototype, its macros with defaults and its "
                  "%RANGE% comments",
                  [options] { return run_new(*options); });
  command.add_option("FILE", options->source, "C or C++ source").required().type_name("FILE");
  command.add_option("--function", options->function,
                     "The function to tune; may be left out if there is only one");
  command.add_option("-o,--output", options->output, "Job file to write; - is standard output")
      .show_default()
      .type_name("FILE");
  add_kernel_judge_command(kernel, context);
}

}  // namespace tuner::cli
