// partition_loops: decides guards outside the loops that would otherwise test them again and again.
//
//   for o in 0..3                            for o in 0..3
//     for r in 0..8                            if (o <= 1)
//       if (o*8 + r < 20)                        for r in 0..8: body(o*8 + r)
//         body(o*8 + r)                        else
//                                                for r in 0..4: body(16 + r)
//
// An *iteration number* is a loop variable, a quotient or remainder of one (a fused axis taken apart), or
// what a guard asks of this loop and the loops around it, such as o*8 + k. A guard is worth deciding when it
// is settled for all iteration numbers but the last few, or all but the first few: these are set apart one by
// one.
//
// A test in front of much work costs nothing, copies of that work do: a guard is decided no further out than
// at the innermost serial loop where it stands in front of kWorkPerTest stores, and one that does so itself
// stays.
#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/lower.h"

namespace tuner {
namespace {

bool is_written_out(LoopKind kind) { return kind == LoopKind::kUnrolled || kind == LoopKind::kVectorRows; }

// Stores that stand in `s` once unrolled; guards are taken to hold.
int64_t unrolled_stores(const Stmt& s) {
  if (s == nullptr) return 0;
  if (s->kind == StmtKind::kStore) return 1;
  int64_t n = unrolled_stores(s->body) + unrolled_stores(s->else_body);
  for (const Stmt& child : s->stmts) n += unrolled_stores(child);
  return s->kind == StmtKind::kFor && is_written_out(s->loop) ? n * s->extent : n;
}

// Stores that a test may stand in front of without being felt: a store is one or two cycles, and so is a
// test.
constexpr int64_t kWorkPerTest = 32;

// Vector stores that run in `s`, as far as kWorkPerTest; guards are taken to hold.
int64_t work(const Stmt& s) {
  if (s == nullptr) return 0;
  if (s->kind == StmtKind::kStore) return 1;
  int64_t n = work(s->body) + work(s->else_body);
  for (const Stmt& child : s->stmts) n += work(child);
  const bool repeats = s->kind == StmtKind::kFor && s->loop != LoopKind::kVectorized;
  return std::min(repeats ? n * s->extent : n, kWorkPerTest);
}

// The smallest bound b such that nothing in `s` runs with var >= b; `extent` when that is not known. `inner`:
// the loops between.
int64_t live_extent(const Stmt& s, const Var& var, int64_t extent, const RangeMap& inner = {}) {
  switch (s->kind) {
    case StmtKind::kFor: {
      RangeMap below = inner;
      below.bind(s->var, s->extent);
      return live_extent(s->body, var, extent, below);
    }
    case StmtKind::kAllocate:
      return live_extent(s->body, var, extent, inner);
    case StmtKind::kSeq: {
      int64_t most = 0;
      for (const Stmt& child : s->stmts) most = std::max(most, live_extent(child, var, extent, inner));
      return most;
    }
    case StmtKind::kIf: {
      if (s->else_body != nullptr)
        return std::max(live_extent(s->body, var, extent, inner),
                        live_extent(s->else_body, var, extent, inner));
      int64_t most = live_extent(s->body, var, extent, inner);
      for (const Expr& c : conjuncts(s->condition)) {
        // Shrinks while the conjunct is false at the last iteration left, whatever else holds.
        while (most > 0) {
          RangeMap last = inner;
          last.bind(var, most - 1, most);
          if (!always_true(simplify(unary(UnaryOp::kNot, c), last), last)) {
            const Expr at_last = simplify(substitute(c, {{var, Expr(most - 1)}}));
            int64_t value = 1;
            if (!is_const_int(at_last, &value) || value != 0) break;
          }
          --most;
        }
      }
      return most;
    }
    default:
      return extent;
  }
}

class Partitioner {
 public:
  explicit Partitioner(int64_t budget) : budget_(budget) {}

  Stmt run(const Stmt& s, const RangeMap& ranges) {
    if (s == nullptr) return s;
    const auto same = [](const Expr& e) { return e; };
    switch (s->kind) {
      case StmtKind::kFor:
        return loop(s, ranges);
      case StmtKind::kIf: {
        RangeMap inside = ranges;
        inside.assume(s->condition);
        Stmt body = run(s->body, inside);
        Stmt otherwise = run(s->else_body, assume_not(s->condition, ranges));
        if (body == s->body && otherwise == s->else_body) return s;
        if (body == nullptr && otherwise == nullptr) return nullptr;
        if (body == nullptr) return make_if(unary(UnaryOp::kNot, s->condition), otherwise);
        return make_if(s->condition, body, otherwise);
      }
      default:
        return map_children(s, same, [&](const Stmt& child) { return run(child, ranges); });
    }
  }

 private:
  Stmt loop(const Stmt& s, const RangeMap& ranges) {
    RangeMap inside = ranges;
    inside.bind(s->var, s->extent);
    const bool divisible_loop = s->loop == LoopKind::kSerial || s->loop == LoopKind::kParallel;
    if (divisible_loop || s->loop == LoopKind::kUnrolled || s->loop == LoopKind::kDot) {
      const int64_t live = live_extent(s->body, s->var, s->extent);
      if (live == 0) return nullptr;
      if (live < s->extent) {
        inside.bind(s->var, live);
        Stmt body = simplify(s->body, inside);
        return body == nullptr ? nullptr : loop(make_for(s->var, live, body, s->axis, s->loop), ranges);
      }
    }
    Stmt body = divisible_loop && s->extent > 1 ? versions(s->body, s->var, inside) : run(s->body, inside);
    if (body == nullptr) return nullptr;
    return body == s->body ? s : with_body(s, body);
  }

  // The body of the loop over `var`, written once for each way its guards come out.
  Stmt versions(const Stmt& body, const Var& var, const RangeMap& ranges) {
    const int64_t size = unrolled_stores(body);
    if (size <= budget_) {
      if (const std::optional<Split> split = find_split(body, var, ranges)) {
        budget_ -= size;
        const Expr common = split->odd_is_last ? binary(BinaryOp::kLe, split->number, Expr(split->high - 1))
                                               : binary(BinaryOp::kGe, split->number, Expr(split->low + 1));
        const int64_t odd = split->odd_is_last ? split->high : split->low;
        RangeMap when_common = ranges, when_odd = ranges;
        when_common.assume(common);
        when_odd.assume(binary(BinaryOp::kEq, split->number, Expr(odd)));
        if (split->number->kind == ExprKind::kVar) {
          split->odd_is_last ? when_common.bind(var, split->low, split->high)
                             : when_common.bind(var, split->low + 1, split->high + 1);
          when_odd.bind(var, odd, odd + 1);
        }
        Stmt most = simplify(body, when_common);
        Stmt rest = simplify(replace(body, split->number, Expr(odd)), when_odd);
        if (most != nullptr) most = versions(most, var, when_common);
        if (rest != nullptr) rest = versions(rest, var, when_odd);
        if (most == nullptr && rest == nullptr) return nullptr;
        if (most == nullptr) return make_if(binary(BinaryOp::kEq, split->number, Expr(odd)), rest);
        return make_if(common, most, rest);
      }
    }
    return run(body, ranges);
  }

  struct InnerLoop {  // between a loop and a guard in its body: iteration numbers may not use its variable
    Var var;
    bool tests_are_free;  // serial, with kWorkPerTest in its body
  };
  // Iterations set apart at one end: the padding of a convolution reaches that far into it.
  static constexpr int64_t kMostSetApart = 6;

  struct Split {
    Expr number;  // the iteration number
    int64_t low, high;
    bool odd_is_last;
  };

  // A guard in `body` that is settled by setting one iteration number of `var` apart.
  std::optional<Split> find_split(const Stmt& body, const Var& var, const RangeMap& ranges) {
    std::optional<Split> found;
    std::vector<InnerLoop> inner;
    const std::function<void(const Stmt&, const RangeMap&)> search = [&](const Stmt& s,
                                                                         const RangeMap& known) {
      if (s == nullptr || found) return;
      if (s->kind == StmtKind::kFor) {
        RangeMap inside = known;
        inside.bind(s->var, s->extent);
        inner.push_back({s->var, s->loop == LoopKind::kSerial && work(s->body) >= kWorkPerTest});
        search(s->body, inside);
        inner.pop_back();
        return;
      }
      if (s->kind == StmtKind::kIf) {
        const bool rarely_asked = work(s->body) + work(s->else_body) >= kWorkPerTest;
        for (const Expr& c : conjuncts(s->condition))
          if (!found && !rarely_asked && uses_var(c, var)) found = split_for(c, var, inner, ranges, known);
        RangeMap inside = known;
        inside.assume(s->condition);
        search(s->body, inside);
        search(s->else_body, assume_not(s->condition, known));
        return;
      }
      search(s->body, known);
      for (const Stmt& child : s->stmts) search(child, known);
    };
    search(body, ranges);
    return found;
  }

  static bool settled(const Expr& c, const RangeMap& ranges) {
    return always_true(c, ranges) || always_true(simplify(unary(UnaryOp::kNot, c), ranges), ranges);
  }

  // The iteration numbers of `var` in c, the best one first.
  static std::vector<Expr> numbers(const Expr& c, const Var& var, const std::vector<InnerLoop>& inner,
                                   const RangeMap& ranges) {
    const auto is_inner = [&](const Expr& e) {
      return std::any_of(inner.begin(), inner.end(), [&](const InnerLoop& l) { return uses_var(e, l.var); });
    };
    std::vector<Expr> found;
    if (c->kind == ExprKind::kBinary && c->operands[0]->dtype == DType::kInt64) {
      LinearForm form = linear_form(c->operands[0] - c->operands[1], ranges);
      form.constant = 0;
      std::erase_if(form.terms, [&](const auto& term) { return is_inner(term.first); });
      const bool has_var = std::any_of(form.terms.begin(), form.terms.end(),
                                       [&](const auto& term) { return uses_var(term.first, var); });
      if (has_var && form.terms.size() > 1) {
        int64_t unit = 0;  // without it there would be numbers that no iteration has
        for (const auto& term : form.terms) unit = std::gcd(unit, term.second);
        if (form.terms.front().second < 0) unit = -unit;
        for (auto& term : form.terms) term.second /= unit;
        found.push_back(to_expr(form));
        // Set apart already: taking the sum to pieces would lose what is known of it.
        const auto bounds = const_bounds(found.back(), ranges);
        if (bounds && bounds->first == bounds->second) return {};
      }
    }
    visit(c, [&](const Expr& e) {
      const bool is_var = e->kind == ExprKind::kVar && e->var == var;
      const bool is_part = e->kind == ExprKind::kBinary && uses_var(e, var) &&
                           (e->binary_op == BinaryOp::kFloorDiv || e->binary_op == BinaryOp::kFloorMod);
      if ((is_var || is_part) && !is_inner(e)) found.push_back(e);
    });
    return found;
  }

  // `ranges` hold at the loop, where the iterations are told apart; `known` at the guard.
  static std::optional<Split> split_for(const Expr& c, const Var& var, const std::vector<InnerLoop>& inner,
                                        const RangeMap& ranges, const RangeMap& known) {
    if (settled(c, known)) return std::nullopt;
    for (const InnerLoop& loop : inner)
      if (loop.tests_are_free && uses_var(c, loop.var)) return std::nullopt;
    for (const Expr& e : numbers(c, var, inner, ranges)) {
      const auto bounds = const_bounds(e, ranges);
      if (!bounds || bounds->first >= bounds->second) continue;
      const auto [low, high] = *bounds;
      for (int64_t apart = 1; apart <= std::min(kMostSetApart, high - low); ++apart)
        for (const bool odd_is_last : {true, false}) {
          RangeMap common = known;
          common.assume(odd_is_last ? binary(BinaryOp::kLe, e, Expr(high - apart))
                                    : binary(BinaryOp::kGe, e, Expr(low + apart)));
          if (e->kind == ExprKind::kVar)
            odd_is_last ? common.bind(var, low, high - apart + 1) : common.bind(var, low + apart, high + 1);
          if (settled(c, common)) return Split{e, low, high, odd_is_last};
        }
    }
    return std::nullopt;
  }

  static Expr replace(const Expr& e, const Expr& number, const Expr& value) {
    if (equal(e, number)) return value;
    return map_children(e, [&](const Expr& child) { return replace(child, number, value); });
  }
  static Stmt replace(const Stmt& s, const Expr& number, const Expr& value) {
    return map_children(
        s, [&](const Expr& e) { return replace(e, number, value); },
        [&](const Stmt& child) { return replace(child, number, value); });
  }

  int64_t budget_;
};

}  // namespace

Program partition_loops(const Program& program, int64_t max_stores) {
  Program result = program;
  if (program.body != nullptr)
    result.body = Partitioner(max_stores - unrolled_stores(program.body)).run(program.body, RangeMap());
  return result;
}

}  // namespace tuner
