// IrWriter: where the instructions of one Program go, and the first thing that keeps it from being compiled.
// Private to codegen.
#pragma once

#include <string>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"
#include "compiler_core/codegen/machine_traits.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tuner::codegen {

struct IrWriter {
  IrWriter(llvm::Module& to, const MachineTraits& traits) : module(to), machine(traits), b(to.getContext()) {}
  IrWriter(const IrWriter&) = delete;
  IrWriter& operator=(const IrWriter&) = delete;

  llvm::Module& module;
  MachineTraits machine;
  llvm::IRBuilder<> b;
  std::string program_name;  // for messages
  Status status;             // the first refusal; what is written afterwards is thrown away
};

// What every part of the emitter writes with. It keeps a reference to the writer.
class IrPart {
 protected:
  explicit IrPart(IrWriter& ir) : ir_(ir), module_(ir.module), machine_(ir.machine), b_(ir.b) {}

  llvm::Type* type_of(DType t);      // of a value
  llvm::Type* memory_type(DType t);  // bool is a byte
  llvm::Value* int_of(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  // Remembers the first thing that cannot be compiled.
  template <class... Args>
  void refuse(const Args&... args) {
    if (ir_.status.is_ok()) ir_.status = invalid_config(ir_.program_name, ": ", args...);
  }

  IrWriter& ir_;
  llvm::Module& module_;
  const MachineTraits& machine_;
  llvm::IRBuilder<>& b_;
};

}  // namespace tuner::codegen
