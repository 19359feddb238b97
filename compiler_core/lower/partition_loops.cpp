// partition_loops: decides guards outside the loops that would otherwise test them again and again.
//
//   for o in 0..3                            for o in 0..3
//     for r in 0..8                            if (o <= 1)
//       if (o*8 + r < 20)                        for r in 0..8: body(o*8 + r)
//         body(o*8 + r)                        else
//                                                for r in 0..4: body(16 + r)
//
// What does not depend on the guard is not written twice: the choice stands as far in as it costs nothing.
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

#include "compiler_core/arith/meaning.h"
#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/lower.h"

namespace tuner {
namespace {

bool is_written_out(LoopKind kind) { return kind == LoopKind::kUnrolled || kind == LoopKind::kVectorRows; }

// Stores that stand in `s` once unrolled; guards are taken to hold.
int64_t unrolled_stores(const Stmt& s) {
  if (s == nullptr) return 0;
  if (written_buffer(*s) != nullptr) return 1;
  int64_t n = unrolled_stores(s->body) + unrolled_stores(s->else_body);
  for (const Stmt& child : s->stmts) n += unrolled_stores(child);
  return s->kind == StmtKind::kFor && is_written_out(s->loop) ? n * s->extent : n;
}

// Stores that a test may stand in front of without being felt: a store is one or two cycles, and so is a
// test. One of a tile that is transposed counts for two, as there are four shuffles to it; not where sums in
// registers are written out: a guard decided before them tells which sums need not be made.
constexpr int64_t kWorkPerTest = 32;

bool reads_registers(const Stmt& s) {
  bool found = false;
  visit_exprs(s, [&](const Expr& e) {
    found |= e->kind == ExprKind::kLoad && e->buffer->scope == MemoryScope::kRegister;
  });
  return found;
}

// Vector stores that run in `s`, as far as kWorkPerTest; guards are taken to hold.
int64_t work(const Stmt& s) {
  if (s == nullptr) return 0;
  if (written_buffer(*s) != nullptr) return 1;
  int64_t n = work(s->body) + work(s->else_body);
  for (const Stmt& child : s->stmts) n += work(child);
  if (s->kind == StmtKind::kFor && s->loop == LoopKind::kVectorRows && !reads_registers(s)) n *= 2;
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
    Stmt body = run(divisible_loop && s->extent > 1 ? versions(s->body, s->var, inside) : s->body, inside);
    if (body == nullptr) return nullptr;
    return body == s->body ? s : with_body(s, body);
  }

  // The body of the loop over `var`, written once for each way its guards come out.
  Stmt versions(const Stmt& body, const Var& var, const RangeMap& ranges) {
    if (unrolled_stores(body) > budget_) return body;
    const std::optional<Split> split = find_split(body, var, ranges);
    if (!split) return body;
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
    const Stmt most = simplify(body, when_common);
    const Stmt rest = simplify(replace(body, split->number, Expr(odd)), when_odd);
    Cases cases{var, split->number, common, binary(BinaryOp::kEq, split->number, Expr(odd)), {}};
    return choose(cases, {body, ranges}, {most, when_common}, {rest, when_odd});
  }

  struct InnerLoop {  // between a loop and a guard in its body: iteration numbers may not use its variable
    Var var;
    bool tests_are_free;  // serial, with kWorkPerTest in its body
  };
  static InnerLoop inner_loop(const StmtNode& s) {
    return {s.var, s.loop == LoopKind::kSerial && work(s.body) >= kWorkPerTest};
  }
  // Two cases of an iteration number of the loop over `var`.
  struct Cases {
    Var var;
    Expr number, common, odd;      // `common` or `odd` holds
    std::vector<InnerLoop> inner;  // loops gone into since
  };
  struct Version {
    Stmt body;
    RangeMap ranges;
  };

  // Whether a guard in `plain` is what the cases are told apart for.
  static bool concerns(const Cases& cases, const Stmt& plain, const RangeMap& ranges) {
    return plain != nullptr && find_split(plain, cases.var, ranges, cases.inner, &cases.number).has_value();
  }

  // `most` where common holds, `rest` where it does not; `plain` is right in both. The choice is made as far
  // in as it costs nothing, so that only what differs stands twice: of statements in sequence the one that it
  // concerns, of a serial loop with kWorkPerTest in its body that body.
  Stmt choose(Cases& cases, Version plain, Version most, Version rest) {
    if (plain.body == nullptr) return nullptr;
    if (shares(cases, plain, most.body, rest.body)) return choose_inside(cases, plain, most, rest);
    budget_ -= std::min(unrolled_stores(most.body), unrolled_stores(rest.body));
    Stmt on_most = most.body == nullptr ? nullptr : versions(most.body, cases.var, most.ranges);
    Stmt on_rest = rest.body == nullptr ? nullptr : versions(rest.body, cases.var, rest.ranges);
    if (on_most == nullptr && on_rest == nullptr) return nullptr;
    if (on_most == nullptr) return make_if(cases.odd, on_rest);
    return make_if(cases.common, on_most, on_rest);
  }
  Stmt choose_if_concerned(Cases& cases, Version plain, Version most, Version rest) {
    if (!concerns(cases, plain.body, plain.ranges)) return plain.body;
    return choose(cases, std::move(plain), std::move(most), std::move(rest));
  }

  // Whether some of `plain` would stand once if the choice were made further in, and no test in front of
  // little.
  static bool shares(Cases& cases, const Version& plain, const Stmt& most, const Stmt& rest) {
    if (plain.body == nullptr || most == nullptr || rest == nullptr) return false;
    const StmtNode &p = *plain.body, &m = *most, &r = *rest;
    if (m.kind != p.kind || r.kind != p.kind) return false;
    switch (p.kind) {
      case StmtKind::kSeq: {
        const size_t n = p.stmts.size();
        if (m.stmts.size() != n || r.stmts.size() != n) return false;
        size_t concerned = 0, parts = 0;
        bool all_long = true;
        for (size_t i = 0; i < n; ++i) {
          if (!concerns(cases, p.stmts[i], plain.ranges)) continue;
          ++concerned;
          all_long &= work(p.stmts[i]) >= kWorkPerTest;
          parts += shares(cases, {p.stmts[i], plain.ranges}, m.stmts[i], r.stmts[i]) ? 1 : 0;
        }
        return (concerned < n || parts > 0) && (concerned == 1 || all_long);
      }
      case StmtKind::kAllocate:
        // Values in registers would have to be brought to the same place after the choice.
        return p.buffer->scope != MemoryScope::kRegister &&
               shares(cases, {p.body, plain.ranges}, m.body, r.body);
      case StmtKind::kFor: {
        if (p.loop != LoopKind::kSerial || work(p.body) < kWorkPerTest || m.extent != p.extent ||
            r.extent != p.extent)
          return false;
        Version body{p.body, plain.ranges};
        body.ranges.bind(p.var, p.extent);
        cases.inner.push_back(inner_loop(p));
        const bool found = shares(cases, body, m.body, r.body);
        cases.inner.pop_back();
        return found;
      }
      default:
        return false;
    }
  }

  Stmt choose_inside(Cases& cases, Version& plain, Version& most, Version& rest) {
    const StmtNode &p = *plain.body, &m = *most.body, &r = *rest.body;
    if (p.kind == StmtKind::kSeq) {
      std::vector<Stmt> stmts;
      for (size_t i = 0; i < p.stmts.size(); ++i)
        stmts.push_back(choose_if_concerned(cases, {p.stmts[i], plain.ranges}, {m.stmts[i], most.ranges},
                                            {r.stmts[i], rest.ranges}));
      return make_seq(std::move(stmts));
    }
    if (p.kind == StmtKind::kFor) {
      for (Version* version : {&plain, &most, &rest}) version->ranges.bind(p.var, p.extent);
      cases.inner.push_back(inner_loop(p));
    }
    Stmt body =
        choose_if_concerned(cases, {p.body, plain.ranges}, {m.body, most.ranges}, {r.body, rest.ranges});
    if (p.kind == StmtKind::kFor) cases.inner.pop_back();
    return body == nullptr ? nullptr : with_body(plain.body, std::move(body));
  }

  // Iterations set apart at one end: the padding of a convolution reaches that far into it.
  static constexpr int64_t kMostSetApart = 6;

  struct Split {
    Expr number;  // the iteration number
    int64_t low, high;
    bool odd_is_last;
  };

  // A guard in `body` that is settled by setting one iteration number of `var` apart. `only`: the number;
  // `inner`: loops between that of `var` and `body`.
  static std::optional<Split> find_split(const Stmt& body, const Var& var, const RangeMap& ranges,
                                         std::vector<InnerLoop> inner = {}, const Expr* only = nullptr) {
    std::optional<Split> found;
    const std::function<void(const Stmt&, const RangeMap&)> search = [&](const Stmt& s,
                                                                         const RangeMap& known) {
      if (s == nullptr || found) return;
      if (s->kind == StmtKind::kFor) {
        RangeMap inside = known;
        inside.bind(s->var, s->extent);
        inner.push_back(inner_loop(*s));
        search(s->body, inside);
        inner.pop_back();
        return;
      }
      if (s->kind == StmtKind::kIf) {
        const bool rarely_asked = work(s->body) + work(s->else_body) >= kWorkPerTest;
        for (const Expr& c : conjuncts(s->condition)) {
          if (found || rarely_asked || !uses_var(c, var)) continue;
          found = split_for(c, var, inner, ranges, known);
          if (found && only != nullptr && !equal(found->number, *only)) found.reset();
        }
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
