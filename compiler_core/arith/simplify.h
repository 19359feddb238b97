// Arithmetic on index expressions: simplification under known ranges, bounds, substitution.
//
// Indices are int64 sums of coefficient * atom, where an atom is a variable, a floor_div, a floor_mod, a
// min/max... A division by a constant is split into what divides and what does not, so that (o*14 + i)//7 is
// o*2 + i//7 and (f*8 + c)%8 with c in [0, 8) is c. Comparisons that the ranges decide become constants: o*4
// + r < n is true or false. Values (float expressions) keep their operations in order; only the indices
// inside them change.
//
// Everything here is pure: no state, callable from any thread. Subtrees that do not change are shared, not
// copied.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/ir/expr.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// What is known of variables: their ranges, and conditions that hold where the expression stands.
class RangeMap {
 public:
  RangeMap() = default;
  void bind(const Var& var, int64_t extent) { bind(var, 0, extent); }  // var in [0, extent)
  void bind(const Var& var, int64_t begin,
            int64_t end);  // var in [begin, end); a second bind replaces the first
  // `condition` holds. Conjunctions of comparisons tighten bounds; anything else is remembered by its
  // structure.
  void assume(const Expr& condition);

  // [min, max], both reached or not; empty when the variable is unknown.
  std::optional<std::pair<int64_t, int64_t>> range(const VarNode* var) const;

  // min <= sum of coefficient * term <= max.
  struct Fact {
    std::vector<std::pair<Expr, int64_t>> terms;
    int64_t min, max;
  };
  const std::vector<Fact>& facts() const { return facts_; }
  bool assumed(const Expr& condition) const;

 private:
  struct Range {
    const VarNode* var;
    int64_t min, max;
  };
  std::vector<Range> ranges_;
  std::vector<Fact> facts_;
  std::vector<Expr> assumed_;
};

// What is known where `condition` fails besides `ranges`: nothing more when it is a conjunction.
RangeMap assume_not(const Expr& condition, const RangeMap& ranges);

// An equal expression in canonical form. Variables without a range may hold anything.
Expr simplify(const Expr& e, const RangeMap& ranges = {});
// Simplifies every expression below `s`; loops bind their variables and guards are assumed in their bodies. A
// guard that always holds disappears, a statement that never runs too (the result is null when nothing is
// left). Loops stay, even of extent 1.
Stmt simplify(const Stmt& s, const RangeMap& ranges = {});

// Smallest interval [min, max] that this arithmetic can prove; empty when it has no bound or is not an
// integer.
std::optional<std::pair<int64_t, int64_t>> const_bounds(const Expr& e, const RangeMap& ranges);
// True when `condition` is proved by the ranges. False means not proved.
bool always_true(const Expr& condition, const RangeMap& ranges);
// True when e % factor == 0 is proved.
bool divisible(const Expr& e, int64_t factor, const RangeMap& ranges = {});

// Replaces variables by expressions. Loops that bind a replaced variable keep it: callers replace free
// variables.
using VarMap = std::map<Var, Expr>;
Expr substitute(const Expr& e, const VarMap& values);
Stmt substitute(const Stmt& s, const VarMap& values);
// Replaces loads and stores of buffers by those of other buffers of the same shape rank (indices stay).
using BufferMap = std::map<Buffer, Buffer>;
Stmt replace_buffers(const Stmt& s, const BufferMap& buffers);

// e = sum of coefficient * term + constant, in canonical order. Every integer expression has such a form (a
// term may be anything); it is exact.
struct LinearForm {
  std::vector<std::pair<Expr, int64_t>> terms;  // terms are distinct, coefficients are not 0
  int64_t constant = 0;
};
LinearForm linear_form(const Expr& e, const RangeMap& ranges = {});
Expr to_expr(const LinearForm& form);

// The operands of a conjunction, and back ({} is true).
std::vector<Expr> conjuncts(const Expr& condition);
Expr conjunction(const std::vector<Expr>& conditions);

// True when `var` occurs in e.
bool uses_var(const Expr& e, const Var& var);

}  // namespace tuner
