// tuner run DIR: runs a compiled model in this process, on tensors of files or drawn ones, and times its
// steps.
#include <cstdio>
#include <memory>

#include "tuner/cli/command.h"
#include "tuner/model/run_report.h"
#include "tuner/text/facts.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {

namespace {

struct RunOptions : ModelRunRequest {
  bool json = false;
};

Status run(const RunOptions& options) {
  ASSIGN_OR_RETURN(const RunReport ran, run_report(options, text_width()));
  std::printf("%s", options.json ? (pretty(ran.facts) + "\n").c_str() : ran.text.c_str());
  return Status::ok();
}

}  // namespace

void add_run_command(Command app, CommandContext& context) {
  auto options = std::make_shared<RunOptions>();
  const Command command = add_command(
      app, context, "run", "Run a compiled model here, on tensors of files or drawn ones; time its steps",
      [options] { return report(run(*options)); });
  command.add_option("DIR", options->folder, "Folder that tuner compile wrote").type_name("").required();
  command
      .add_option(
          "--input", options->inputs,
          "Elements of an input: .npy, .pb (a TensorProto of ONNX), or raw; may be given several times. "
          "Others are drawn")
      .type_name("NAME=FILE")
      .one_each();
  command
      .add_option("--output", options->outputs, "Write an output, as .npy or raw; may be given several times")
      .type_name("NAME=FILE")
      .one_each();
  command.add_option("--seed", options->seed, "Draws other inputs").show_default();
  command.add_option("--threads", options->threads, "Threads to run on; as many as it is made for")
      .in_range(1, 4096);
  command.add_option("--runs", options->runs, "Time so many runs, each once watched and once not")
      .in_range(1, 1'000'000);
  command
      .add_option("--trace", options->trace,
                  "Write what each queue of the model's accelerator does, for chrome://tracing and Perfetto")
      .type_name("FILE");
  command.add_flag("--profile", options->profile, "Print the steps by time, and their sum against the whole");
  command
      .add_option("--before", options->before,
                  "Run this compiled model in turn, and compare them step by step")
      .type_name("DIR");
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
