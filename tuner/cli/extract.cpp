// tuner extract MODEL: the tunable operators of an ONNX model as a job file.
#include "tuner/model/extract.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "compiler_core/backend.h"
#include "compiler_core/base/measure_limits.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/target.h"
#include "db/exchange/text_output.h"
#include "tuner/cli/command.h"
#include "tuner/jobs/job_text.h"
#include "tuner/model/model_file.h"
#include "tuner/text/facts.h"
#include "tuner/text/hint.h"

namespace tuner::cli {
namespace {

struct ExtractOptions {
  std::string model, output, target = "cpu", layout;
  int64_t batch = 0;  // 0: not given
  int trials = 0;     // 0: not given
  std::vector<std::string> dims;
  bool json = false;
};

struct Extraction {
  std::vector<ExtractedTask> tasks;
  size_t operators = 0;  // of the model as it was read
  int64_t uses = 0;
  double flops = 0;  // of all uses
};

Result<Target> target_of(const std::string& text) {
  Result<Target> target = resolve_target(text);
  return target ? target : target.status().with_context("--target: ");
}

Result<Extraction> extract(const ExtractOptions& options, const Target& target) {
  ModelOptions reading{.constants = {}, .folder = {}, .weights_may_miss = true};
  ASSIGN_OR_RETURN(reading.extents, model_extents(options.batch, options.dims));
  ASSIGN_OR_RETURN(graph::Graph graph, read_model_file(options.model, reading));
  Extraction out{.tasks = {}, .operators = graph.nodes.size()};
  const bool on_bytes = target.family->in_process();
  RETURN_IF_ERROR(optimize(graph, model_evaluator(), {}, on_bytes).with_context(options.model + ": "));
  Result<ModelSteps> steps = steps_on(std::move(graph), target);
  if (!steps) return steps.status().with_context(options.model + ": ");
  if (!options.layout.empty())
    RETURN_IF_ERROR(
        lay_out_images(*steps, options.layout, target).with_context(options.model + ": --layout: "));
  out.tasks = extract_tasks(*steps);
  for (const ExtractedTask& t : out.tasks) {
    out.uses += t.uses;
    out.flops += static_cast<double>(t.workload.flops()) * static_cast<double>(t.uses);
  }
  return out;
}

nlohmann::ordered_json extraction_json(const Extraction& e) {
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  for (const ExtractedTask& t : e.tasks)
    tasks.push_back({{"workload", t.workload.key()},
                     {"uses", t.uses},
                     {"flops", t.workload.flops()},
                     {"nodes", t.nodes}});
  return {{"operators", e.operators}, {"steps", e.uses}, {"flops", e.flops}, {"tasks", tasks}};
}

void print(const Extraction& e, std::FILE* to) {
  std::fprintf(to, "%zu operators: %lld steps, %zu tasks (%.4g GFLOP in all)\n", e.operators,
               static_cast<long long>(e.uses), e.tasks.size(), e.flops / 1e9);
  for (const ExtractedTask& t : e.tasks)
    std::fprintf(to, "  %4lld x  %s\n", static_cast<long long>(t.uses), t.workload.key().c_str());
}

int run_extract(const ExtractOptions& options) {
  const Result<Target> target = target_of(options.target);
  if (!target) return report(target.status());
  if (!options.output.empty())
    if (const Status s = check_output(options.output, {&options.model, 1}); !s) return report(s);
  const Result<Extraction> extraction = extract(options, *target);
  if (!extraction) return report(extraction.status());

  // A layer of a network finds its weights cold: `tuner compile` asks for such answers.
  const bool is_compiled = backend_of(*target).ships_objects();
  std::vector<JobTextEntry> entries;
  for (const ExtractedTask& t : extraction->tasks)
    entries.push_back({.workload = t.workload,
                       .target = options.target,
                       .uses = t.uses,
                       .trials = options.trials,
                       .constants = is_compiled ? Constants::kCold : Constants::kWarm});
  if (!entries.empty() && !options.output.empty())
    if (const Status s = exchange::write_text(options.output, job_text(entries)); !s) return report(s);
  // Facts go to stdout, unless the job file itself is there.
  std::FILE* to = options.output == "-" ? stderr : stdout;
  if (options.json)
    std::fprintf(to, "%s\n", pretty(extraction_json(*extraction)).c_str());
  else
    print(*extraction, to);
  if (entries.empty()) return report(not_found(options.model, ": it has no work: nothing to tune"));
  if (!options.json && !options.output.empty() && options.output != "-")
    std::printf("written: %s\nnext: %s\n", options.output.c_str(),
                command_line("submit " + shell_quoted(options.output)).c_str());
  return kExitDone;
}

}  // namespace

void add_extract_command(Command app, CommandContext& context) {
  auto options = std::make_shared<ExtractOptions>();
  const Command command =
      add_command(app, context, "extract", "Write the tunable operators of an ONNX model as a job file",
                  [options] { return run_extract(*options); });
  command.add_option("MODEL", options->model, "ONNX model; its weights need not be there")
      .required()
      .type_name("FILE");
  command.add_option("-o,--output", options->output, "Job file to write; - is standard output")
      .type_name("FILE");
  add_extent_options(command, options->batch, options->dims);
  command.add_option("--trials", options->trials, "Trials per task, on average, to write into the job file")
      .in_range(1, static_cast<int>(kJobTrials.most))
      .type_name("N");
  command.add_option("--target", options->target, "Target to write: cpu, llvm -mcpu=..., cuda -arch=...")
      .show_default()
      .type_name("TARGET");
  command
      .add_option("--layout", options->layout,
                  "Layout of all images in the tasks, say NHWC; NCHW if not given")
      .type_name("LAYOUT");
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
