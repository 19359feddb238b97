// nvcc, where the operator lists it, for a stranger's source: confined as every compiler is (foreign).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/codegen_cuda/nvrtc.h"
#include "compiler_core/foreign/compilers.h"
#include "compiler_core/ir/foreign_code.h"

namespace tuner {

// Compiles `code`, a kernel in CUDA C++, with these options of NVRTC's, which nvcc has, too. InvalidConfig:
// it refuses, with what it said, cut to 4 KiB; takes too long or too much memory; or the function's name
// means no kernel, or several. Unavailable: nothing here confines it. Any thread.
Result<cuda::Compiled> compile_by_nvcc(const ForeignCode& code, const Compiler& nvcc,
                                       const std::vector<std::string>& options);

// The symbol among these that a name of C++ means: "reduce", "ns::reduce". Where none has that name, the only
// one whose last part is the same. InvalidConfig: none, or several; the message names what is there.
Result<std::string> symbol_of_kernel(std::string_view name, const std::vector<std::string>& symbols);

}  // namespace tuner
