// compile_time: how long a candidate takes to build, stage by stage.
//
//   compile_time [--target "cpu"] [--configs N] [--seed S] FILE.json...
//
// For each entry of the job files and each template that serves it: draws N random configs (the default
// first), and prints the median and the most of each stage in milliseconds of CPU time of this thread:
//
//   schedule   config -> scheduled Program
//   features   of the scheduled Program, for the cost model
//   lower      -> loops ready for code, packing entry not counted
//   object     schedule's Program -> relocatable object (lowering counted again, and the packing entry)
//   compile    schedule's Program -> shared object with its digest: what a builder does, less the files
//
// One kernel is compiled and forgotten first: it pays for what LLVM sets up once a process.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/analysis/features.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen/cpu_backend.h"
#include "compiler_core/lower/lower.h"
#include "templates/registry/registry.h"
#include "tuner/jobs/job_file.h"

namespace tuner {
namespace {

struct Options {
  std::string target = "cpu";
  int configs = 30;
  uint64_t seed = 1;
  std::vector<std::string> files;
};

double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

enum Stage { kSchedule, kFeatures, kLower, kObject, kCompile, kStages };
constexpr const char* kNames[] = {"schedule", "features", "lower", "object", "compile"};

struct Times {
  std::vector<double> ms[kStages];
  int refused = 0;
  std::string slowest;  // config that took longest to compile
};

void print(const std::string& name, Times& times) {
  std::printf("  %-28s %4zu configs, %d refused", name.c_str(), times.ms[kCompile].size(), times.refused);
  for (int stage = 0; stage < kStages; ++stage) {
    std::vector<double>& ms = times.ms[stage];
    if (ms.empty()) continue;
    std::sort(ms.begin(), ms.end());
    std::printf("  %s %.2f (%.1f)", kNames[stage], ms[ms.size() / 2], ms.back());
  }
  std::printf("\n    slowest: %s\n", times.slowest.c_str());
}

Times time_template(const AnyTemplate& t, const Workload& workload, const Target& target, const Options& o) {
  Times times;
  const Result<std::unique_ptr<TemplateInstance>> made = t.apply(workload, target);
  if (!made) {
    std::printf("  %s: %s\n", std::string(t.name()).c_str(), made.message().c_str());
    return times;
  }
  const TemplateInstance& instance = **made;
  const ConfigSpace& space = instance.space();
  std::mt19937_64 random(o.seed);
  double most = 0;
  for (int i = -1; i < o.configs; ++i) {
    const ConfigIndex index = i <= 0 ? space.default_index() : space.sample(random);
    const Config config = space.at(index);
    const double begin = cpu_ms();
    const Result<Program> program = instance.instantiate(config);
    const double scheduled = cpu_ms();
    if (!program) {
      ++times.refused;
      continue;
    }
    const bool has_features = !program_features(*program).empty();
    const double described = cpu_ms();
    const bool lowers = lower(*program, CompileOptions{}.max_unrolled_stores).is_ok();
    const double lowered = cpu_ms();
    const bool has_object = has_features && lowers && emit_object(*program, target).is_ok();
    const double emitted = cpu_ms();
    const bool compiled = has_object && compile(*program, target).is_ok();
    const double end = cpu_ms();
    if (i < 0) continue;
    if (!compiled) {
      ++times.refused;
      continue;
    }
    times.ms[kSchedule].push_back(scheduled - begin);
    times.ms[kFeatures].push_back(described - scheduled);
    times.ms[kLower].push_back(lowered - described);
    times.ms[kObject].push_back(emitted - lowered);
    times.ms[kCompile].push_back(end - emitted);
    if (end - emitted > most) {
      most = end - emitted;
      times.slowest = config.to_text();
    }
  }
  return times;
}

int run(const Options& o) {
  for (const std::string& file : o.files) {
    const Result<std::vector<JobEntry>> entries = read_job_file(file);
    if (!entries) {
      std::fprintf(stderr, "compile_time: %s\n", entries.message().c_str());
      return 2;
    }
    for (const JobEntry& entry : *entries) {
      const Result<Target> target = resolve_cpu_target(o.target);
      if (!target) {
        std::fprintf(stderr, "compile_time: --target: %s\n", target.message().c_str());
        return 2;
      }
      std::printf("%s\n", entry.workload.key().c_str());
      const Result<std::vector<const AnyTemplate*>> serving = templates_for(entry.workload, *target);
      if (!serving) {
        std::printf("  %s\n", serving.message().c_str());
        continue;
      }
      for (const AnyTemplate* t : *serving) {
        Times times = time_template(*t, entry.workload, *target, o);
        print(std::string(t->name()), times);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  tuner::Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--target" && has_value)
      o.target = argv[++i];
    else if (arg == "--configs" && has_value)
      o.configs = std::max(1, std::atoi(argv[++i]));
    else if (arg == "--seed" && has_value)
      o.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (!arg.starts_with("--"))
      o.files.push_back(arg);
    else
      o.files.clear(), i = argc;
  }
  if (o.files.empty()) {
    std::fprintf(stderr, "usage: compile_time [--target T] [--configs N] [--seed S] FILE.json...\n");
    return 2;
  }
  return tuner::run(o);
}
