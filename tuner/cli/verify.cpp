// tuner verify FILE: random valid configs of every template that serves a task, compiled, run in the runner's
// jail and compared with the reference answer.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/oracle/oracle.h"
#include "measure_server/runner/reference_file.h"
#include "measure_server/runner/runner_client.h"
#include "templates/tolerance.h"
#include "tuner/cli/command.h"
#include "tuner/cli/tasks.h"

namespace tuner::cli {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string file, target;
  uint64_t samples = 100, seed = 0;
  bool oracle = false;
};

// Above this many multiply-adds the interpreter would take minutes a config.
constexpr int64_t kOracleFlops = 2'000'000;

class TemporaryFolder {
 public:
  static Result<std::unique_ptr<TemporaryFolder>> make() {
    std::error_code error;
    std::string pattern = fs::temp_directory_path(error) / "tuner-verify-XXXXXX";
    if (error || ::mkdtemp(pattern.data()) == nullptr)
      return failed("no temporary folder can be made; set TMPDIR");
    return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(pattern));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

// Inputs of a task and what must come out, on disk for the runner and in memory for the oracle.
struct TaskData {
  Program unscheduled;
  std::vector<std::vector<float>> inputs;    // inputs and constants, in argument order
  std::vector<std::vector<double>> answers;  // outputs, in argument order
  std::vector<RunRequest::Data> input_files, reference_files;
  CheckSpec check;
};

bool is_output(const Buffer& buffer) { return buffer->role == BufferRole::kOutput; }

std::vector<std::vector<float>> random_inputs(const Program& program, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<float>> inputs;
  for (const Buffer& buffer : program.args) {
    if (is_output(buffer)) continue;
    std::vector<float> values(static_cast<size_t>(buffer->elements()));
    // Multiples of 2^-23 in [-1, 1): the same on every machine, unlike the standard library's distributions.
    for (float& v : values)
      v = static_cast<float>(static_cast<int64_t>(random() >> 40) - (int64_t{1} << 23)) * 0x1p-23f;
    inputs.push_back(std::move(values));
  }
  return inputs;
}

Result<TaskData> prepare(const CliTask& task, uint64_t seed, const fs::path& folder) {
  const Tolerance tolerance = tolerance_of(task.workload);
  TaskData data{.unscheduled = task.workload.compute(), .check = {tolerance.absolute, tolerance.relative}};
  data.inputs = random_inputs(data.unscheduled, seed);
  ASSIGN_OR_RETURN(data.answers, reference_answer(data.unscheduled, data.inputs));
  const ReferenceKind kind = static_cast<double>(task.workload.flops()) > kChecksumsAboveFlops
                                 ? ReferenceKind::kChecksums
                                 : ReferenceKind::kFull;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return failed(folder.string(), ": ", error.message());
  size_t input = 0, output = 0;
  for (const Buffer& buffer : data.unscheduled.args) {
    const std::string path = folder / (buffer->name + (is_output(buffer) ? ".reference" : ".input"));
    if (is_output(buffer)) {
      RETURN_IF_ERROR(write_reference(path, data.answers[output++], buffer->shape, kind));
      data.reference_files.push_back({buffer->name, path});
      continue;
    }
    const std::vector<float>& values = data.inputs[input++];
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(float)));
    out.close();
    if (!out) return failed(path, ": cannot be written");
    data.input_files.push_back({buffer->name, path});
  }
  return data;
}

// Runs the interpreter on `program` and compares every output with the reference answer.
Status check_with_oracle(const Program& program, const TaskData& data) {
  std::vector<std::vector<double>> args;
  size_t input = 0;
  for (const Buffer& buffer : data.unscheduled.args) {
    if (is_output(buffer))
      args.emplace_back();
    else
      args.emplace_back(data.inputs[input].begin(), data.inputs[input].end()), ++input;
  }
  RETURN_IF_ERROR(interpret(program, args));
  size_t output = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const Buffer& buffer = data.unscheduled.args[i];
    if (!is_output(buffer)) continue;
    const std::vector<double>& expected = data.answers[output++];
    if (args[i].size() != expected.size())
      return failed(buffer->name, " has ", args[i].size(), " elements, expected ", expected.size());
    for (size_t k = 0; k < expected.size(); ++k)
      // Both are sums in double precision, only in another order.
      if (!(std::abs(args[i][k] - expected[k]) <= 1e-9 * (1 + std::abs(expected[k]))))
        return failed("interpreted ", buffer->name, "[", k, "] is ", args[i][k], ", reference ", expected[k]);
  }
  return Status::ok();
}

// Distinct configs: the default first, then drawn evenly; all of them when there are no more than asked for.
std::vector<ConfigIndex> draw(const ConfigSpace& space, uint64_t samples, std::mt19937_64& random) {
  std::vector<ConfigIndex> drawn;
  if (space.size() <= samples) {
    for (ConfigIndex i = 0; i < space.size(); ++i) drawn.push_back(i);
    return drawn;
  }
  std::set<ConfigIndex> seen;
  for (ConfigIndex next = space.default_index(); drawn.size() < samples; next = space.sample(random))
    if (seen.insert(next).second) drawn.push_back(next);
  return drawn;
}

class Verifier {
 public:
  Verifier(const Options& options, RunnerClient& runner, fs::path folder, int verbose)
      : options_(options), runner_(runner), folder_(std::move(folder)), verbose_(verbose) {}

  Status verify(const CliTask& task, size_t number) {
    ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> serving,
                     templates_for(task.workload, task.target));
    ASSIGN_OR_RETURN(const TaskData data, prepare(task, options_.seed, folder_ / str("task", number)));
    const bool oracle = options_.oracle && task.workload.flops() <= kOracleFlops;
    if (options_.oracle && !oracle)
      std::fprintf(stderr,
                   "tuner: %s: too large for the interpreter (%s operations, at most %s): checked against "
                   "the compiled reference only\n",
                   task.key.c_str(), std::to_string(task.workload.flops()).c_str(),
                   std::to_string(kOracleFlops).c_str());
    if (oracle)
      RETURN_IF_ERROR(
          check_with_oracle(data.unscheduled, data).with_context("the reference answer itself: "));
    for (const AnyTemplate* schedule_template : serving) {
      ASSIGN_OR_RETURN(const std::unique_ptr<TemplateInstance> instance,
                       schedule_template->apply(task.workload, task.target));
      RETURN_IF_ERROR(verify_template(task, data, *schedule_template, *instance, oracle));
    }
    return Status::ok();
  }

  int64_t failures() const { return failures_; }
  int64_t configs() const { return configs_; }

 private:
  Status verify_template(const CliTask& task, const TaskData& data, const AnyTemplate& schedule_template,
                         const TemplateInstance& instance, bool oracle) {
    std::mt19937_64 random(options_.seed);
    const std::vector<ConfigIndex> drawn = draw(instance.space(), options_.samples, random);
    std::printf("%s\n  %s: %zu of %s configs, seed %s\n", task.key.c_str(),
                std::string(schedule_template.name()).c_str(), drawn.size(),
                std::to_string(instance.space().size()).c_str(), std::to_string(options_.seed).c_str());
    int64_t failed_here = 0;
    for (size_t i = 0; i < drawn.size(); ++i) {
      const Config config = instance.space().at(drawn[i]);
      ASSIGN_OR_RETURN(const std::string problem, problem_of(task, data, instance, config, oracle));
      ++configs_;
      if (!problem.empty()) {
        ++failed_here;
        std::printf("  FAILED %s\n    %s\n", config.to_text().c_str(), problem.c_str());
      } else if (verbose_ > 0) {
        std::fprintf(stderr, "  right  %s\n", config.to_text().c_str());
      }
      if ((i + 1) % 25 == 0 || i + 1 == drawn.size()) {
        std::printf("  %zu of %zu compared, %s wrong\n", i + 1, drawn.size(),
                    std::to_string(failed_here).c_str());
        std::fflush(stdout);
      }
    }
    failures_ += failed_here;
    return Status::ok();
  }

  // What is wrong with a config, empty when nothing is. An error: it could not be found out.
  Result<std::string> problem_of(const CliTask& task, const TaskData& data, const TemplateInstance& instance,
                                 const Config& config, bool oracle) {
    const Result<Program> program = instance.instantiate(config);
    if (!program) return "schedule: " + program.message();
    if (oracle)
      if (const Status right = check_with_oracle(*program, data); !right) return "oracle: " + right.message();
    const Result<Artifact> artifact = compile(*program, task.target);
    if (!artifact) return "compile: " + artifact.message();
    ASSIGN_OR_RETURN(const std::string digest, save_artifact(*artifact, folder_));
    RunRequest request{.id = static_cast<uint64_t>(configs_) + 1,
                       .artifact_dir = folder_,
                       .digest = digest,
                       .inputs = data.input_files,
                       .references = data.reference_files,
                       .check = data.check,
                       .min_repeat_ms = 0,  // one call a sample: only the answer counts here
                       .repeats = 1,
                       .run_timeout_s = 60};
    const Result<RunReply> reply = runner_.run(request);
    std::error_code ignored;
    fs::remove(folder_ / (digest + ".so"), ignored);
    fs::remove(folder_ / (digest + ".json"), ignored);
    if (!reply) return reply.status();
    if (reply->outcome == outcome_name(Outcome::kOk)) return std::string();
    return reply->outcome + ": " + reply->message;
  }

  const Options& options_;
  RunnerClient& runner_;
  const fs::path folder_;
  const int verbose_;
  int64_t failures_ = 0, configs_ = 0;
};

Status verify(const Options& options, int verbose, int64_t& failures) {
  ASSIGN_OR_RETURN(const std::vector<CliTask> tasks, read_tasks(options.file, options.target));
  ASSIGN_OR_RETURN(const std::string runner_path, find_runner());
  ASSIGN_OR_RETURN(const std::unique_ptr<RunnerClient> runner, RunnerClient::start(runner_path));
  ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryFolder> folder, TemporaryFolder::make());
  Verifier verifier(options, *runner, folder->path(), verbose);
  for (size_t i = 0; i < tasks.size(); ++i) RETURN_IF_ERROR(verifier.verify(tasks[i], i));
  failures = verifier.failures();
  std::printf("%s configs compared, %s wrong\n", std::to_string(verifier.configs()).c_str(),
              std::to_string(failures).c_str());
  return Status::ok();
}

int run(const Options& options, int verbose) {
  int64_t failures = 0;
  if (const Status status = verify(options, verbose, failures); !status) return report(status);
  return failures > 0 ? kExitFailed : kExitDone;
}

}  // namespace

void add_verify_command(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, context, "verify", "Compile and run random configs of every template and compare their answers",
      [options, &context] { return run(*options, context.verbose); });
  command->add_option("FILE", options->file, "Job file; - is standard input")->required();
  command->add_option("--samples", options->samples, "Configs of each template and task")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000}))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Draws other configs and other inputs")->capture_default_str();
  command->add_flag("--oracle", options->oracle,
                    "Also run every schedule in the plain interpreter, where the shape is small enough");
  add_target_option(*command, options->target);
}

}  // namespace tuner::cli
