// DotInstructions: dot products of lanes of 32 bits, by what the target has for them. Private to codegen.
#pragma once

#include <vector>

#include "compiler_core/codegen/emit_math.h"
#include "compiler_core/codegen/ir_writer.h"
#include "compiler_core/codegen/lanes.h"

namespace tuner::codegen {

class DotInstructions : private IrPart {
 public:
  DotInstructions(IrWriter& ir, const Lanes& lanes, MathEmitter& math)
      : IrPart(ir), lanes_(lanes), math_(math) {}

  // sum + the products in each word of x and y: two of bfloat16, added to a float; four of bytes, to an
  // int32.
  llvm::Value* bf16_dot(llvm::Value* sum, llvm::Value* x, llvm::Value* y);
  llvm::Value* byte_dot(llvm::Value* sum, llvm::Value* x, llvm::Value* y, bool x_unsigned, bool y_unsigned);

 private:
  llvm::Value* dot_instruction(llvm::Intrinsic::ID id, std::vector<llvm::Value*> operands);
  llvm::Value* every_other(llvm::Value* words, int part, bool is_unsigned);
  llvm::Value* neon_byte_dot(llvm::Value* sum, llvm::Value* x, llvm::Value* y, bool x_unsigned,
                             bool y_unsigned);

  const Lanes& lanes_;
  MathEmitter& math_;
};

}  // namespace tuner::codegen
