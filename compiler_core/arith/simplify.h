// Arithmetic on index expressions: simplification under known ranges, bounds, substitution.
//
// Indices are int64 sums of coefficient * atom, where an atom is a variable, a floor_div, a floor_mod, a
// min/max... A division by a constant is split into the part that divides and the rest: (o*14 + i)//7 becomes
// o*2 + i//7, and (f*8 + c)%8 with c in [0, 8) becomes c. Comparisons that the ranges decide become
// constants: o*4 + r < n becomes true or false. Values (float expressions) keep their operations in order;
// only the indices inside them change.
//
// Everything here is pure: it has no state, and any thread may call it. It does not fail on a well-formed
// expression; overflow of int64 is not looked for. Unchanged subtrees are shared, not copied.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/ir/expr.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// What is known about variables: their ranges, and conditions that hold at the place of the expression.
class RangeMap {
 public:
  RangeMap() = default;
  void bind(const Var& var, int64_t extent) { bind(var, 0, extent); }  // var in [0, extent)
  // var in [begin, end), which must not be empty (CHECK); a second bind replaces the first.
  void bind(const Var& var, int64_t begin, int64_t end);
  // Assumes that `condition` holds. Conjunctions of comparisons tighten bounds; any other condition is
  // remembered by its structure.
  void assume(const Expr& condition);

  // [min, max] that bind() gave; nothing for other variables. What assume() told of it is in facts().
  std::optional<std::pair<int64_t, int64_t>> range(const VarNode* var) const;

  // min <= sum of coefficient * term <= max.
  struct Fact {
    std::vector<std::pair<Expr, int64_t>> terms;
    int64_t min, max;
  };
  const std::vector<Fact>& facts() const { return facts_; }
  // True if assume() was given this very expression; always_true() also draws conclusions.
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

// Returns `ranges` with what is known where `condition` is false. Of a conjunction nothing is: any of its
// parts may be the false one.
RangeMap assume_not(const Expr& condition, const RangeMap& ranges);

// Returns an equal expression in canonical form. Variables without a range may have any value.
Expr simplify(const Expr& e, const RangeMap& ranges = {});
// Simplifies every expression below `s`. Loops bind their variables, and guards are assumed in their bodies.
// A guard that always holds disappears, and so does a statement that never runs (the result is null if
// nothing is left). Loops stay, even of extent 1.
Stmt simplify(const Stmt& s, const RangeMap& ranges = {});

// Returns the smallest interval [min, max] that this arithmetic can prove; empty if `e` has no bound or is
// not an integer.
std::optional<std::pair<int64_t, int64_t>> const_bounds(const Expr& e, const RangeMap& ranges);
// True if the ranges prove `condition`. False means not proved.
bool always_true(const Expr& condition, const RangeMap& ranges);
// True if e % factor == 0 is proved.
bool divisible(const Expr& e, int64_t factor, const RangeMap& ranges = {});

// Replaces variables by expressions. A loop that binds a replaced variable keeps it, so callers should
// replace free variables only.
using VarMap = std::map<Var, Expr>;
Expr substitute(const Expr& e, const VarMap& values);
Stmt substitute(const Stmt& s, const VarMap& values);
// Replaces loads and stores of buffers by those of other buffers; indices stay, so the ranks must agree.
using BufferMap = std::map<Buffer, Buffer>;
Stmt replace_buffers(const Stmt& s, const BufferMap& buffers);

// The exact form e = sum of coefficient * term + constant, in canonical order. Every integer expression has
// one, as a term may be anything.
struct LinearForm {
  std::vector<std::pair<Expr, int64_t>> terms;  // terms are distinct, coefficients are not 0
  int64_t constant = 0;
};
LinearForm linear_form(const Expr& e, const RangeMap& ranges = {});
Expr to_expr(const LinearForm& form);

// Returns the operands of a conjunction, and joins them again ({} is true).
std::vector<Expr> conjuncts(const Expr& condition);
Expr conjunction(const std::vector<Expr>& conditions);

// True if `var` occurs in e.
bool uses_var(const Expr& e, const Var& var);

// True for the constant 0 of any type, and for casts of it.
bool is_zero(const Expr& e);

}  // namespace tuner
