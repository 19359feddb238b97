#include "tuner/verify/verify_emulated.h"

#include <algorithm>

#include "compiler_core/codegen/emulated_run.h"
#include "measure_server/runner/reference_file.h"

namespace tuner {
namespace {

constexpr size_t kMostLines = 5;  // of a report of faults

// Every fault on a line of its own, most frequent first.
std::string fault_text(const std::vector<std::string>& faults) {
  std::string text;
  for (size_t i = 0; i < std::min(faults.size(), kMostLines); ++i)
    text += (i == 0 ? "" : "\n    ") + faults[i];
  if (faults.size() > kMostLines) text += str("\n    and ", faults.size() - kMostLines, " more places");
  return text;
}

// The first output that is not the reference answer, where a block that ran stored it.
std::string wrong_answer(EmulatedRun& run, const VerifyData& data) {
  size_t output = 0;
  for (const Buffer& buffer : data.unscheduled.args) {
    if (buffer->role != BufferRole::kOutput) continue;
    const std::vector<double>& expected = data.answers[output];
    std::vector<float>& found = run.outputs[output];
    if (!run.written.empty())
      for (size_t i = 0; i < found.size(); ++i)
        if (run.written[output][i] == 0) found[i] = static_cast<float>(expected[i]);
    // An emulated run gives float32, which integers from 2^24 on are rounded to.
    std::vector<double> rounded = expected;
    if (!is_float(buffer->dtype))
      for (double& value : rounded) value = static_cast<float>(value);
    ReferenceView reference;
    reference.shape = buffer->shape;
    reference.full = rounded;
    const CheckResult result =
        check_output(reference, found.data(), DType::kFloat32,
                     CheckSpec{data.tolerance.absolute, data.tolerance.relative}, buffer->name);
    if (!result.ok) return "wrong_answer: " + result.message;
    ++output;
  }
  return {};
}

std::string problem_of(const Result<EmulatedRun>& found, const VerifyData& data) {
  if (!found) return "emulate: " + found.message();
  EmulatedRun run = *found;
  if (!run.faults.empty()) return fault_text(run.faults);
  return wrong_answer(run, data);
}

}  // namespace

int64_t emulation_work(const Workload& workload) { return workload.flops() + 2 * workload.bytes(); }

Status check_emulation_size(const Workload& workload) {
  const int64_t work = emulation_work(workload);
  if (work <= kMostWork) return Status::ok();
  return invalid_argument(workload.key(), ": too large to be verified without a GPU: ", work,
                          " operations and moves, at most ", kMostWork,
                          "; verify a smaller shape of the same operator");
}

ConfigVerdict verify_kernels(const GpuProgram& kernels, const VerifyData& data, int64_t work,
                             bool interpret) {
  ConfigVerdict verdict;
  EmulatorOptions options;
  if (kernels.kernels.size() > 1 && work > kWholeWorkOfSeveral) {
    verdict.not_checked = str(kernels.kernels.size(), " kernels, which only run whole: ", work,
                              " operations and moves, at most ", kWholeWorkOfSeveral);
    return verdict;
  }
  if (kernels.kernels.size() == 1 && work > kWholeWork) {
    const std::array<int64_t, 3>& grid = kernels.kernels[0].grid;
    const auto blocks = static_cast<double>(grid[0] * grid[1] * grid[2]);
    const double share = static_cast<double>(kWholeWork) / 4 / static_cast<double>(work);
    options.sample_blocks = std::max<int64_t>(1, static_cast<int64_t>(blocks * share));
    verdict.blocks_run = options.sample_blocks;
  }
  verdict.problem = problem_of(run_emulated(kernels, data.inputs, options), data);
  if (interpret && verdict.problem.empty()) {
    verdict.problem = problem_of(interpret_emulated(kernels, data.inputs, options), data);
    if (!verdict.problem.empty()) verdict.problem = "interpreted: " + verdict.problem;
  }
  return verdict;
}

}  // namespace tuner
