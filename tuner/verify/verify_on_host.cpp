#include "tuner/verify/verify_on_host.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <future>
#include <random>
#include <set>
#include <sstream>

#include "compiler_core/base/clock.h"
#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/host_cuda/host_answers.h"
#include "measure_server/runner/reference_file.h"
#include "tuner/text/terminal.h"

namespace tuner {
namespace {

constexpr size_t kMostTold = 8;                 // of what is said of a config
constexpr size_t kMostAtOnce = 8;               // configs that run at a time
constexpr size_t kTellEach = 25;                // configs between two sums
constexpr std::chrono::seconds kDeadline{120};  // of one config's run

Tolerance allowed(const Workload& workload, const VerifyData& data, size_t argument) {
  return output_tolerance(workload, argument).value_or(data.tolerance);
}

// The first element that is not the reference's.
std::string wrong_on_host(const HostCudaRun& run, const Workload& workload, const VerifyData& data) {
  size_t output = 0;
  for (size_t i = 0; i < data.unscheduled.args.size(); ++i) {
    const Buffer& buffer = data.unscheduled.args[i];
    if (!is_result(buffer->role)) continue;
    ReferenceView reference;
    reference.shape = buffer->shape;
    reference.full = data.answers.at(output);
    const Tolerance tolerance = allowed(workload, data, i);
    const CheckResult result = check_output(reference, run.outputs.at(output).data(), buffer->dtype,
                                            CheckSpec{tolerance.absolute, tolerance.relative}, buffer->name);
    if (!result.ok) return "wrong_answer: " + result.message;
    ++output;
  }
  return "";
}

// Its first lines, below the config's.
std::string indented(const std::string& text) {
  std::istringstream lines(text);
  std::string all, line;
  for (size_t i = 0; std::getline(lines, line); ++i) {
    if (i == kMostTold) return all + "    ...\n";
    all += "    " + line + "\n";
  }
  return all;
}

// What a kernel is that is no CUDA source; empty if it is one.
std::string other_kind(const Workload& workload, const Program& program) {
  if (program.foreign == nullptr) return std::string(workload.op_name());
  if (program.foreign->command != nullptr) return "a program";
  if (!program.foreign->launch) return program.foreign->cxx ? "a function in C++" : "a function in C";
  return program.foreign->launch->form == ForeignLaunch::Form::kCuda ? "" : "a kernel that comes compiled";
}

// Calls work(0), work(1), ... up to `at_once` at a time, and hands their results to take() in this order,
// here, until it returns false. Returns when all that were called have ended.
template <class Value>
void side_by_side(size_t count, size_t at_once, const std::function<Value(size_t)>& work,
                  const std::function<bool(size_t, Value)>& take) {
  std::deque<std::future<Value>> running;
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    for (; next < count && running.size() < at_once; ++next)
      running.push_back(std::async(std::launch::async, work, next));
    Value value = running.front().get();
    running.pop_front();
    if (!take(i, std::move(value))) return;
  }
}

class HostVerifier {
 public:
  explicit HostVerifier(const VerifyOptions& options) : options_(options) {}

  Status verify(const CliTask& task) {
    ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> serving,
                     templates_for(task.workload, task.target, task.algorithms));
    ASSIGN_OR_RETURN(const std::unique_ptr<TemplateInstance> instance,
                     serving.front()->apply(task.workload, task.target));
    const ConfigSpace& space = instance->space();
    ASSIGN_OR_RETURN(const Program first, instance->instantiate(space.at(space.default_index())));
    if (const std::string other = other_kind(task.workload, first); !other.empty())
      return invalid_argument(options_.file, ": --on-host runs kernels with \"language\": \"cuda\", found ",
                              other, "; leave --on-host out");
    ASSIGN_OR_RETURN(const VerifyData data, make_verify_data(task.workload, options_.seed));
    std::mt19937_64 random(options_.seed);
    const std::vector<ConfigIndex> drawn = draw_configs(space, options_.samples, random);
    std::printf("%s\n  %s on this host's CPU: %zu of %s configs, seed %s\n", on_a_line(task.key).c_str(),
                first.foreign->source.c_str(), drawn.size(), std::to_string(space.size()).c_str(),
                std::to_string(options_.seed).c_str());
    print_tolerances(task.workload, data);
    return verify_configs(task, *instance, data, drawn);
  }

  int64_t failures() const { return failures_; }
  int64_t configs() const { return configs_; }

 private:
  static void print_tolerances(const Workload& workload, const VerifyData& data) {
    for (size_t i = 0; i < data.unscheduled.args.size(); ++i) {
      if (!is_result(data.unscheduled.args[i]->role)) continue;
      const Tolerance tolerance = allowed(workload, data, i);
      std::printf("  %s: right when |error| <= %.1e + %.0e * |reference|\n",
                  data.unscheduled.args[i]->name.c_str(), tolerance.absolute, tolerance.relative);
    }
    std::fflush(stdout);
  }

  Status verify_configs(const CliTask& task, const TemplateInstance& instance, const VerifyData& data,
                        const std::vector<ConfigIndex>& drawn) {
    int64_t failed_here = 0;
    std::set<std::string> told;  // notes: most are the same in all configs
    Status unknown;
    const auto verdict_of = [&](size_t i) -> Result<ConfigVerdict> {
      ASSIGN_OR_RETURN(const Program program, instance.instantiate(instance.space().at(drawn[i])));
      return verify_host_config(task.workload, program, data, kDeadline);
    };
    const auto tell = [&](size_t i, const Result<ConfigVerdict>& verdict) {
      unknown = verdict.status();
      if (!verdict) return false;
      const std::string config = instance.space().at(drawn[i]).to_text();
      const bool right = verdict->problem.empty();
      failed_here += right ? 0 : 1;
      std::printf("  %s %s\n%s", right ? "right " : "FAILED", config.c_str(),
                  indented(verdict->problem).c_str());
      for (const std::string& note : verdict->notes)
        if (told.insert(note).second) std::printf("    note: %s\n", note.c_str());
      if ((i + 1) % kTellEach == 0 || i + 1 == drawn.size())
        std::printf("  %zu of %zu compared, %s wrong\n", i + 1, drawn.size(),
                    std::to_string(failed_here).c_str());
      std::fflush(stdout);
      return true;
    };
    side_by_side<Result<ConfigVerdict>>(drawn.size(), std::min(usable_cpus().size(), kMostAtOnce), verdict_of,
                                        tell);
    RETURN_IF_ERROR(unknown);
    failures_ += failed_here;
    configs_ += static_cast<int64_t>(drawn.size());
    return Status::ok();
  }

  const VerifyOptions& options_;
  int64_t failures_ = 0, configs_ = 0;
};

}  // namespace

Result<ConfigVerdict> verify_host_config(const Workload& workload, const Program& program,
                                         const VerifyData& data, std::chrono::milliseconds deadline) {
  const Result<HostCudaRun> run = run_host_cuda(host_cuda_kernel(program), data.given, deadline);
  if (!run && run.status().code() == StatusCode::kInvalidConfig)
    return ConfigVerdict{.problem = run.message()};
  if (!run) return run.status();
  ConfigVerdict verdict;
  for (const HostCudaFinding& finding : run->findings)
    if (finding.is_fault())
      verdict.problem += (verdict.problem.empty() ? "" : "\n") + finding.text;
    else
      verdict.notes.push_back(finding.text);
  if (verdict.problem.empty()) verdict.problem = wrong_on_host(*run, workload, data);
  return verdict;
}

Result<int64_t> verify_on_host(const std::vector<CliTask>& tasks, const VerifyOptions& options) {
  for (const CliTask& task : tasks)
    RETURN_IF_ERROR(fits_here(task.workload, MeasureOptions().memory_limit_bytes, /*this_machine=*/true)
                        .with_context(options.file + ": "));
  const SteadyTime begun = std::chrono::steady_clock::now();
  HostVerifier verifier(options);
  for (const CliTask& task : tasks) RETURN_IF_ERROR(verifier.verify(task));
  std::printf("%s configs compared, %s wrong, in %.1f s\n", std::to_string(verifier.configs()).c_str(),
              std::to_string(verifier.failures()).c_str(), seconds_since(begun));
  return verifier.failures();
}

}  // namespace tuner
