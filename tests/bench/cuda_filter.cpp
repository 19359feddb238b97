// cuda_filter: how good the static filter is, and how fast configs compile.
//
//   cuda_filter [--target "cuda -arch=sm_90a"] [--configs N] [--seed S] [--verbose] FILE.json...
//
// For each entry of the job files and each template that serves it: draws N configs (the default first),
// compiles every one, those that the filter refuses too, and prints what the filter said against what the
// compiler did.
//
//   clean        compiled with at most 64 bytes of spills
//   spilling     compiled with more: stage B must refuse it
//   missed       spilling although stages A and C accepted it
//   false        clean although stage A or C refused it: none should be
//
// Rates are kernels per second of CPU time of this process: of one core.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "compiler_core/codegen_cuda/cuda.h"
#include "templates/registry/registry.h"
#include "tuner/jobs/job_file.h"

namespace tuner {
namespace {

struct Options {
  std::string target = "cuda -arch=sm_90a";
  int configs = 100;
  uint64_t seed = 1;
  bool verbose = false;
  std::vector<std::string> files;
};

struct Tally {
  int drawn = 0, refused_by_schedule = 0, refused_a = 0, refused_c = 0, clean = 0, spilling = 0, missed = 0,
      false_refusals = 0, other = 0;
  double filtered_seconds = 0;  // CPU, of what a tuner would do: filter, and compile what it accepts
  int kernels = 0;              // of these configs

  void add(const Tally& t) {
    drawn += t.drawn, refused_by_schedule += t.refused_by_schedule, refused_a += t.refused_a;
    refused_c += t.refused_c, clean += t.clean, spilling += t.spilling, missed += t.missed;
    false_refusals += t.false_refusals, other += t.other;
    filtered_seconds += t.filtered_seconds, kernels += t.kernels;
  }
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Status filter(const GpuProgram& program, const Target& target) {
  for (const GpuKernel& kernel : program.kernels) RETURN_IF_ERROR(check_resources(kernel, target));
  return Status::ok();
}

void print_config(const GpuProgram& program, const Target& target, const Result<Artifact>& artifact,
                  const std::string& verdict, const std::string& config) {
  std::string text = verdict;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    const ResourceEstimate e = estimate_resources(program.kernels[i], target);
    text += str(" | ", e.registers, " of ", e.register_limit, " estimated");
    if (artifact)
      text += str(", ", artifact->manifest.launches[i].registers, " used, spills ",
                  artifact->manifest.launches[i].spill_bytes);
  }
  std::printf("    %s | %s%s%s\n", text.c_str(), config.c_str(), artifact ? "" : " | ",
              artifact ? "" : artifact.message().c_str());
}

void try_config(const TemplateInstance& instance, const Config& config, const Target& target, bool verbose,
                Tally& tally) {
  const double begin = cpu_seconds();
  ++tally.drawn;
  const Result<Program> program = instance.instantiate(config);
  const Result<GpuProgram> lowered = program ? lower_gpu(*program) : Result<GpuProgram>(program.status());
  if (!lowered) {
    ++tally.refused_by_schedule;
    if (verbose) std::printf("    schedule: %s | %s\n", lowered.message().c_str(), config.to_text().c_str());
    return;
  }
  const Status accepted = filter(*lowered, target);
  const bool by_c = accepted.message().find("stage C") != std::string::npos;
  if (!accepted.is_ok()) {
    ++(by_c ? tally.refused_c : tally.refused_a);
    tally.filtered_seconds += cpu_seconds() - begin;
  }
  CudaOptions everything;
  everything.static_filter = false;
  everything.max_spill_bytes = 1 << 30;
  const Result<Artifact> artifact = compile_cuda(*program, target, everything);
  if (accepted.is_ok()) {
    tally.filtered_seconds += cpu_seconds() - begin;
    tally.kernels += static_cast<int>(lowered->kernels.size());
  }
  std::string verdict = accepted.is_ok() ? "accepted" : by_c ? "refused by C" : "refused by A";
  if (!artifact) {
    ++tally.other;
    verdict += ", does not compile";
  } else {
    int spills = 0;
    for (const LaunchInfo& launch : artifact->manifest.launches)
      spills = std::max(spills, launch.spill_bytes);
    const bool clean = spills <= CudaOptions().max_spill_bytes;
    ++(clean ? tally.clean : tally.spilling);
    if (accepted.is_ok() && !clean) ++tally.missed;
    if (!accepted.is_ok() && clean) ++tally.false_refusals;
    verdict += clean ? ", clean" : ", spilling";
  }
  if (verbose) print_config(*lowered, target, artifact, verdict, config.to_text());
}

void print_tally(const std::string& what, const Tally& t) {
  const int accepted = t.drawn - t.refused_by_schedule - t.refused_a - t.refused_c;
  std::printf(
      "%s\n  %d configs: %d refused by A, %d by C, %d by the schedule; %d clean, %d spilling, %d fail\n",
      what.c_str(), t.drawn, t.refused_a, t.refused_c, t.refused_by_schedule, t.clean, t.spilling, t.other);
  std::printf("  false refusals %d; of %d accepted %d spill (%.1f %%); %.1f kernels/s of CPU time\n",
              t.false_refusals, accepted, t.missed, accepted > 0 ? 100.0 * t.missed / accepted : 0.0,
              t.filtered_seconds > 0 ? t.kernels / t.filtered_seconds : 0.0);
}

Status run(const Options& options) {
  RETURN_IF_ERROR(nvrtc_available());
  ASSIGN_OR_RETURN(const Target target, parse_target(options.target));
  std::printf("%s, %s, seed %llu\n", target.name().c_str(), cuda_toolchain_fingerprint().c_str(),
              static_cast<unsigned long long>(options.seed));
  Tally all;
  for (const std::string& file : options.files) {
    ASSIGN_OR_RETURN(const std::vector<JobEntry> entries, read_job_file(file));
    for (const JobEntry& entry : entries) {
      ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> served, templates_for(entry.workload, target));
      for (const AnyTemplate* t : served) {
        ASSIGN_OR_RETURN(const std::unique_ptr<TemplateInstance> instance, t->apply(entry.workload, target));
        std::mt19937_64 rng(options.seed);
        Tally tally;
        for (int i = 0; i < options.configs; ++i) {
          const ConfigIndex index =
              i == 0 ? instance->space().default_index() : instance->space().sample(rng);
          try_config(*instance, instance->space().at(index), target, options.verbose, tally);
        }
        print_tally(str(t->name(), " ", entry.workload.key()), tally);
        std::fflush(stdout);
        all.add(tally);
      }
    }
  }
  print_tally("all", all);
  return Status::ok();
}

Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool takes_value = word == "--target" || word == "--configs" || word == "--seed";
    if (takes_value && i + 1 == argc) return invalid_argument(word, " needs a value");
    if (word == "--target")
      options.target = argv[++i];
    else if (word == "--configs")
      options.configs = std::atoi(argv[++i]);
    else if (word == "--seed")
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--verbose")
      options.verbose = true;
    else if (word.starts_with("--"))
      return invalid_argument("unknown option ", word);
    else
      options.files.push_back(word);
  }
  if (options.files.empty()) return invalid_argument("no job file given");
  return options;
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  const auto options = tuner::parse(argc, argv);
  const tuner::Status status = options ? tuner::run(*options) : options.status();
  if (!status.is_ok()) std::fprintf(stderr, "cuda_filter: %s\n", status.message().c_str());
  return status.is_ok() ? 0 : status.code() == tuner::StatusCode::kInvalidArgument ? 2 : 1;
}
