#include "compiler_core/host_cuda/foreign_kernel.h"

#include <utility>

namespace tuner {

Result<HostCudaKernel> host_cuda_kernel(const Program& program) {
  const ForeignCode& code = *program.foreign;
  const ForeignLaunch& launch = *code.launch;
  if (launch.form != ForeignLaunch::Form::kCuda)
    return invalid_config(code.source, " comes compiled, and this host runs CUDA sources only");
  HostCudaKernel kernel{.files = *code.files,
                        .source = code.source,
                        .function = code.function,
                        .grid = launch.grid,
                        .block = launch.block,
                        .shared_bytes = launch.shared_bytes};
  for (const std::string& word : code.words)
    if (word.starts_with("-D") || word.starts_with("-U")) kernel.words.push_back(word);
  for (size_t i = 0; i < code.parameters.size(); ++i) {
    const ForeignCode::Parameter& p = code.parameters[i];
    if (p.operand < 0) {
      kernel.arguments.push_back({.name = p.name, .type = p.type, .value = code.arguments.at(i)});
      continue;
    }
    const Buffer& b = program.args.at(static_cast<size_t>(p.operand));
    kernel.arguments.push_back({.name = p.name,
                                .type = p.type,
                                .elements = b->elements(),
                                .element_bytes = dtype_bytes(b->dtype),
                                .role = b->role});
  }
  return kernel;
}

Result<std::vector<std::string>> host_cuda_outputs(const Program& program,
                                                   const std::vector<std::string>& given) {
  ASSIGN_OR_RETURN(const HostCudaKernel kernel, host_cuda_kernel(program));
  ASSIGN_OR_RETURN(HostCudaRun run, run_host_cuda(kernel, given));
  if (const std::string fault = run.fault(); !fault.empty())
    return invalid_config("the kernel that says what is right: ", fault);
  return std::move(run.outputs);
}

}  // namespace tuner
