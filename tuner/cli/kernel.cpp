// tuner kernel new, tuner kernel import: a job file for a kernel of a user's, drafted from its source or from
// what another tuner was told of it.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/printable.h"
#include "db/exchange/text_output.h"
#include "templates/source_kernel/range_comments.h"
#include "tuner/cli/kernel_commands.h"
#include "tuner/jobs/kernel_draft.h"
#include "tuner/jobs/t1/t1_file.h"
#include "tuner/jobs/t1/t1_job.h"
#include "tuner/text/hint.h"

namespace tuner::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSourceBytes = size_t{1} << 20;

struct DraftOptions {
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

// Writes the draft, and says what is to be done with it.
int write_draft(const KernelDraft& draft, const std::string& output) {
  if (const Status s = exchange::write_text(output, draft.job); !s) return report(s);
  for (const std::string& line : draft.to_fill) std::fprintf(stderr, "fill in  %s\n", line.c_str());
  for (const std::string& line : draft.guesses) std::fprintf(stderr, "look at  %s\n", line.c_str());
  if (output != "-")
    std::printf("written: %s\nnext: %s\n", output.c_str(),
                command_line("show " + shell_quoted(output) + " --as space").c_str());
  return kExitDone;
}

// `text` is what the source holds.
Result<KernelDraft> draft_of_source(const DraftOptions& options, std::string_view text) {
  ASSIGN_OR_RETURN(const std::string name, named_from(options.source, options.output));
  return draft_kernel_job({.source = name, .function = options.function}, text);
}

// The file of the kernel is found from the folder of the T1 file, as other tuners find it.
Result<KernelDraft> draft_of_t1(const DraftOptions& options, std::string_view text) {
  const Result<t1::T1Document> document = t1::read_t1(text);
  if (!document) return document.status().with_context(options.source + ": ");
  if (!options.function.empty() && options.function != document->kernel.function)
    return invalid_argument("--function: ", options.source, " names ", printable(document->kernel.function),
                            "; leave the option out");
  const std::string source = (fs::path(options.source).parent_path() / document->kernel.file).string();
  const Result<std::string> name = named_from(source, options.output);
  if (!name) return name.status().with_context(options.source + ": KernelSpecification.KernelFile: ");
  t1::T1Wish wish{.source = *name, .text = {}};
  if (fs::exists(source)) {
    if (const Status s = check_output(options.output, {&source, 1}); options.output != "-" && !s) return s;
    ASSIGN_OR_RETURN(wish.text, read_file(source, "the source of the kernel", kMostSourceBytes));
  }
  Result<KernelDraft> draft = draft_t1_job(*document, wish);
  return draft ? std::move(draft) : draft.status().with_context(options.source + ": ");
}

Result<KernelDraft> draft_of_ranges(const DraftOptions& options, std::string_view text) {
  const Result<std::vector<RangeComment>> ranges = range_comments(text);
  if (!ranges) return ranges.status().with_context(options.source + ": ");
  if (ranges->empty())
    return invalid_argument(
        options.source,
        ": it has no comment such as  // %RANGE% TILE t 8:64:8  and is no T1 file (JSON). For a "
        "source without such comments: tuner kernel new");
  return draft_of_source(options, text);
}

using Draft = Result<KernelDraft> (*)(const DraftOptions&, std::string_view text);
int run_draft(const DraftOptions& options, const char* expected, Draft draft_of) {
  if (options.output != "-")
    if (const Status s = check_output(options.output, {&options.source, 1}); !s) return report(s);
  const Result<std::string> text = read_file(options.source, expected, kMostSourceBytes);
  if (!text) return report(text.status());
  const Result<KernelDraft> draft = draft_of(options, *text);
  return draft ? write_draft(*draft, options.output) : report(draft.status());
}

int run_new(const DraftOptions& options) {
  return run_draft(options, "a C, C++ or CUDA source", draft_of_source);
}

int run_import(const DraftOptions& options) {
  return run_draft(options, "a T1 file, or a source with %RANGE% comments",
                   [](const DraftOptions& o, std::string_view text) {
                     const size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
                     const bool json =
                         o.source.ends_with(".json") ||
                         (first != std::string_view::npos && (text[first] == '{' || text[first] == '['));
                     return json ? draft_of_t1(o, text) : draft_of_ranges(o, text);
                   });
}

void add_draft_command(Command kernel, CommandContext& context, const char* name, const char* says,
                       const char* file, int (*run)(const DraftOptions&)) {
  auto options = std::make_shared<DraftOptions>();
  const Command command = add_command(kernel, context, name, says, [options, run] { return run(*options); });
  command.add_option("FILE", options->source, file).required().type_name("FILE");
  command.add_option("--function", options->function,
                     "The function to tune; may be left out if there is only one");
  command.add_option("-o,--output", options->output, "Job file to write; - is standard output")
      .show_default()
      .type_name("FILE");
}

}  // namespace

void add_kernel_command(Command app, CommandContext& context) {
  const Command kernel = app.add_subcommand("kernel", "Brings kernels of your own");
  kernel.need_subcommand();
  add_draft_command(kernel, context, "new",
                    "Draft a job file from a function's prototype, its macros with defaults and its "
                    "%RANGE% comments",
                    "C, C++ or CUDA source", run_new);
  add_draft_command(kernel, context, "import",
                    "Make a job file from a T1 file (KTT, BAT, Kernel Tuner) or from a source with "
                    "%RANGE% comments (CUB)",
                    "T1 file (JSON), or source", run_import);
  add_kernel_judge_command(kernel, context);
}

}  // namespace tuner::cli
