#include "tuner/judge/judge_data.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/foreign/run_foreign.h"
#include "compiler_core/host_cuda/host_answers.h"
#include "compiler_core/host_cuda/host_build.h"
#include "compiler_core/ir/foreign_code.h"
#include "compiler_core/ir/stmt.h"
#include "measure_server/runner/reference_file.h"
#include "templates/workload/tolerance.h"

namespace tuner {
namespace {

using Bytes = std::vector<std::string>;  // of each argument that is given

constexpr size_t kMostBytesOfManySets = size_t{32} << 20;  // of one set; beyond there are two

// Where two lists have other elements: the argument and the element's offset.
struct Place {
  size_t argument = 0, at = 0, size = 0;
};
std::vector<Place> differing(const Bytes& a, const Bytes& b, const std::vector<DType>& dtypes) {
  std::vector<Place> places;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto size = static_cast<size_t>(dtype_bytes(dtypes[i]));
    for (size_t at = 0; at + size <= a[i].size(); at += size)
      if (std::memcmp(&a[i][at], &b[i][at], size) != 0) places.push_back({i, at, size});
  }
  return places;
}

// The first set with `count` elements of the second.
Bytes mixed(const Bytes& first, const Bytes& second, const std::vector<Place>& places, size_t count,
            std::mt19937_64& random) {
  Bytes out = first;
  std::vector<Place> drawn;
  std::sample(places.begin(), places.end(), std::back_inserter(drawn), count, random);
  for (const Place& p : drawn) std::memcpy(&out[p.argument][p.at], &second[p.argument][p.at], p.size);
  return out;
}

// Elements that may differ become the argument's least or greatest, or stay.
Bytes at_the_ends(const Bytes& first, const std::vector<Place>& places, const std::vector<DType>& dtypes,
                  std::mt19937_64& random) {
  Bytes out = first;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto size = static_cast<size_t>(dtype_bytes(dtypes[i]));
    const std::vector<double> values =
        load_elements(first[i].data(), static_cast<int64_t>(first[i].size() / size), dtypes[i]);
    if (values.empty()) continue;
    const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
    const size_t ends[] = {static_cast<size_t>(least - values.begin()) * size,
                           static_cast<size_t>(greatest - values.begin()) * size};
    for (const Place& p : places)
      if (p.argument == i)
        if (const uint64_t draw = random() % 3; draw < 2)
          std::memcpy(&out[i][p.at], &first[i][ends[draw]], size);
  }
  return out;
}

}  // namespace

std::vector<Bytes> judge_inputs(const Bytes& first, const Bytes& second, const std::vector<DType>& dtypes,
                                uint64_t seed) {
  std::vector<Bytes> sets = {first};
  const std::vector<Place> places = differing(first, second, dtypes);
  if (places.empty()) return sets;
  size_t bytes = 0;
  for (const std::string& argument : first) bytes += argument.size();
  std::mt19937_64 random(seed);
  sets.push_back(second);
  if (bytes > kMostBytesOfManySets) return sets;
  for (const size_t count : {size_t{1}, size_t{1}, std::max<size_t>(places.size() / 64, 2)})
    sets.push_back(mixed(first, second, places, std::min(count, places.size()), random));
  sets.push_back(at_the_ends(first, places, dtypes, random));
  return sets;
}

namespace {

Result<Bytes> given_from(const Workload& truth, const Program& program, uint64_t seed) {
  Bytes given;
  for (size_t i = 0; i < program.args.size(); ++i) {
    if (!is_given(program.args[i]->role)) continue;
    std::optional<Result<std::string>> brought = truth.operand(i, seed);
    if (!brought) return invalid_argument(program.args[i]->name, ": nobody says what it holds");
    ASSIGN_OR_RETURN(std::string bytes, *std::move(brought));
    given.push_back(std::move(bytes));
  }
  return given;
}

// Of a kernel in CUDA that is right by definition.
Result<std::vector<Bytes>> cuda_answers_to(const Program& program, const std::vector<Bytes>& sets) {
  constexpr std::chrono::seconds kDeadline{60};
  const HostCudaKernel kernel = host_cuda_kernel(program);
  ASSIGN_OR_RETURN(const HostCudaProgram built, build_host_cuda(kernel));
  std::vector<Bytes> answers;
  for (const Bytes& given : sets) {
    ASSIGN_OR_RETURN(HostCudaRun run, run_host_program(built, kernel, given, kDeadline));
    if (const std::string fault = run.fault(); !fault.empty())
      return invalid_config(kernel.function, ", run on the host: ", fault);
    answers.push_back(std::move(run.outputs));
  }
  return answers;
}

// Answers of each set, by output, as bytes.
Result<std::vector<Bytes>> answers_to(const Workload& truth, const Program& program, std::vector<Bytes>& sets,
                                      int threads) {
  Bytes brought;
  for (size_t i = 0; i < program.args.size(); ++i)
    if (is_result(program.args[i]->role))
      if (std::optional<Result<std::string>> answer = truth.answer(i)) {
        ASSIGN_OR_RETURN(std::string bytes, *std::move(answer));
        brought.push_back(std::move(bytes));
      }
  if (brought.empty() && program.foreign->launch) return cuda_answers_to(program, sets);
  if (brought.empty()) return run_foreign_each(program, sets, {.threads = threads});
  sets.resize(1);
  return std::vector<Bytes>{brought};
}

}  // namespace

Result<JudgeData> make_judge_data(const Workload& truth, uint64_t seed, int threads,
                                  const std::string& folder) {
  const Program program = truth.compute();
  ASSIGN_OR_RETURN(const Bytes first, given_from(truth, program, seed));
  ASSIGN_OR_RETURN(Bytes second, given_from(truth, program, seed ^ 0x9e3779b97f4a7c15U));
  std::vector<DType> dtypes;
  size_t place = 0;
  for (const Buffer& arg : program.args) {
    if (!is_given(arg->role)) continue;
    dtypes.push_back(arg->dtype);
    // What an inout holds before a call is the same in all sets (runner_protocol.h).
    if (is_result(arg->role)) second[place] = first[place];
    ++place;
  }
  std::vector<Bytes> sets = judge_inputs(first, second, dtypes, seed);
  ASSIGN_OR_RETURN(const std::vector<Bytes> answers, answers_to(truth, program, sets, threads));

  const Tolerance allowed = tolerance_of(truth);
  JudgeData data{.check = {allowed.absolute, allowed.relative}};
  for (size_t s = 0; s < sets.size(); ++s) {
    RunRequest::InputSet set;
    size_t input = 0, output = 0;
    for (size_t i = 0; i < program.args.size(); ++i) {
      const Buffer& arg = program.args[i];
      const std::string base = str(folder, "/", s, "_", i);
      if (is_given(arg->role)) {
        RETURN_IF_ERROR(replace_file(base + ".input", sets[s][input++]));
        if (s == 0 || !is_result(arg->role)) set.inputs.push_back({arg->name, base + ".input"});
      }
      if (!is_result(arg->role)) continue;
      const std::string& bytes = answers[s][output++];
      OutputFacts facts{.stored_as = arg->dtype};
      if (const std::optional<Tolerance> own = output_tolerance(truth, i))
        facts.tolerance = CheckSpec{own->absolute, own->relative};
      RETURN_IF_ERROR(write_reference(base + ".reference",
                                      load_elements(bytes.data(), arg->elements(), arg->dtype), arg->shape,
                                      ReferenceKind::kFull, facts));
      set.references.push_back({arg->name, base + ".reference"});
    }
    if (s == 0) {
      data.inputs = std::move(set.inputs);
      data.references = std::move(set.references);
    } else {
      data.others.push_back(std::move(set));
    }
  }
  return data;
}

}  // namespace tuner
