#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen/cpu_backend.h"
#include "deploy/runtime/builder.h"

namespace tuner::runtime {

bool can_compile() { return true; }
std::string toolchain() { return toolchain_fingerprint(); }
Result<Target> resolve(std::string_view text) { return resolve_cpu_target(text); }
Result<Artifact> build(const Program& program, const Target& target) { return compile(program, target); }

}  // namespace tuner::runtime
