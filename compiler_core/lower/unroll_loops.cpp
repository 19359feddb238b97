// unroll_loops: writes kUnrolled loops out, one copy of the body an iteration.
#include "compiler_core/arith/meaning.h"
#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/lower.h"

namespace tuner {
namespace {

bool indexes_register(const Stmt& body, const Var& var) {
  bool found = false;
  const auto check = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    if (buffer->scope != MemoryScope::kRegister && buffer->scope != MemoryScope::kFragment) return;
    for (const Expr& index : indices) found = found || uses_var(index, var);
  };
  visit(body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kStore) check(s->buffer, s->indices);
    own_exprs(*s, [&](const Expr& e) {
      visit(e, [&](const Expr& inner) {
        if (inner->kind == ExprKind::kLoad) check(inner->buffer, inner->operands);
      });
    });
  });
  return found;
}

class Unroller {
 public:
  explicit Unroller(int64_t max_stores) : max_stores_(max_stores) {}

  // `ranges`: what the loops and guards around say.
  Stmt run(const Stmt& s, const RangeMap& ranges) {
    if (s == nullptr || overflow_) return s;
    if (written_buffer(*s) != nullptr && ++stores_ > max_stores_) overflow_ = true;
    if (s->kind == StmtKind::kIf) return guarded(s, ranges);
    if (s->kind != StmtKind::kFor)
      return map_children(
          s, [](const Expr& e) { return e; }, [&](const Stmt& c) { return run(c, ranges); });
    const bool unrolled =
        s->loop == LoopKind::kUnrolled || (s->loop == LoopKind::kSerial && indexes_register(s->body, s->var));
    if (!unrolled) {
      RangeMap inside = ranges;
      inside.bind(s->var, s->extent);
      Stmt body = run(s->body, inside);
      if (body == nullptr) return nullptr;
      return body == s->body ? s : with_body(s, body);
    }
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < s->extent && !overflow_; ++i) {
      // Folding at once keeps dead guards of this copy from being counted.
      Stmt copy = simplify(substitute(s->body, {{s->var, Expr(i)}}), ranges);
      if (copy != nullptr) copy = run(copy, ranges);
      if (copy != nullptr) copies.push_back(std::move(copy));
    }
    if (copies.empty()) return nullptr;
    return make_seq(std::move(copies));
  }
  bool overflow() const { return overflow_; }

 private:
  Stmt guarded(const Stmt& s, const RangeMap& ranges) {
    RangeMap inside = ranges;
    inside.assume(s->condition);
    Stmt body = run(s->body, inside);
    Stmt otherwise = s->else_body == nullptr ? nullptr : run(s->else_body, assume_not(s->condition, ranges));
    if (body == s->body && otherwise == s->else_body) return s;
    if (body == nullptr && otherwise == nullptr) return nullptr;
    if (body == nullptr) return make_if(unary(UnaryOp::kNot, s->condition), std::move(otherwise));
    return make_if(s->condition, std::move(body), std::move(otherwise));
  }

  int64_t max_stores_;
  int64_t stores_ = 0;
  bool overflow_ = false;
};

}  // namespace

Result<Program> unroll_loops(const Program& program, int64_t max_stores) {
  Unroller unroller(max_stores);
  Program result = program;
  result.body = unroller.run(program.body, RangeMap());
  if (unroller.overflow())
    return invalid_config(program.name, ": unrolls to more than ", max_stores,
                          " stores; unroll less or choose smaller tiles");
  return result;
}

}  // namespace tuner
