// Program -> CUDA C++ that a person can read -> NVRTC -> cubin.
//
// NVRTC is loaded when first used (dlopen); a host without it can still print source, and says why it cannot
// compile. Nothing here needs a GPU, a driver or a CUDA header. Everything may be called from any thread;
// NVRTC 13 compiles on several threads at once.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/lower/gpu.h"
#include "compiler_core/target.h"

namespace tuner {

struct CudaOptions {
  // Stage B refuses a kernel that spills more than this many bytes a thread.
  int max_spill_bytes = 64;
  // Stages A and C can be switched off, to learn what they would have refused.
  bool static_filter = true;
  // Cubins by hash of source, options and NVRTC version are kept here; empty: not kept.
  std::string cache_directory;
};

// lower_gpu, print. The same text for the same Program and architecture.
Result<std::string> emit_cuda(const Program& program, const Target& target);
std::string print_cuda(const GpuProgram& program, const Target& target);

// lower_gpu, stages A and C of the filter, print, NVRTC, stage B. InvalidConfig with the stage and the
// numbers when the filter refuses; Unavailable when there is no NVRTC here (the message lists where it was
// looked for); Internal with the compiler's first error when the printed source does not compile, which is
// our bug.
Result<Artifact> compile_cuda(const Program& program, const Target& target, const CudaOptions& options = {});

// OK, or why there is no NVRTC. Looked for in $TUNER_NVRTC (a file), the loader's own path,
// $CUDA_HOME/lib64, $CUDA_PATH/lib64, /usr/local/cuda*/lib64; 12.3 or newer.
Status nvrtc_available();
// "nvrtc 13.0 cuda codegen 1", or "no nvrtc".
std::string cuda_toolchain_fingerprint();

// The static filter (README.md tells where its numbers come from). Before compiling: what a kernel will need.
struct ResourceEstimate {
  int64_t threads = 0, shared_bytes = 0;
  int64_t registers = 0;       // of a thread: accumulators, operands, staged loads, addresses
  int64_t register_limit = 0;  // what launch bounds and the register file leave a thread
  int blocks_per_sm = 0;       // by threads, shared memory and the estimate
};
ResourceEstimate estimate_resources(const GpuKernel& kernel, const Target& target);
// Stage A and C: OK, or InvalidConfig saying which limit ("stage A: needs about 300 registers, 255 there").
Status check_resources(const GpuKernel& kernel, const Target& target);
// Blocks of one multiprocessor at once, by the rules of the CUDA occupancy calculator; 0: cannot be launched.
int blocks_per_multiprocessor(const Target& target, int64_t threads, int64_t registers, int64_t shared_bytes);

// For people (tuner show --as resources): for each kernel grid, block, shared memory, the estimate, what the
// filter says, and, where there is NVRTC, what the compiler made of it. Refused configs are described too.
Result<std::string> cuda_resources(const Program& program, const Target& target);

// What is in a cubin, read from its ELF sections: no driver, no cuobjdump.
struct CubinKernel {
  std::string name;
  int registers = 0, stack_bytes = 0, barriers = 0, max_threads = 0;
  // Without what a launch adds. From sm_90 on, the 1,024 bytes reserved by the system are among them.
  int static_shared_bytes = 0;
  std::vector<int> parameter_bytes;  // of each parameter, in their order
};
// InvalidArgument naming the offset when the bytes are not a cubin. Sorted by name.
Result<std::vector<CubinKernel>> read_cubin(std::string_view bytes);

// What ptxas said of a kernel (--ptxas-options=-v): spills are only there.
struct CompilerReport {
  std::string kernel;
  int registers = 0, spill_store_bytes = 0, spill_load_bytes = 0, stack_bytes = 0;
  bool serialized = false;  // wgmma waits after each instruction
  // "C7511 Potential Performance Loss: ...": what it says of products by wgmma.
  std::vector<std::string> losses;
};
std::vector<CompilerReport> parse_compiler_log(std::string_view log);

// A C file with the launcher of a cubin (driver API) and its header, for an application: see tuner build.
struct CudaLauncher {
  std::string source, header;
};
CudaLauncher cuda_launcher(const Manifest& manifest, const std::string& name, const std::string& about);

}  // namespace tuner
