// Runs kernels for AArch64 under qemu's user-mode emulator. Needs no C compiler or library for AArch64: the
// program around the kernels is some lines of assembly, put together by LLVM's assembler and linker, which
// come with what the project is built from. qemu-aarch64 (package qemu-user) is the only thing to find.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/target.h"

namespace tuner {

// The runtime that a kernel is called with, as assembly: `runtime`, whose parallel_for runs on the caller's
// thread. It ends in .data; the program has its `workspace`.
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

// Kernels that run one after the other in one process under qemu, which takes longer to start than most
// kernels run. Kernels with the same arguments share them: the values are kept once. Not thread-safe.
class Aarch64Batch {
 public:
  explicit Aarch64Batch(Target target) : target_(std::move(target)) {}

  // Compiles the kernel. `args`: the values of each argument of `math`, of outputs ignored; they are read
  // now. An argument that is read and written begins as `before`. `what` names the kernel in messages.
  Status add(const Program& scheduled, const Program& math, const std::vector<std::vector<double>>& args,
             const std::vector<double>& before, std::string what);
  size_t kernels() const { return kernels_.size(); }

  // Packs, where a kernel packs, calls each on one thread and returns their outputs: the last argument of
  // `math`. The CPU under qemu is the target's where qemu knows it, so that an instruction it lacks ends the
  // process. Failed: the program cannot be linked, a kernel ends other than with 0 or writes behind its
  // output; the message names the first one.
  Result<std::vector<std::vector<double>>> run() const;

 private:
  struct Kernel {
    std::string what, object;
    Manifest manifest;
    std::map<std::string, std::string> labels;  // of its arguments' data, by name
    Buffer out;
    std::string before;  // bytes of the output before the call
  };
  std::string label_of(const std::string& bytes);
  Result<std::string> program_text(const std::string& folder) const;

  Target target_;
  std::vector<Kernel> kernels_;
  std::map<std::string, std::string> data_;  // labels of arguments, by their bytes
};

}  // namespace tuner
