#include "compiler_core/host_cuda/host_answers.h"

#include "compiler_core/ir/foreign_code.h"

namespace tuner {

HostCudaKernel host_cuda_kernel(const Program& program) {
  const ForeignCode& code = *program.foreign;
  HostCudaKernel kernel{.files = *code.files,
                        .source = code.source,
                        .function = code.function,
                        .grid = code.launch->grid,
                        .block = code.launch->block,
                        .shared_bytes = code.launch->shared_bytes};
  for (const std::string& word : code.words)  // flags of NVRTC say nothing to a compiler of the host
    if (word.starts_with("-D") || word.starts_with("-U")) kernel.words.push_back(word);
  for (size_t i = 0; i < code.parameters.size(); ++i) {
    const ForeignCode::Parameter& p = code.parameters[i];
    HostCudaArgument argument{.name = p.name, .type = p.type};
    if (p.operand < 0) {
      argument.value = code.arguments.at(i);
    } else {
      const Buffer& buffer = program.args.at(static_cast<size_t>(p.operand));
      argument.elements = buffer->elements();
      argument.element_bytes = dtype_bytes(buffer->dtype);
      argument.role = buffer->role;
    }
    kernel.arguments.push_back(std::move(argument));
  }
  return kernel;
}

Result<std::vector<std::vector<double>>> user_answers(const Program& program,
                                                      const std::vector<std::string>& given,
                                                      const ForeignRun& run, const BroughtAnswer& brought) {
  const ForeignCode& code = *program.foreign;
  if (!code.launch) return foreign_answers(program, given, run, brought);
  return answers_by(program, brought, [&]() -> Result<std::vector<std::string>> {
    if (code.launch->form != ForeignLaunch::Form::kCuda)
      return invalid_config(code.function, " is compiled for a GPU, and no host computes its right answer");
    ASSIGN_OR_RETURN(HostCudaRun ran, run_host_cuda(host_cuda_kernel(program), given, run.deadline));
    if (const std::string fault = ran.fault(); !fault.empty())
      return invalid_config(code.function, ", run on the host: ", fault);
    return std::move(ran.outputs);
  });
}

}  // namespace tuner
