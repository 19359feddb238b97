#include "tuner/pack/pack_builder.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <span>

#include "compiler_core/backend.h"
#include "compiler_core/base/clock.h"
#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/host_cuda/host_answers.h"
#include "compiler_core/ir/foreign_code.h"
#include "db/resolve/documents.h"
#include "measure_server/runner/check_kernels.h"
#include "measure_server/runner/input_data.h"
#include "measure_server/runner/reference_file.h"
#include "templates/workload/key_document.h"
#include "templates/workload/tolerance.h"
#include "tuner/pack/pack_draws.h"

namespace tuner {
namespace {

// As the daemon's: times of packs and of jobs are of the same inputs.
constexpr uint64_t kInputSeed = 1;
// Draws for each candidate wanted: a filter that refuses 19 of 20 leaves enough.
constexpr int64_t kTriesPerCandidate = 20;
// Configs that are lowered and estimated for each candidate wanted, and at most: lowering takes milliseconds,
// compiling a quarter of a second.
constexpr size_t kDrawsPerCandidate = 8, kMostDraws = 8192;

// A reference file as bytes: written as the worker writes it, so that there is one writer of the format.
Result<std::string> reference_bytes(std::span<const double> answer, const Program& program, size_t place,
                                    const Workload& workload) {
  const Buffer& arg = program.args[place];
  OutputFacts output{arg->dtype, shares_errors(workload)};
  if (const std::optional<Tolerance> own = output_tolerance(workload, place))
    output.tolerance = CheckSpec{own->absolute, own->relative};
  ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make("tuner-reference"));
  const std::string path = folder->file("answer");
  RETURN_IF_ERROR(write_reference(path, answer, arg->shape, packed_reference_kind(workload, arg), output));
  return read_whole(path);
}

// Inputs as their seed, or as bytes where the operator says what they are.
Status add_inputs(const Workload& workload, const Program& program, PackTask& out) {
  out.input_seed = kInputSeed;
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& arg = program.args[i];
    if (!is_given(arg->role)) continue;
    out.inputs.push_back(
        {arg->name, static_cast<int>(i), arg->elements(), arg->dtype, drawn_factor(workload, arg->name)});
    std::optional<Result<std::string>> brought = workload.operand(i, kInputSeed);
    if (!brought) continue;
    out.inputs.back().stored = true;
    ASSIGN_OR_RETURN(out.inputs.back().bytes, *std::move(brought));
  }
  return Status::ok();
}

// The right answer of each output, in their order.
Result<std::vector<std::vector<double>>> answers_of(const CliTask& task, const Program& program,
                                                    const PackTask& data) {
  const OnCpus there(cpus_beside_runs());  // a worker of this host may time something meanwhile
  std::vector<std::string> given;
  for (const PackTask::Input& input : data.inputs) given.push_back(data.input_bytes(input));
  if (program.foreign != nullptr)
    return user_answers(program, given, {.threads = task.target.threads},
                        [&](size_t argument) { return task.workload.answer(argument); });
  std::vector<std::vector<float>> inputs;
  for (size_t i = 0; i < given.size(); ++i) {
    const std::vector<double> values =
        load_elements(given[i].data(), data.inputs[i].count, data.inputs[i].dtype);
    inputs.emplace_back(values.begin(), values.end());
  }
  return reference_answer(program, inputs);
}

Status add_data(const CliTask& task, const Tolerance& tolerance, PackTask& out) {
  const Program program = task.workload.compute();
  RETURN_IF_ERROR(add_inputs(task.workload, program, out));
  ASSIGN_OR_RETURN(const auto answers, answers_of(task, program, out));
  for (size_t i = 0; i < program.args.size(); ++i) {
    if (!is_result(program.args[i]->role)) continue;
    ASSIGN_OR_RETURN(std::string bytes,
                     reference_bytes(answers.at(out.references.size()), program, i, task.workload));
    out.references.push_back({program.args[i]->name, std::move(bytes)});
  }
  out.check = {tolerance.absolute, tolerance.relative};
  if (const std::optional<std::string> digest = document_of_key(task.key)) {
    ASSIGN_OR_RETURN(out.document, find_document(*digest));
  }
  return Status::ok();
}

Result<Artifact> compile_candidate(const CliTask& task, const PackOptions& options, const Program& program) {
  const Backend& backend = backend_of(task.target);
  return options.emulate && backend.emulates() ? backend.compile_emulated(program, task.target)
                                               : backend.compile(program, task.target);
}

Result<PackCandidate> build(const CliTask& task, const PackOptions& options, const Draw& draw) {
  const auto begin = std::chrono::steady_clock::now();
  const Config config = draw.instance->space().at(draw.index);
  ASSIGN_OR_RETURN(const Program program, draw.instance->instantiate(config));
  PackCandidate candidate{.template_name = std::string(draw.schedule_template->name()),
                          .config = config.to_text(),
                          .template_version = draw.schedule_template->version(),
                          .picked = draw.picked,
                          .estimated_ns = draw.estimated_ns};
  ASSIGN_OR_RETURN(candidate.artifact, compile_candidate(task, options, program));
  // The machine code knows better where the estimate is below what it takes at least.
  candidate.estimated_ns = std::max(
      candidate.estimated_ns, backend_of(task.target).least_ns(program, task.target, candidate.artifact));
  candidate.build_ms = ms_since(begin);
  return candidate;
}

// Builds all draws on several threads; results in the order of the draws.
std::vector<Result<PackCandidate>> build_all(const CliTask& task, const PackOptions& options,
                                             std::span<const Draw> draws) {
  std::vector<Result<PackCandidate>> built(draws.size(), failed("not built"));
  for_each_index(draws.size(), options.threads, [&](size_t i) { built[i] = build(task, options, draws[i]); });
  return built;
}

// Builds draws in their order until the task has as many candidates as wanted.
Status add_candidates(const CliTask& task, const PackOptions& options, std::span<const Draw> draws,
                      PackTask& out, PackCounts& counts) {
  const auto wanted = static_cast<size_t>(options.candidates);
  while (!draws.empty() && out.candidates.size() < wanted) {
    const size_t n = std::min(draws.size(), std::max<size_t>(wanted - out.candidates.size(), 4));
    for (Result<PackCandidate>& candidate : build_all(task, options, draws.first(n))) {
      if (out.candidates.size() == wanted) break;
      // Not the config's fault (no NVRTC here, say), and so every other one's.
      if (!candidate.is_ok() && candidate.status().code() != StatusCode::kInvalidConfig)
        return candidate.status();
      if (candidate.is_ok())
        out.candidates.push_back(*std::move(candidate));
      else
        counts.last_refusal = candidate.message();
    }
    draws = draws.subspan(n);
  }
  return Status::ok();
}

// The kernels that compare on the device, where that is where candidates run.
Status add_checker(const CliTask& task, const PackOptions& options, PackTask& out) {
  const Backend& backend = backend_of(task.target);
  if (!backend.compiles_helpers() || (options.emulate && backend.emulates())) return Status::ok();
  ASSIGN_OR_RETURN(out.checker, backend.compile_helper(check_kernels_source(), task.target));
  return Status::ok();
}

// How many configs to draw for so many candidates that are missing.
size_t draws_for(size_t missing, bool ranks) {
  if (!ranks) return std::max<size_t>(missing, 4);
  return std::max(missing, std::min(kMostDraws, missing * kDrawsPerCandidate));
}

// Places in the order of the estimates, 0 the fastest.
void set_predicted_ranks(std::vector<PackCandidate>& candidates) {
  std::vector<PackCandidate*> by_time;
  for (PackCandidate& c : candidates) by_time.push_back(&c);
  std::stable_sort(by_time.begin(), by_time.end(), [](const PackCandidate* a, const PackCandidate* b) {
    return a->estimated_ns < b->estimated_ns;
  });
  for (size_t i = 0; i < by_time.size(); ++i) by_time[i]->predicted_rank = static_cast<int>(i);
}

// In floating point: the product of a shape may be beyond 64 bits.
double elements_of(const Buffer& buffer) {
  double n = 1;
  for (const int64_t extent : buffer->shape) n *= static_cast<double>(extent);
  return n;
}

}  // namespace

ReferenceKind packed_reference_kind(const Workload& workload, const Buffer& output) {
  const bool is_much_work = static_cast<double>(workload.flops()) > kChecksumsAboveFlops;
  const bool is_large = output->elements() > kChecksumsAbovePackedElements;
  return is_much_work || is_large ? ReferenceKind::kChecksums : ReferenceKind::kFull;
}

Status check_pack_size(const CliTask& task) {
  const Program program = task.workload.compute();
  if (program.foreign != nullptr && program.foreign->command != nullptr)
    return invalid_argument(task.key,
                            ": packs hold functions, and this is a program that prints its time; measure it "
                            "with tuner submit --daemon, by a worker on that host");
  double bytes = 0;
  for (const Buffer& arg : program.args) {
    bytes += elements_of(arg) * dtype_bytes(arg->dtype);
    if (is_result(arg->role)) bytes += elements_of(arg) * sizeof(double);
  }
  if (bytes > kMostPackTaskBytes)
    return invalid_argument(task.key, ": operands and reference answer take ", bytes / (1 << 30),
                            " GiB, expected at most ", kMostPackTaskBytes / (1 << 30),
                            "; pack a smaller shape");
  if (const auto flops = static_cast<double>(task.workload.flops()); flops > kMostPackTaskFlops)
    return invalid_argument(task.key, ": its reference answer takes ", flops,
                            " floating-point operations on the CPU, expected at most ", kMostPackTaskFlops,
                            "; pack a smaller shape");
  return Status::ok();
}

Result<PackTask> pack_task(const CliTask& task, const PackOptions& options, const Store* store,
                           PackCounts& counts) {
  ASSIGN_OR_RETURN(ConfigDraws drawing, ConfigDraws::open(task, options.seed));
  PackTask out{.workload_key = task.key, .target = task.target_name};
  if (options.emulate && backend_of(task.target).emulates()) {
    Target emulated = task.target;
    emulated.emulated = true;
    out.target = emulated.name();
  }
  const bool ranks = backend_of(task.target).estimates();
  const auto wanted = static_cast<size_t>(options.candidates);
  std::vector<Draw> at_first;
  if (store != nullptr && options.known > 0) {
    ASSIGN_OR_RETURN(const std::vector<KnownPick> known,
                     known_configs(*store, {task.key, out.target}, templates_of(algorithm_of_pack(task)),
                                   options.known_hardware));
    at_first = drawing.take(known, static_cast<size_t>(options.known));
  }
  while (out.candidates.size() < wanted && counts.drawn < kTriesPerCandidate * options.candidates) {
    std::vector<Draw> draws = drawing.next(draws_for(wanted - out.candidates.size(), ranks));
    draws.insert(draws.end(), at_first.begin(), at_first.end());
    at_first.clear();
    if (draws.empty()) break;
    counts.drawn += static_cast<int64_t>(draws.size());
    if (ranks) RETURN_IF_ERROR(estimate_draws(task, options.threads, draws, counts.last_refusal));
    draws = compile_order(std::move(draws), ranks ? options.random_percent : 100);
    RETURN_IF_ERROR(add_candidates(task, options, draws, out, counts));
  }
  if (out.candidates.empty())
    return failed(task.key, ": none of ", counts.drawn, " configs can be compiled: ", counts.last_refusal);
  if (ranks) set_predicted_ranks(out.candidates);
  for (const PackCandidate& c : out.candidates) ++counts.picked[c.picked];
  RETURN_IF_ERROR(add_data(task, drawing.tolerance(), out).with_context(task.key + ": "));
  RETURN_IF_ERROR(add_checker(task, options, out).with_context(task.key + ": checking kernels: "));
  return out;
}

}  // namespace tuner
