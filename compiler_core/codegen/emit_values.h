// ValueEmitter: expressions of the Program as LLVM values. They are scalars where all lanes agree, and
// vectors where they differ. Private to codegen.
#pragma once

#include <map>
#include <vector>

#include "compiler_core/codegen/addresses.h"
#include "compiler_core/codegen/emit_math.h"
#include "compiler_core/codegen/emit_scope.h"
#include "compiler_core/codegen/ir_writer.h"
#include "compiler_core/codegen/lanes.h"

namespace tuner::codegen {

// In a tile: loads that were read along the rows and transposed, a vector of lanes for each row.
struct TransposedLoads {
  std::map<const ExprNode*, std::vector<llvm::Value*>> vectors;
  size_t row = 0;                             // that lanes run in
  llvm::Value* find(const Expr& load) const;  // its vector in this row; null: not loaded so
};

// True if all that the body of a vectorized loop stores, from memory, are sums rounded to bytes.
bool rounds_to_bytes(const Stmt& body);

class ValueEmitter : private IrPart {
 public:
  ValueEmitter(IrWriter& ir, Scope& scope, Lanes& lanes, MathEmitter& math, Addresses& addresses,
               const TransposedLoads& transposed)
      : IrPart(ir),
        scope_(scope),
        lanes_(lanes),
        math_(math),
        addresses_(addresses),
        transposed_(transposed) {}

  llvm::Value* emit(const Expr& e);
  llvm::Value* emit_load(const Buffer& buffer, const std::vector<Expr>& indices);

 private:
  // --- emit_load.cpp: which instruction reaches the elements best ---
  using Access = Addresses::Access;
  llvm::Value* emit_every_nth(const Buffer& buffer, const Access& access, llvm::Value* mask);
  llvm::Value* emit_near_one_another(const Buffer& buffer, const Access& access, llvm::Value* mask);

  // --- emit_expr.cpp ---
  llvm::Value* emit_binary(const Expr& e);
  // Null: there is no such operation on these values.
  llvm::Value* emit_float_binary(BinaryOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_int_binary(const Expr& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_index_division(const Expr& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* floor_division(bool quotient, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_data_division(const Expr& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_float_add(const Expr& e);
  llvm::Value* emit_lane_compare(const Expr& e);
  llvm::Value* emit_unary(const Expr& e);
  llvm::Value* emit_select(const Expr& e);
  llvm::Value* emit_cast(DType to, const Expr& e);
  llvm::Value* nearest_int(const Expr& e);
  bool rounds_lanes(const Expr& e) const;  // whether nearest_int applies
  llvm::Value* nearest_ints(llvm::Value* full_vector);
  std::vector<llvm::Value*> full_vectors(llvm::Value* x);
  llvm::Value* saturated_bytes(DType to, const Expr& e);
  llvm::Value* saturated_lanes(const Expr& above, const Expr& zero_point);
  llvm::Value* packed_bytes(DType to, llvm::Value* x, llvm::Value* zero_point);

  Scope& scope_;
  Lanes& lanes_;
  MathEmitter& math_;
  Addresses& addresses_;
  const TransposedLoads& transposed_;
};

}  // namespace tuner::codegen
