#include "compiler_core/analysis/in_place.h"

#include <algorithm>
#include <set>
#include <vector>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

// What follows from known values of expressions. Values are found from the outside in: a sum whose steps do
// not overlap tells each of its terms; the quotient and the remainder of a number tell the number.
class Known {
 public:
  explicit Known(const RangeMap& ranges) : ranges_(ranges) {}

  void add(const Expr& value) {
    LinearForm form = linear_form(simplify(value, ranges_), ranges_);
    std::vector<Term> terms;
    for (const auto& [atom, coefficient] : form.terms) {
      const auto bounds = const_bounds(atom, ranges_);
      if (!bounds.has_value()) return;
      if (bounds->first != bounds->second)
        terms.push_back({atom, std::abs(coefficient), bounds->second - bounds->first});
    }
    std::ranges::sort(terms, {}, &Term::step);
    int64_t reached = 0;  // by the terms of smaller steps together
    for (const Term& term : terms) {
      if (term.step <= reached) return;
      reached += term.step * term.spread;
    }
    for (const Term& term : terms) add_atom(term.atom);
  }

  bool has(const Var& var) const { return vars_.contains(var.get()); }

 private:
  struct Term {
    Expr atom;
    int64_t step, spread;  // of its values: spread + 1 of them
  };
  // The digit of `number` whose units are `low`, and below `high`: number % high // low.
  struct Digit {
    Expr number;
    int64_t low, high;
  };

  void add_atom(const Expr& atom) {
    if (atom->kind == ExprKind::kVar) {
      vars_.insert(atom->var.get());
      return;
    }
    Digit digit = digit_of(atom);
    const auto bounds = const_bounds(digit.number, ranges_);
    if (digit.number.same_as(atom) || !bounds.has_value() || bounds->first < 0) return;
    digits_.push_back(digit);
    // All digits of the number, from the lowest on.
    int64_t told = 1;
    for (bool grows = true; grows && told <= bounds->second;) {
      grows = false;
      for (const Digit& d : digits_)
        if (equal(d.number, digit.number) && d.low <= told && d.high > told) told = d.high, grows = true;
    }
    if (told > bounds->second) add(digit.number);
  }

  Digit digit_of(const Expr& e) const {
    const Digit whole{e, 1, INT64_MAX};
    int64_t c = 0;
    if (e->kind != ExprKind::kBinary || !is_const_int(e->operands[1], &c) || c <= 0) return whole;
    const bool quotient = e->binary_op == BinaryOp::kFloorDiv;
    if (!quotient && e->binary_op != BinaryOp::kFloorMod) return whole;
    Digit of = digit_of(e->operands[0]);
    const bool ends = of.high == INT64_MAX;
    if (!ends && of.high % (of.low * c) != 0) return whole;
    if (quotient)
      of.low *= c;
    else
      of.high = of.low * c;
    return of;
  }

  const RangeMap& ranges_;
  std::set<const VarNode*> vars_;
  std::vector<Digit> digits_;
};

struct Store {
  Stmt stmt;
  std::vector<Var> loops;  // around, outermost first
  RangeMap ranges;         // of their variables, where the guards around hold
};

void find_stores(const Stmt& s, const Buffer& buffer, const Store& around, std::vector<Store>& found) {
  if (s == nullptr) return;
  Store inside = around, otherwise = around;
  if (s->kind == StmtKind::kStore && s->buffer == buffer) found.push_back({s, around.loops, around.ranges});
  if (s->kind == StmtKind::kFor) {
    inside.loops.push_back(s->var);
    inside.ranges.bind(s->var, s->extent);
  } else if (s->kind == StmtKind::kIf) {
    inside.ranges.assume(s->condition);
    otherwise.ranges = assume_not(s->condition, around.ranges);
  }
  find_stores(s->body, buffer, inside, found);
  find_stores(s->else_body, buffer, otherwise, found);
  for (const Stmt& child : s->stmts) find_stores(child, buffer, around, found);
}

int64_t count_loads(const Stmt& body, const Buffer& buffer) {
  int64_t n = 0;
  visit_exprs(body, [&](const Expr& e) { n += e->kind == ExprKind::kLoad && e->buffer == buffer ? 1 : 0; });
  return n;
}

Status check(const Stmt& body, const Buffer& buffer) {
  const auto refuse = [&](const auto&... found) {
    return invalid_config(
        buffer->name, " holds what it is added to: one statement must read each element and store it, once; ",
        found...);
  };
  std::vector<Store> stores;
  find_stores(body, buffer, {}, stores);
  if (stores.size() != 1) return refuse("found ", stores.size(), " statements that store it");
  const StmtNode& store = *stores[0].stmt;
  if (store.reduce != ReduceOp::kNone) return refuse("found sums that are kept in it");
  int64_t own = 0;
  bool same = true;
  visit(store.value, [&](const Expr& e) {
    if (e->kind != ExprKind::kLoad || e->buffer != buffer) return;
    ++own;
    same = same && std::ranges::equal(e->operands, store.indices, equal);
  });
  if (!same) return refuse("found a read of another element in ", to_text(stores[0].stmt));
  if (own != count_loads(body, buffer)) return refuse("found a read of it in another statement");

  const RangeMap& ranges = stores[0].ranges;
  Known known(ranges);
  for (const Expr& index : store.indices) known.add(index);
  for (const Var& loop : stores[0].loops) {
    const auto bounds = const_bounds(loop, ranges);
    const bool once = bounds.has_value() && bounds->first == bounds->second;
    if (!once && !known.has(loop))
      return refuse("found that iterations of ", loop->name, " may store an element again");
  }
  return Status::ok();
}

}  // namespace

Status check_in_place(const Program& program) {
  const bool any =
      std::ranges::any_of(program.args, [](const Buffer& b) { return b->role == BufferRole::kInOut; });
  if (!any) return Status::ok();
  const Stmt body = with_meanings(program.body);
  for (const Buffer& buffer : program.args)
    if (buffer->role == BufferRole::kInOut) RETURN_IF_ERROR(check(body, buffer));
  return Status::ok();
}

}  // namespace tuner
