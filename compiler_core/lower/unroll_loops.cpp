// unroll_loops: writes kUnrolled loops out, one copy of the body an iteration.
#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/lower.h"

namespace tuner {
namespace {

bool indexes_register(const Stmt& body, const Var& var) {
  bool found = false;
  const auto check = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    if (buffer->scope != MemoryScope::kRegister) return;
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

  Stmt run(const Stmt& s) {
    if (s == nullptr || overflow_) return s;
    if (s->kind == StmtKind::kStore && ++stores_ > max_stores_) overflow_ = true;
    if (s->kind != StmtKind::kFor)
      return map_children(
          s, [](const Expr& e) { return e; }, [&](const Stmt& c) { return run(c); });
    const bool unrolled =
        s->loop == LoopKind::kUnrolled || (s->loop == LoopKind::kSerial && indexes_register(s->body, s->var));
    if (!unrolled) {
      Stmt body = run(s->body);
      if (body == nullptr) return nullptr;
      return body == s->body ? s : with_body(s, body);
    }
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < s->extent && !overflow_; ++i) {
      // Folding at once keeps dead guards of this copy from being counted.
      Stmt copy = simplify(substitute(s->body, {{s->var, Expr(i)}}), ranges_);
      if (copy != nullptr) copy = run(copy);
      if (copy != nullptr) copies.push_back(std::move(copy));
    }
    if (copies.empty()) return nullptr;
    return make_seq(std::move(copies));
  }
  bool overflow() const { return overflow_; }

 private:
  int64_t max_stores_;
  int64_t stores_ = 0;
  bool overflow_ = false;
  RangeMap ranges_;
};

}  // namespace

Result<Program> unroll_loops(const Program& program, int64_t max_stores) {
  Unroller unroller(max_stores);
  Program result = program;
  result.body = unroller.run(program.body);
  if (unroller.overflow())
    return invalid_config(program.name, ": unrolls to more than ", max_stores,
                          " stores; unroll less or choose smaller tiles");
  return result;
}

}  // namespace tuner
