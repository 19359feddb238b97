// Program -> machine code, behind one page without a single LLVM type. The library behind it is codegen_llvm,
// the only user of LLVM and LLD. Everything here may be called from any thread; each call has its own LLVM
// context.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/target.h"

namespace tuner {

struct CompileOptions {
  // A switch of the machine scheduler: at high register pressure (>= 28 accumulators) either may win, so it
  // can be a knob.
  bool machine_scheduler = true;
  // Refuse programs that unroll to more than this many stores (compile time grows with them): InvalidConfig.
  int64_t max_unrolled_stores = 4096;
  // The Program is compiled as it stands: no guard is decided ahead and no loop written out, whatever its
  // kind. Small code that compiles fast, for Programs that only check something. Register buffers then need
  // constant indices, and reductions must be lowered.
  bool as_written = false;
};

// Lowers, generates code and links. InvalidConfig when the Program cannot be compiled (unrolled too far,
// register buffer with a variable index...); Internal when LLVM's verifier finds our bug.
Result<Artifact> compile(const Program& program, const Target& target, const CompileOptions& options = {});

// The Program, and its packing, as the passes of lower/lower.h up to and with `last` leave them; empty: all,
// which is what code is generated from. InvalidConfig as compile().
Result<Program> lower_for(const Program& program, const Target& target, std::string_view last = {},
                          const CompileOptions& options = {});

// What `tuner show` and `tuner build --emit` print.
Result<std::string> emit_llvm(const Program& program, const Target& target,
                              const CompileOptions& options = {});
Result<std::string> emit_asm(const Program& program, const Target& target,
                             const CompileOptions& options = {});
Result<std::string> emit_object(const Program& program, const Target& target,
                                const CompileOptions& options = {});

// The CPU this runs on, with its own caches and vector width, and `threads` threads.
Target host_target(int threads = 1);
// Whether code for this CPU target runs on this host, with all of its threads at once; else InvalidArgument
// with the reason: an older or equal CPU's code runs, a newer one's does not.
Status runs_here(const Target& target);
// "llvm 22.1.8 codegen 1": part of every record. The number after codegen is ours and grows when generated
// code changes.
std::string toolchain_fingerprint();

}  // namespace tuner
