// Runs a kernel for AArch64 under qemu's user-mode emulator. Needs no C compiler or library for AArch64: the
// program around the kernel is some lines of assembly, put together by LLVM's assembler and linker, which
// come with what the project is built from. qemu-aarch64 (package qemu-user) is the only thing to find.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/target.h"

namespace tuner {

// The runtime that a kernel is called with, as assembly: `runtime`, whose parallel_for runs on the caller's thread. It ends in
// .data; the program has its `workspace`.
inline constexpr char kAarch64Runtime[] = R"(
serial_for:                // (pool, extent, task, closure) -> task(closure, 0, extent, thread 0)
  mov x4, x2
  mov w2, w1
  mov x0, x3
  mov w1, #0
  mov w3, #0
  br x4
  .ltorg
  .data
  .balign 64
runtime:
  .word 1, 1               // ABI version, threads
  .quad serial_for, 0, workspace
)";

// OK when all tools are here; else what is missing.
Status aarch64_tools();

// Packs, where the kernel packs, calls it on one thread and returns its output, the last argument of `math`.
// `args`: the values of each argument of `math`, of outputs ignored. Failed: it cannot be compiled or linked,
// or ends other than with 0; the message has what the tool said.
Result<std::vector<double>> run_on_aarch64(const Program& scheduled, const Target& target,
                                           const Program& math, const std::vector<std::vector<double>>& args);

}  // namespace tuner
