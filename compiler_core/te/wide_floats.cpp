#include "compiler_core/te/wide_floats.h"

#include <algorithm>
#include <map>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::te {
namespace {

bool is_narrow(DType t) { return is_float(t) && dtype_bytes(t) == 2; }
Expr widened(const Expr& e) { return is_narrow(e->dtype) ? cast(DType::kFloat32, e) : e; }

class WideFloats {
 public:
  Program run(const Program& program) {
    for (const Buffer& arg : program.args) args_.push_back(arg);
    find_sums(program.body);
    Program result = program;
    result.body = stmt(program.body);
    std::vector<Stmt> all{result.body};
    for (const Buffer& arg : sums_) all.push_back(copy_to(arg, buffers_.at(arg)));
    result.body = make_seq(std::move(all));
    for (const Buffer& arg : sums_) result.body = make_allocate(buffers_.at(arg), result.body);
    return result;
  }

 private:
  bool is_arg(const Buffer& b) const { return std::ranges::find(args_, b) != args_.end(); }

  // Results that are added up where they lie: they get a buffer of their own until the sum is complete.
  void find_sums(const Stmt& body) {
    visit(body, [&](const Stmt& s) {
      if (s->kind != StmtKind::kStore || s->reduce == ReduceOp::kNone || !is_narrow(s->buffer->dtype)) return;
      if (!is_arg(s->buffer) || buffers_.contains(s->buffer)) return;
      auto wide = std::make_shared<BufferNode>(*s->buffer);
      wide->name += ".wide";
      wide->dtype = DType::kFloat32;
      wide->role = BufferRole::kIntermediate;
      buffers_[s->buffer] = std::move(wide);
      sums_.push_back(s->buffer);
    });
  }

  Buffer buffer(const Buffer& old) {
    if (old == nullptr || !is_narrow(old->dtype)) return old;
    if (const auto known = buffers_.find(old); known != buffers_.end()) return known->second;
    if (is_arg(old)) return old;
    auto wide = std::make_shared<BufferNode>(*old);
    wide->dtype = DType::kFloat32;
    return buffers_[old] = std::move(wide);
  }

  // The value in float32 where it was one of 16 bits.
  Expr expr(const Expr& e) {
    if (e->kind == ExprKind::kFloatImm)
      return is_narrow(e->dtype) ? float_imm(e->float_value, DType::kFloat32) : e;
    if (e->operands.empty() && e->kind != ExprKind::kLoad) return e;
    std::vector<Expr> operands;
    for (const Expr& operand : e->operands) operands.push_back(expr(operand));
    switch (e->kind) {
      case ExprKind::kLoad:
        return widened(load(buffer(e->buffer), std::move(operands)));
      case ExprKind::kBinary:
        return binary(e->binary_op, operands[0], operands[1]);
      case ExprKind::kUnary:
        return unary(e->unary_op, operands[0]);
      case ExprKind::kSelect:
        return select(operands[0], operands[1], operands[2]);
      default:
        return widened(operands[0]->dtype == e->dtype ? operands[0] : cast(e->dtype, operands[0]));
    }
  }

  Stmt stmt(const Stmt& s) {
    if (s == nullptr) return s;
    Stmt mapped = map_children(
        s, [&](const Expr& e) { return e.defined() ? expr(e) : e; },
        [&](const Stmt& child) { return stmt(child); });
    if (s->buffer == nullptr) return mapped;
    auto node = std::make_shared<StmtNode>(*mapped);
    node->buffer = buffer(s->buffer);
    if (s->kind == StmtKind::kStore && is_narrow(node->buffer->dtype))
      node->value = cast(node->buffer->dtype, node->value);
    return node;
  }

  static Stmt copy_to(const Buffer& to, const Buffer& from) {
    std::vector<Var> vars;
    std::vector<Expr> place;
    for (size_t d = 0; d < to->shape.size(); ++d) {
      vars.push_back(make_var(str("i", d)));
      place.emplace_back(vars.back());
    }
    Stmt s = make_store(to, place, cast(to->dtype, load(from, place)));
    for (size_t d = vars.size(); d-- > 0;) s = make_for(vars[d], to->shape[d], std::move(s));
    return s;
  }

  std::vector<Buffer> args_, sums_;
  std::map<Buffer, Buffer> buffers_;
};

}  // namespace

Program with_wide_floats(const Program& program) {
  bool any = false;
  visit(program.body,
        [&](const Stmt& s) { any = any || (s->buffer != nullptr && is_narrow(s->buffer->dtype)); });
  visit_exprs(program.body, [&](const Expr& e) { any = any || is_narrow(e->dtype); });
  return any ? WideFloats().run(program) : program;
}

}  // namespace tuner::te
