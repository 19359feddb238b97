#include <sys/wait.h>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/foreign/confined_program.h"
#include "compiler_core/foreign/source_build.h"
#include "compiler_core/host_cuda/findings.h"
#include "compiler_core/host_cuda/host_build.h"
#include "compiler_core/host_cuda/host_cuda.h"
#include "compiler_core/host_cuda/kernel_text.h"

namespace tuner {
namespace {

// How the runtime ends a program whose rest has no meaning (device/runtime.cpp).
constexpr int kStoppedAtFault = 90;
// Addresses that nobody has, of each buffer and of all stacks (kApart in device/state.h, on both sides).
constexpr int64_t kClosedBytes = int64_t{2} * (64 << 20);

Status check_launch(const HostCudaKernel& k) {
  for (size_t i = 0; i < 3; ++i) {
    const char axis = "xyz"[i];
    if (k.grid[i] < 1 || k.grid[i] > kMostGrid[i])
      return invalid_config("grid.", axis, " is ", k.grid[i], ", expected 1 to ", kMostGrid[i]);
    if (k.block[i] < 1 || k.block[i] > kMostBlock[i])
      return invalid_config("block.", axis, " is ", k.block[i], ", expected 1 to ", kMostBlock[i]);
  }
  if (const int64_t threads = k.block[0] * k.block[1] * k.block[2]; threads > kMostBlockThreads)
    return invalid_config("a block has ", threads, " threads, expected at most ", kMostBlockThreads);
  if (k.shared_bytes < 0 || k.shared_bytes > kMostBlockShared)
    return invalid_config("dynamic shared memory is ", k.shared_bytes, " bytes, expected 0 to ",
                          kMostBlockShared);
  return Status::ok();
}

}  // namespace

Result<HostCudaRun> run_host_cuda(const HostCudaKernel& kernel, const std::vector<std::string>& given,
                                  std::chrono::milliseconds deadline) {
  RETURN_IF_ERROR(check_launch(kernel));
  ASSIGN_OR_RETURN(const HostCudaProgram program, build_host_cuda(kernel));
  return run_host_program(program, kernel, given, deadline);
}

Result<HostCudaRun> run_host_program(const HostCudaProgram& program, const HostCudaKernel& kernel,
                                     const std::vector<std::string>& given,
                                     std::chrono::milliseconds deadline) {
  int64_t bytes = 0, closed_bytes = kClosedBytes;
  size_t next = 0;
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const HostCudaArgument& a = kernel.arguments[i];
    if (!a.is_buffer()) continue;
    bytes += a.bytes();
    closed_bytes += kClosedBytes;
    if (is_given(a.role))
      RETURN_IF_ERROR(replace_file(program.folder->file(operand_file_name(i)), given.at(next++)));
  }
  ConfinedProgram run{.path = program.path,
                      .words = {"kernel"},
                      .folder = program.folder->path(),
                      .deadline = deadline,
                      .untrusted = true};
  run.memory_bytes += 2 * bytes + closed_bytes;
  run.file_bytes += bytes;
  ASSIGN_OR_RETURN(const ConfinedEnd end, run_confined(run));
  HostCudaRun made;
  ASSIGN_OR_RETURN(made.findings, read_findings(program));
  const bool stopped = WIFEXITED(end.status) && WEXITSTATUS(end.status) == kStoppedAtFault;
  if (stopped && !made.fault().empty()) return made;
  // A crash after a fault is that fault's; without one the crash is what there is to tell.
  if (!end.timed_out && end.status != 0 && !made.fault().empty()) return made;
  const std::string printed =
      end.output.empty() ? "" : "; it printed: " + said_by(end.output, program.folder->path());
  if (end.timed_out)
    return invalid_config(kernel.function, " did not end within ", deadline.count() / 1000, " s on the host",
                          printed);
  if (end.status != 0)
    return invalid_config(kernel.function, " did not end well on the host: ", ending_text(end.status),
                          printed);
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const HostCudaArgument& a = kernel.arguments[i];
    if (!a.is_buffer() || !is_result(a.role)) continue;
    ASSIGN_OR_RETURN(std::string answer, read_whole(program.folder->file(operand_file_name(i)),
                                                    static_cast<size_t>(a.bytes()) + 1));
    if (std::ssize(answer) != a.bytes())
      return invalid_config(kernel.function, " left ", answer.size(), " bytes of ", a.name, ", expected ",
                            a.bytes());
    made.outputs.push_back(std::move(answer));
  }
  return made;
}

}  // namespace tuner
