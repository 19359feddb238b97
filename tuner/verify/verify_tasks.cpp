#include "tuner/verify/verify_tasks.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>

#include "compiler_core/backend.h"
#include "compiler_core/ir/foreign_code.h"
#include "compiler_core/lower/gpu.h"
#include "tuner/text/terminal.h"
#include "tuner/verify/verify_data.h"
#include "tuner/verify/verify_emulated.h"
#include "tuner/verify/verify_run.h"

namespace tuner {
namespace {

// Above this many multiply-adds the interpreter would take minutes a config.
constexpr int64_t kOracleFlops = 2'000'000;

class Verifier {
 public:
  explicit Verifier(const VerifyOptions& options) : options_(options) {}

  Status verify(const CliTask& task) {
    ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> serving,
                     templates_for(task.workload, task.target, task.algorithms));
    if (const Program math = task.workload.compute();
        math.foreign != nullptr && math.foreign->command != nullptr)
      return invalid_argument(task.key, ": a program that prints its time has no answer to verify");
    emulates_ = backend_of(task.target).emulates();
    if (emulates_) RETURN_IF_ERROR(check_emulation_size(task.workload));
    ASSIGN_OR_RETURN(const VerifyData data, make_verify_data(task.workload, options_.seed));
    if (!emulates_) {
      if (runs_ == nullptr) {
        ASSIGN_OR_RETURN(runs_, RunVerifier::make());
      }
      RETURN_IF_ERROR(runs_->begin(task.workload, data));
    }
    const bool has_loops = data.unscheduled.foreign == nullptr;
    const bool oracle = options_.oracle && has_loops && task.workload.flops() <= kOracleFlops;
    if (options_.oracle && !has_loops)
      std::fprintf(stderr, "tuner: %s: its code is a user's, which the interpreter does not read\n",
                   on_a_line(task.key).c_str());
    else if (options_.oracle && !oracle)
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
  int64_t not_checked() const { return not_checked_; }

 private:
  Status verify_template(const CliTask& task, const VerifyData& data, const AnyTemplate& schedule_template,
                         const TemplateInstance& instance, bool oracle) {
    std::mt19937_64 random(options_.seed);
    const std::vector<ConfigIndex> drawn = draw_configs(instance.space(), options_.samples, random);
    std::printf("%s\n  %s: %zu of %s configs, seed %s\n", on_a_line(task.key).c_str(),
                std::string(schedule_template.name()).c_str(), drawn.size(),
                std::to_string(instance.space().size()).c_str(), std::to_string(options_.seed).c_str());
    const Tolerance allowed = emulates_ ? data.tolerance : schedule_template.tolerance(task.workload);
    std::printf("  algorithm %s: right when |error| <= %.1e + %.0e * |reference|\n",
                std::string(schedule_template.algorithm()).c_str(), allowed.absolute, allowed.relative);
    if (runs_ != nullptr) runs_->allow(allowed);
    const int64_t work = emulates_ ? emulation_work(task.workload) : 0;
    if (work > kWholeWork)
      std::printf(
          "  a sample of the blocks where there is one kernel: %s operations and moves, all up to %s\n",
          std::to_string(work).c_str(), std::to_string(kWholeWork).c_str());
    int64_t failed_here = 0, skipped_here = 0;
    for (size_t i = 0; i < drawn.size(); ++i) {
      const Config config = instance.space().at(drawn[i]);
      ASSIGN_OR_RETURN(const ConfigVerdict verdict, judge(task, data, instance, config, oracle));
      if (!verdict.not_checked.empty()) {
        ++skipped_here;
        std::printf("  NOT CHECKED %s\n    %s\n", config.to_text().c_str(), verdict.not_checked.c_str());
      } else if (++configs_; !verdict.problem.empty()) {
        ++failed_here;
        std::printf("  FAILED %s\n    %s\n", config.to_text().c_str(), verdict.problem.c_str());
      } else if (options_.verbose) {
        std::fprintf(stderr, "  right  %s\n", config.to_text().c_str());
      }
      if ((i + 1) % 25 == 0 || i + 1 == drawn.size()) {
        std::printf("  %zu of %zu compared, %s wrong\n", i + 1 - static_cast<size_t>(skipped_here),
                    drawn.size(), std::to_string(failed_here).c_str());
        std::fflush(stdout);
      }
    }
    failures_ += failed_here;
    not_checked_ += skipped_here;
    return Status::ok();
  }

  // What one config showed. An error: it could not be found out.
  Result<ConfigVerdict> judge(const CliTask& task, const VerifyData& data, const TemplateInstance& instance,
                              const Config& config, bool oracle) {
    const Result<Program> program = instance.instantiate(config);
    if (!program) return ConfigVerdict{.problem = "schedule: " + program.message()};
    if (oracle)
      if (const Status right = check_with_oracle(*program, data); !right)
        return ConfigVerdict{.problem = "oracle: " + right.message()};
    if (!emulates_) {
      ASSIGN_OR_RETURN(std::string problem, runs_->problem_of(*program, task.target));
      return ConfigVerdict{.problem = std::move(problem)};
    }
    if (program->foreign != nullptr)
      return invalid_argument(
          task.key,
          ": the kernel is a user's, which the emulator does not read; --on-host runs a CUDA "
          "source on this host's CPU");
    const Result<GpuProgram> kernels = lower_gpu(*program);
    if (!kernels) return ConfigVerdict{.problem = "lower: " + kernels.message()};
    const int64_t work = emulation_work(task.workload);
    return verify_kernels(*kernels, data, work, oracle && work <= kInterpretedWork);
  }

  const VerifyOptions& options_;
  std::unique_ptr<RunVerifier> runs_;  // made when the first task needs it
  bool emulates_ = false;              // of the task at hand
  int64_t failures_ = 0, configs_ = 0, not_checked_ = 0;
};

}  // namespace

Result<int64_t> verify_tasks(const std::vector<CliTask>& tasks, const VerifyOptions& options) {
  for (const CliTask& task : tasks)
    if (!backend_of(task.target).emulates()) RETURN_IF_ERROR(measurable_here(task.target_name));
  for (const CliTask& task : tasks)
    RETURN_IF_ERROR(fits_here(task.workload, MeasureOptions().memory_limit_bytes, /*this_machine=*/true)
                        .with_context(options.file + ": "));
  Verifier verifier(options);
  for (const CliTask& task : tasks) RETURN_IF_ERROR(verifier.verify(task));
  std::printf("%s configs compared, %s wrong", std::to_string(verifier.configs()).c_str(),
              std::to_string(verifier.failures()).c_str());
  if (verifier.not_checked() > 0)
    std::printf("; %s not checked: verify a smaller shape too",
                std::to_string(verifier.not_checked()).c_str());
  std::printf("\n");
  if (verifier.configs() == 0)
    return invalid_argument(options.file, ": nothing could be checked; verify a smaller shape");
  return verifier.failures();
}

}  // namespace tuner
