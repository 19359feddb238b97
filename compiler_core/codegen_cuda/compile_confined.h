// NVRTC for a stranger's source: in a process that reads the job's files and the system's, and nothing else.
// NVRTC itself would follow `#include "/etc/passwd"`, and print what it finds.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/codegen_cuda/nvrtc.h"
#include "compiler_core/ir/foreign_code.h"

namespace tuner {

// Compiles `code`, a kernel in CUDA C++, with these options. InvalidConfig: NVRTC refuses it, with what it
// said, cut to 4 KiB; or it takes too long or too much memory. Unavailable: there is no NVRTC, no way to
// confine it, or no program `cuda_compiler`. Any thread.
Result<cuda::Compiled> compile_confined(const ForeignCode& code, const std::vector<std::string>& options);

// OK, or why compile_confined() is unavailable.
Status can_compile_confined();

// The program: `cuda_compiler NAME KERNEL OPTION...` in a folder with the files. It writes what it made into
// files of these names, and ends with one of these codes; of the others its output says why.
inline constexpr char kCubinFile[] = "tuner_made.cubin", kLogFile[] = "tuner_made.log",
                      kSymbolFile[] = "tuner_made.symbol", kPtxFile[] = "tuner_made.ptx";
inline constexpr int kCompiledCode = 0, kRefusedCode = 10, kUnableCode = 11;

}  // namespace tuner
