// From a Program whose code is a user's kernel for a GPU to an artifact.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/backend.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/foreign_code.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/target.h"

namespace tuner {

// Requires program.foreign->launch. CUDA C++ is compiled by NVRTC, as compile_confined() says, or by the nvcc
// that code.compiler names; PTX and cubins are as
// they were brought. `cache`: a folder for cubins by content; empty: none. InvalidConfig: the compiler
// refuses; the code is for another device; the device does not take the launch; or the kernel's parameters
// are not the job file's arguments. Unavailable: as compile_confined().
// NotFound: no such nvcc is on this host's list.
Result<Artifact> compile_user_kernel(const Program& program, const Target& target,
                                     const std::string& cache = {});

// The same without a cache, and the text that was assembled: PTX. Of a kernel that comes compiled it is the
// PTX that was brought. InvalidConfig also: a cubin was brought, which has no text.
Result<ListedCode> list_user_kernel(const Program& program, const Target& target);

// As records name what compiles it; of what is right for a kernel, what compiles that kernel. Errors:
// NotFound and Unavailable as above.
Result<std::string> user_kernel_toolchain(const ForeignCode& code);

// The words of NVRTC's command line for it, which are nvcc's, too.
std::vector<std::string> nvrtc_words(const ForeignCode& code, const Target& target);

// Registers, memory and launch of it, for people (tuner show --as resources).
Result<std::string> user_kernel_resources(const Program& program, const Target& target);
// Its machine code (--as sass). InvalidArgument: it is PTX.
Result<std::string> user_kernel_sass(const Program& program, const Target& target);

}  // namespace tuner
