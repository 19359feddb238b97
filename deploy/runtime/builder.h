// The code generator, as the library sees it. builder_llvm.cpp implements it; builder_none.cpp is linked
// instead if kernels are only loaded.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/target.h"

namespace tuner::runtime {

// True with a code generator.
bool can_compile();
// Returns "llvm 22.1.8 codegen 4", or "" without a code generator.
std::string toolchain();
// Like resolve_target(), which also takes "cpu" and "cpu -threads=N". Without a code generator those are
// InvalidArgument.
Result<Target> resolve(std::string_view text);
// Compiles the program. Any thread may call it. NotFound without a code generator.
Result<Artifact> build(const Program& program, const Target& target);

}  // namespace tuner::runtime
