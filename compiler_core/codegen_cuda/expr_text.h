// Expressions as CUDA C++.
//
// Index arithmetic is 32-bit int. Division and remainder print as / and % where the ranges prove both
// operands non-negative (C truncates, the IR floors: they agree there), else as index_div and index_mod, the
// floor versions, which the caller then has to define (uses_floor_helpers()).
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/codegen_cuda/names.h"
#include "compiler_core/ir/expr.h"

namespace tuner::cuda {

// "float", "int", "long long"...; of float16 and bfloat16 the bits: "unsigned short".
std::string_view c_type(DType dtype);
// 1.5f, -__int_as_float(0x7f800000), 3, true: a constant of this type.
std::string constant_text(double value, DType dtype);

class ExprText {
 public:
  explicit ExprText(const Names& names) : names_(names) {}

  // e where `ranges` hold.
  std::string value(const Expr& e, const RangeMap& ranges);
  // "a[row * 512 + col]": an element of memory or of a register array. The offset is 64-bit when the buffer
  // has 2^31 elements or more.
  std::string element(const Buffer& buffer, const std::vector<Expr>& indices, const RangeMap& ranges);
  // An index or a sum of indices, 64-bit when it may leave the range of int.
  std::string index(const Expr& e, const RangeMap& ranges);

  // A load of `buffer`[lane] prints as NAME.x .. NAME.w: a vector that was loaded whole.
  void name_vector(const Buffer& buffer) { vectors_.insert(buffer.get()); }

  // What equals `e` prints as `name`, a variable of the text, until forget(e).
  void alias(const Expr& e, const std::string& name) { aliases_.emplace_back(e, name); }
  void forget(const Expr& e);

  // `var` is declared as a 64-bit integer.
  void is_wide(const Var& var) { wide_vars_.insert(var.get()); }

  bool uses_floor_helpers() const { return uses_floor_helpers_; }
  bool uses_half_helpers() const { return uses_half_helpers_; }

 private:
  enum Level { kLoose, kSelectLevel, kOr, kAnd, kXor, kEquality, kCompare, kSum, kProduct, kUnary, kAtom };
  std::string text(const Expr& e, const RangeMap& ranges, Level place);
  std::string binary_text(const Expr& e, const RangeMap& ranges, Level place);
  std::string division(const Expr& e, const RangeMap& ranges, Level place);
  std::string minmax(const Expr& e, const RangeMap& ranges);
  std::string unary_text(const Expr& e, const RangeMap& ranges);
  std::string select_text(const Expr& e, const RangeMap& ranges, Level place);
  std::string cast_text(const Expr& e, const RangeMap& ranges);

  const Names& names_;
  std::set<const BufferNode*> vectors_;
  std::set<const VarNode*> wide_vars_;
  std::vector<std::pair<Expr, std::string>> aliases_;
  bool wide_ = false;
  bool uses_floor_helpers_ = false, uses_half_helpers_ = false;
};

}  // namespace tuner::cuda
