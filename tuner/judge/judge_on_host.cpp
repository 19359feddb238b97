#include "tuner/judge/judge_on_host.h"

#include "compiler_core/base/input_file.h"
#include "compiler_core/host_cuda/host_answers.h"
#include "compiler_core/host_cuda/host_build.h"
#include "compiler_core/host_cuda/host_cuda.h"
#include "measure_server/runner/reference_file.h"

namespace tuner {
namespace {

using Files = std::vector<RunRequest::Data>;

Result<std::string> bytes_of(const Files& files, const std::string& argument) {
  for (const RunRequest::Data& file : files)
    if (file.arg == argument) return read_whole(file.path);
  return not_found(argument, ": this set has no file of it");
}

KernelJudgement judged(KernelVerdict verdict, std::string why) {
  KernelJudgement j;
  j.verdict = verdict;
  j.why = std::move(why);
  return j;
}

// Of faults the first counts: what is told behind it may be its work.
KernelVerdict verdict_of(const HostCudaRun& run) {
  for (const HostCudaFinding& finding : run.findings)
    if (finding.is_fault())
      return finding.kind == HostCudaFinding::Kind::kRace ? KernelVerdict::kWrong : KernelVerdict::kCrashed;
  return KernelVerdict::kRightNotTimed;
}

class HostJudge {
 public:
  HostJudge(const Program& program, const JudgeData& data, std::chrono::milliseconds deadline)
      : program_(program), data_(data), deadline_(deadline) {}

  Result<KernelJudgement> judge() {
    HostCudaKernel kernel = host_cuda_kernel(program_);
    // Outputs hold what this gives them, so that a kernel finds the answer of another run there.
    for (HostCudaArgument& argument : kernel.arguments)
      if (argument.is_buffer() && argument.role == BufferRole::kOutput) argument.role = BufferRole::kInOut;
    Result<HostCudaProgram> built = build_host_cuda(kernel);
    if (!built && built.status().code() == StatusCode::kInvalidConfig)
      return judged(KernelVerdict::kNotCompiled, built.message());
    RETURN_IF_ERROR(built.status());
    for (size_t set = 0; set <= data_.others.size(); ++set) {
      const Files& inputs = set == 0 ? data_.inputs : data_.others[set - 1].inputs;
      ASSIGN_OR_RETURN(const std::vector<std::string> given, given_from(inputs));
      const Result<HostCudaRun> run = run_host_program(*built, kernel, given, deadline_);
      if (!run && run.status().code() == StatusCode::kInvalidConfig)
        return judged(ended_late(run.message()) ? KernelVerdict::kTimedOut : KernelVerdict::kCrashed,
                      run.message());
      RETURN_IF_ERROR(run.status());
      if (const KernelVerdict found = verdict_of(*run); found != KernelVerdict::kRightNotTimed)
        return judged(found, run->fault());
      ASSIGN_OR_RETURN(const KernelJudgement compared,
                       compare(*run, set == 0 ? data_.references : data_.others[set - 1].references));
      if (compared.verdict != KernelVerdict::kRightNotTimed) return compared;
      left_ = run->outputs;
    }
    return judged(KernelVerdict::kRightNotTimed, "");
  }

 private:
  static bool ended_late(const std::string& message) {
    return message.find("did not end within") != message.npos;
  }

  Result<std::vector<std::string>> given_from(const Files& set) const {
    std::vector<std::string> given;
    size_t result = 0;
    for (const Buffer& arg : program_.args) {
      const size_t place = is_result(arg->role) ? result++ : 0;
      if (!is_given(arg->role)) {
        given.push_back(left_.empty() ? poison(arg) : left_.at(place));
        continue;
      }
      Result<std::string> bytes = bytes_of(set, arg->name);
      if (!bytes) bytes = bytes_of(data_.inputs, arg->name);  // an inout is the same in all sets
      RETURN_IF_ERROR(bytes.status());
      given.push_back(*std::move(bytes));
    }
    return given;
  }

  // Elements of which no arithmetic makes an answer.
  static std::string poison(const Buffer& arg) {
    return std::string(static_cast<size_t>(arg->elements() * dtype_bytes(arg->dtype)), '\xff');
  }

  Result<KernelJudgement> compare(const HostCudaRun& run, const Files& references) const {
    size_t output = 0;
    for (const Buffer& arg : program_.args) {
      if (!is_result(arg->role)) continue;
      ASSIGN_OR_RETURN(const std::string bytes, bytes_of(references, arg->name));
      ASSIGN_OR_RETURN(const ReferenceView reference, parse_reference(bytes));
      const CheckResult result =
          check_output(reference, run.outputs.at(output++).data(), arg->dtype, data_.check, arg->name);
      if (result.ok) continue;
      KernelJudgement wrong = judged(KernelVerdict::kWrong, result.message);
      wrong.difference = {arg->name, result.index, result.found, result.expected};
      return wrong;
    }
    return judged(KernelVerdict::kRightNotTimed, "");
  }

  const Program& program_;
  const JudgeData& data_;
  const std::chrono::milliseconds deadline_;
  std::vector<std::string> left_;  // in the results, by the run before
};

}  // namespace

Result<KernelJudgement> judge_on_host(const Program& program, const JudgeData& data,
                                      std::chrono::milliseconds deadline) {
  return HostJudge(program, data, deadline).judge();
}

}  // namespace tuner
