// Machine: one LLVM target machine, IR in, object or assembly out. Private to codegen.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/codegen/machine_traits.h"
#include "compiler_core/target.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Target/TargetMachine.h"

namespace tuner::codegen {

// What LLVM knows of the target's architecture: its CPUs and features. InvalidArgument for one that it has no
// code generator for. Never null. `named`: of the target's CPU and features, whose words are known.
Result<std::unique_ptr<llvm::MCSubtargetInfo>> subtarget_of(const Target& target, bool named = false);

class Machine {
 public:
  // Of this thread, made once per target: building one costs as much as optimising a kernel. InvalidArgument
  // for a CPU that LLVM does not know.
  static Result<Machine*> of(const Target& target);

  const MachineTraits& traits() const { return traits_; }
  // Whether code for it may use a feature, by LLVM's name ("avx2"); false for one of another architecture.
  bool has_feature(std::string_view name) const;
  void prepare(llvm::Module& module) const;  // triple and data layout
  // Verifies (Internal when that fails: our bug), then runs the few passes that pay.
  Status optimize(llvm::Module& module) const;
  Result<std::string> emit(llvm::Module& module, llvm::CodeGenFileType type, bool machine_scheduler) const;

 private:
  std::unique_ptr<llvm::TargetMachine> machine_;
  MachineTraits traits_;
};

// An ELF shared object of these relocatable objects that exports their default-visibility symbols, or only
// the one called `exported`; "" is no soname. It needs libm.so.6 if they call functions of it, and the shared
// objects in `needed`. The same bytes for the same input. InvalidArgument, with the linker's words, when two
// objects define the same symbol. One link at a time in a process; callers wait.
Result<std::string> link_shared(const std::vector<std::string>& objects, const Target& target,
                                std::string_view soname, std::string_view exported = {},
                                const std::vector<std::string>& needed = {});

}  // namespace tuner::codegen
