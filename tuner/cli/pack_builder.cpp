#include "tuner/cli/pack_builder.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen/emulated_run.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/lower/gpu.h"
#include "measure_server/runner/input_data.h"
#include "measure_server/runner/reference_file.h"
#include "templates/tolerance.h"

namespace tuner::cli {
namespace {

// As the daemon's: times of packs and of jobs are of the same inputs.
constexpr uint64_t kInputSeed = 1;
// Draws for each candidate wanted: a filter that refuses 19 of 20 leaves enough.
constexpr int64_t kTriesPerCandidate = 20;

Result<std::string> bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (!in.good() && !in.eof()) return failed(path, ": cannot be read");
  return bytes;
}

// A reference file as bytes: written as the worker writes it, so that there is one writer of the format.
Result<std::string> reference_bytes(std::span<const double> answer, const std::vector<int64_t>& shape,
                                    ReferenceKind kind) {
  std::error_code error;
  std::string pattern = (std::filesystem::temp_directory_path(error) / "tuner-reference-XXXXXX").string();
  const int fd = error ? -1 : ::mkstemp(pattern.data());
  if (fd < 0) return failed("no temporary file can be made; set TMPDIR");
  ::close(fd);
  const Status written = write_reference(pattern, answer, shape, kind);
  Result<std::string> bytes = written.is_ok() ? bytes_of_file(pattern) : Result<std::string>(written);
  std::filesystem::remove(pattern, error);
  return bytes;
}

Status add_data(const CliTask& task, PackTask& out) {
  const Program program = task.workload.compute();
  out.input_seed = kInputSeed;
  std::vector<std::vector<float>> inputs;
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& arg = program.args[i];
    if (arg->role == BufferRole::kOutput) continue;
    if (arg->dtype != DType::kFloat32)
      return failed(arg->name, ": inputs of type ", arg->dtype, " are not made yet; float32 is");
    out.inputs.push_back({arg->name, static_cast<int>(i), arg->elements()});
    inputs.push_back(random_values(kInputSeed, static_cast<int>(i), arg->elements()));
  }
  ASSIGN_OR_RETURN(const auto answers, reference_answer(program, inputs));
  const ReferenceKind kind = static_cast<double>(task.workload.flops()) > kChecksumsAboveFlops
                                 ? ReferenceKind::kChecksums
                                 : ReferenceKind::kFull;
  size_t next = 0;
  for (const Buffer& arg : program.args) {
    if (arg->role != BufferRole::kOutput) continue;
    ASSIGN_OR_RETURN(std::string bytes, reference_bytes(answers.at(next++), arg->shape, kind));
    out.references.push_back({arg->name, std::move(bytes)});
  }
  const Tolerance tolerance = tolerance_of(task.workload);
  out.check = {tolerance.absolute, tolerance.relative};
  return Status::ok();
}

// The kernels of a GPU schedule as one CPU shared object, after the filter that would refuse them on the GPU.
Result<Artifact> compile_filtered(const Program& program, const Target& target) {
  ASSIGN_OR_RETURN(const GpuProgram gpu, lower_gpu(program));
  for (const GpuKernel& kernel : gpu.kernels) RETURN_IF_ERROR(check_resources(kernel, target));
  return compile_emulated(gpu, host_target(1));
}

Result<Artifact> compile_candidate(const CliTask& task, const PackOptions& options, const Program& program) {
  if (!task.target.is_cuda()) return compile(program, task.target);
  return options.emulate ? compile_filtered(program, task.target) : compile_cuda(program, task.target);
}

// One config of one template that serves the task.
struct Draw {
  const AnyTemplate* schedule_template;
  const TemplateInstance* instance;
  ConfigIndex index;
};

// Draws configs of all templates in turn, each config once.
class Drawing {
 public:
  static Result<Drawing> open(const CliTask& task, uint64_t seed) {
    ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> serving,
                     templates_for(task.workload, task.target));
    Drawing drawing(seed);
    for (const AnyTemplate* t : serving) {
      ASSIGN_OR_RETURN(std::unique_ptr<TemplateInstance> instance, t->apply(task.workload, task.target));
      drawing.sources_.push_back({t, std::move(instance), {}});
    }
    return drawing;
  }

  // Up to `n` new configs; fewer when the spaces hold no more.
  std::vector<Draw> next(size_t n) {
    std::vector<Draw> draws;
    for (size_t empty = 0; draws.size() < n && empty < sources_.size();
         turn_ = (turn_ + 1) % sources_.size()) {
      Source& source = sources_[turn_];
      const ConfigSpace& space = source.instance->space();
      if (source.seen.size() == space.size()) {
        ++empty;
        continue;
      }
      empty = 0;
      ConfigIndex index = space.default_index();
      while (!source.seen.insert(index).second) index = space.sample(random_);
      draws.push_back({source.schedule_template, source.instance.get(), index});
    }
    return draws;
  }

 private:
  explicit Drawing(uint64_t seed) : random_(seed) {}
  struct Source {
    const AnyTemplate* schedule_template;
    std::unique_ptr<TemplateInstance> instance;
    std::set<ConfigIndex> seen;
  };
  std::vector<Source> sources_;
  size_t turn_ = 0;
  std::mt19937_64 random_;
};

Result<PackCandidate> build(const CliTask& task, const PackOptions& options, const Draw& draw) {
  const auto begin = std::chrono::steady_clock::now();
  const Config config = draw.instance->space().at(draw.index);
  ASSIGN_OR_RETURN(const Program program, draw.instance->instantiate(config));
  PackCandidate candidate{.template_name = std::string(draw.schedule_template->name()),
                          .config = config.to_text(),
                          .template_version = draw.schedule_template->version()};
  ASSIGN_OR_RETURN(candidate.artifact, compile_candidate(task, options, program));
  candidate.build_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return candidate;
}

// Builds all draws on several threads; results in the order of the draws.
std::vector<Result<PackCandidate>> build_all(const CliTask& task, const PackOptions& options,
                                             const std::vector<Draw>& draws) {
  std::vector<Result<PackCandidate>> built(draws.size(), failed("not built"));
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < draws.size(); i = next++) built[i] = build(task, options, draws[i]);
  };
  const unsigned wanted = options.threads > 0 ? static_cast<unsigned>(options.threads)
                                              : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < std::min<size_t>(wanted, draws.size()); ++i) threads.emplace_back(work);
  work();
  threads.clear();  // joins
  return built;
}

}  // namespace

Result<PackTask> pack_task(const CliTask& task, const PackOptions& options, PackCounts& counts) {
  ASSIGN_OR_RETURN(Drawing drawing, Drawing::open(task, options.seed));
  PackTask out{.workload_key = task.key, .target = task.target_name};
  if (options.emulate && task.target.is_cuda()) {
    Target emulated = task.target;
    emulated.emulated = true;
    out.target = emulated.name();
  }
  const auto wanted = static_cast<size_t>(options.candidates);
  while (out.candidates.size() < wanted && counts.tried < kTriesPerCandidate * options.candidates) {
    const std::vector<Draw> draws = drawing.next(std::max<size_t>(wanted - out.candidates.size(), 4));
    if (draws.empty()) break;
    for (Result<PackCandidate>& candidate : build_all(task, options, draws)) {
      if (out.candidates.size() == wanted) break;
      ++counts.tried;
      // Not the config's fault (no NVRTC here, say), and so every other one's.
      if (!candidate.is_ok() && candidate.status().code() != StatusCode::kInvalidConfig)
        return candidate.status();
      if (candidate.is_ok())
        out.candidates.push_back(*std::move(candidate));
      else
        counts.last_refusal = candidate.message();
    }
  }
  counts.accepted = static_cast<int64_t>(out.candidates.size());
  if (out.candidates.empty())
    return failed(task.key, ": none of ", counts.tried, " configs can be compiled: ", counts.last_refusal);
  RETURN_IF_ERROR(add_data(task, out).with_context(task.key + ": "));
  return out;
}

}  // namespace tuner::cli
