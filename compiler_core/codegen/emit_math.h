// MathEmitter: arithmetic of floats that is more than one instruction of LLVM, on scalars and vectors alike.
// It knows values, not expressions. Private to codegen.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "compiler_core/codegen/ir_writer.h"
#include "compiler_core/ir/stmt.h"

namespace tuner::codegen {

class MathEmitter : private IrPart {
 public:
  explicit MathEmitter(IrWriter& ir) : IrPart(ir) {}

  // --- emit_math.cpp: functions ---
  llvm::Value* math(UnaryOp op, llvm::Value* x);
  llvm::Value* power(llvm::Value* a, llvm::Value* b);
  llvm::Value* quotient(llvm::Value* x, llvm::Value* d);
  llvm::Value* fused(llvm::Value* a, llvm::Value* b,
                     llvm::Value* c);                    // a * b + c, in one rounding where it can be
  llvm::Value* number(llvm::Value* like, double value);  // in each lane of what is like `like`

  // --- emit_extremes.cpp: maxima and minima, one by one and over lanes ---
  llvm::Value* extreme(bool largest, llvm::Value* a, llvm::Value* b);  // a NaN passes
  llvm::Value* reduced(ReduceOp op, llvm::Value* a, llvm::Value* b);   // a NaN may get lost
  llvm::Value* any_nan(const std::vector<llvm::Value*>& terms);
  llvm::Value* nan_if(llvm::Value* found, llvm::Value* x);
  llvm::Value* reduced_lanes(ReduceOp op, llvm::Value* v);  // of a vector, or the scalar itself

  // --- emit_narrow.cpp: floats of 16 bits, which are held as their bits and computed with in float32 ---
  llvm::Value* narrowed(DType to, llvm::Value* x);   // float32 to bits
  llvm::Value* widened(DType from, llvm::Value* x);  // and back: exact

 private:
  llvm::Value* rounded(llvm::Value* x);
  llvm::Value* tf32(llvm::Value* x);
  llvm::Value* exp32(llvm::Value* x);
  llvm::Value* bounded_exp32(llvm::Value* x);  // of -87 to 88
  // e^x = y * 2^n, 1/2 < y < 2. The low bits of `shifted` hold n.
  struct Power {
    llvm::Value *y, *n, *shifted;
  };
  Power power_of_e(llvm::Value* x);
  bool has_scale(llvm::Value* x) const;  // whether it is a vector that vscalefps takes
  llvm::Value* times_power_of_two(llvm::Value* y, llvm::Value* n, llvm::Value* shifted);
  llvm::Value* log32(llvm::Value* x);
  llvm::Value* tanh32(llvm::Value* x);
  llvm::Value* erf32(llvm::Value* x);
  llvm::Value* horner(llvm::Value* x, std::initializer_list<double> coefficients);  // highest power first
  // A function of doubles of the C library, lane by lane.
  llvm::Value* per_lane_call(const char* symbol, std::span<llvm::Value* const> operands);
  llvm::Value* in_type(llvm::Type* scalar, llvm::Value* x);  // floats, or vectors of them, in this type
  llvm::Value* or_nan_of(llvm::Value* y, llvm::Value* x);
  llvm::Value* first_if_beyond(bool largest, llvm::Value* x, llvm::Value* y);
  llvm::Value* bfloat16_bits(llvm::Value* x);
  llvm::Value* float16_bits(llvm::Value* x);
};

}  // namespace tuner::codegen
