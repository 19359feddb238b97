// tuner extract MODEL: the tunable operators of an ONNX model as a job file.
#include "tuner/extract/extract.h"

#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "compiler_core/base/input_file.h"
#include "compiler_core/target.h"
#include "db/exchange/text_output.h"
#include "tuner/cli/command.h"
#include "tuner/jobs/job_text.h"
#include "tuner/text/facts.h"
#include "tuner/text/hint.h"

namespace tuner::cli {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 31;

struct Options {
  std::string model, output, target = "cpu";
  int64_t batch = 0;  // 0: not given
  int trials = 0;     // 0: not given
  std::vector<std::string> dims;
  bool json = false;
};

Result<std::string> read_model(const std::string& path) {
  constexpr size_t kMostBytes = (size_t{1} << 31) - 1;  // that protobuf reads
  ASSIGN_OR_RETURN(std::string bytes, read_file(path, "an ONNX model", kMostBytes));
  if (bytes.empty()) return invalid_argument(path, ": is empty, expected an ONNX model");
  return bytes;
}

Result<ModelExtents> extents_of(const Options& options) {
  ModelExtents extents;
  if (options.batch > 0) extents.batch = options.batch;
  for (const std::string& text : options.dims) {
    const size_t equals = text.rfind('=');
    int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] =
        std::from_chars(equals == std::string::npos ? end : text.data() + equals + 1, end, value);
    if (equals == std::string::npos || equals == 0 || error != std::errc() || stop != end || value < 1 ||
        value > kMostExtent)
      return invalid_argument("--dim: expected NAME=N, as sequence=128, found \"", text, "\"");
    if (!extents.named.emplace(text.substr(0, equals), value).second)
      return invalid_argument("--dim ", text.substr(0, equals), ": found twice, expected once");
  }
  return extents;
}

nlohmann::ordered_json counts_json(const std::map<std::string, int64_t>& counts) {
  nlohmann::ordered_json j = nlohmann::ordered_json::object();
  for (const auto& [op, count] : counts) j[op] = count;
  return j;
}

nlohmann::ordered_json extraction_json(const Extraction& e) {
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array(), left = nlohmann::ordered_json::array();
  for (const ExtractedTask& t : e.tasks)
    tasks.push_back({{"workload", t.workload.key()},
                     {"uses", t.uses},
                     {"flops", t.workload.flops()},
                     {"nodes", t.nodes}});
  for (const auto& [what, l] : e.left_out)
    left.push_back({{"op", what.first}, {"reason", what.second}, {"count", l.count}, {"first", l.first}});
  return {{"operators", e.operators},      {"flops", e.flops},           {"tasks", tasks}, {"left_out", left},
          {"fused", counts_json(e.fused)}, {"free", counts_json(e.free)}};
}

std::string listed(const std::map<std::string, int64_t>& counts) {
  std::string text;
  for (const auto& [op, count] : counts) text += str(text.empty() ? "" : ", ", count, " ", op);
  return text;
}

void print(const Extraction& e, std::FILE* to) {
  int64_t uses = 0, left = 0;
  for (const ExtractedTask& t : e.tasks) uses += t.uses;
  for (const auto& [what, l] : e.left_out) left += l.count;
  std::fprintf(to, "%lld operators: %lld are %zu tasks (%.4g GFLOP in all)\n",
               static_cast<long long>(e.operators), static_cast<long long>(uses), e.tasks.size(),
               e.flops / 1e9);
  for (const ExtractedTask& t : e.tasks)
    std::fprintf(to, "  %4lld x  %s\n", static_cast<long long>(t.uses), t.workload.key().c_str());
  if (!e.fused.empty()) std::fprintf(to, "in their epilogues: %s\n", listed(e.fused).c_str());
  if (!e.free.empty()) std::fprintf(to, "no work, or done ahead: %s\n", listed(e.free).c_str());
  if (left > 0) std::fprintf(to, "left out: %lld\n", static_cast<long long>(left));
  for (const auto& [what, l] : e.left_out)
    std::fprintf(to, "  %4lld x  %s: %s (first: %s)\n", static_cast<long long>(l.count), what.first.c_str(),
                 what.second.c_str(), l.first.c_str());
}

Status check_target(const std::string& target) {
  if (target == "cpu" || target.starts_with("cpu "))
    return Status::ok();  // which that is, is found out later
  return parse_target(target).status().with_context("--target: ");
}

int run(const Options& options) {
  if (const Status s = check_target(options.target); !s) return report(s);
  const Result<ModelExtents> extents = extents_of(options);
  if (!extents) return report(extents.status());
  if (!onnx_is_built_in()) return report(read_onnx("", *extents).status());
  const Result<std::string> bytes = read_model(options.model);
  if (!bytes) return report(bytes.status());
  const Result<ModelGraph> graph = read_onnx(*bytes, *extents);
  if (!graph) return report(graph.status().with_context(options.model + ": "));
  const Extraction extraction = extract_tasks(*graph);

  std::vector<JobTextEntry> entries;
  for (const ExtractedTask& t : extraction.tasks)
    entries.push_back(
        {.workload = t.workload, .target = options.target, .uses = t.uses, .trials = options.trials});
  if (!entries.empty() && !options.output.empty())
    if (const Status s = exchange::write_text(options.output, job_text(entries)); !s) return report(s);
  // Facts go to stdout, unless the job file itself is there.
  std::FILE* to = options.output == "-" ? stderr : stdout;
  if (options.json)
    std::fprintf(to, "%s\n", pretty(extraction_json(extraction)).c_str());
  else
    print(extraction, to);
  if (entries.empty()) return report(not_found(options.model, ": no operator of it can be tuned here"));
  if (!options.json && !options.output.empty() && options.output != "-")
    std::printf("written: %s\nnext: %s\n", options.output.c_str(),
                command_line("submit " + shell_quoted(options.output)).c_str());
  return kExitDone;
}

}  // namespace

void add_extract_command(Command app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  const Command command =
      add_command(app, context, "extract", "Write the tunable operators of an ONNX model as a job file",
                  [options] { return run(*options); });
  command.add_option("MODEL", options->model, "ONNX model; its weights need not be there")
      .required()
      .type_name("FILE");
  command.add_option("-o,--output", options->output, "Job file to write; - is standard output")
      .type_name("FILE");
  command.add_option("--batch", options->batch, "First extent of every input")
      .in_range(int64_t{1}, kMostExtent)
      .type_name("N");
  command
      .add_option("--dim", options->dims,
                  "A named extent that the model leaves open; may be given several times")
      .type_name("NAME=N");
  command.add_option("--trials", options->trials, "Trials per task, on average, to write into the job file")
      .in_range(1, 10'000'000)
      .type_name("N");
  command.add_option("--target", options->target, "Target to write: cpu, llvm -mcpu=..., cuda -arch=...")
      .show_default()
      .type_name("TEXT");
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
