// What the library needs of a code generator. Linked with builder_llvm.cpp, or with builder_none.cpp where
// kernels are only loaded.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/target.h"

namespace tuner::runtime {

bool can_compile();
// "llvm 22.1.8 codegen 4"; "" without a code generator.
std::string toolchain();
// As resolve_target(): also "cpu" and "cpu -threads=N". Without a code generator these are InvalidArgument.
Result<Target> resolve(std::string_view text);
// Any thread. Without a code generator: NotFound.
Result<Artifact> build(const Program& program, const Target& target);

}  // namespace tuner::runtime
