#include "compiler_core/emulator/initialised.h"

#include <map>
#include <optional>
#include <vector>

#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::emulation {
namespace {

// Statements looked at before giving up: what has not been proved by then gets flags.
constexpr int64_t kMostSteps = 200'000;

using Elements = std::vector<bool>;  // surely written, by flat element
using State = std::map<const BufferNode*, Elements>;

class Prover {
 public:
  std::set<const BufferNode*> run(const Stmt& body) {
    find_register_loops(body);
    walk(body);
    if (steps_ > kMostSteps)
      visit(body, [&](const Stmt& s) {
        if (s->kind == StmtKind::kAllocate) unproved_.insert(s->buffer.get());
      });
    return std::move(unproved_);
  }

 private:
  void find_register_loops(const Stmt& body) {
    const auto note = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
      if (buffer->scope != MemoryScope::kRegister) return;
      for (const Expr& index : indices)
        visit(index, [&](const Expr& e) {
          if (e->kind == ExprKind::kVar) indexing_.insert(e->var.get());
        });
    };
    visit(body, [&](const Stmt& s) {
      if (s->kind == StmtKind::kStore) note(s->buffer, s->indices);
    });
    visit_exprs(body, [&](const Expr& e) {
      if (e->kind == ExprKind::kLoad) note(e->buffer, e->operands);
    });
  }

  void walk(const Stmt& s) {
    if (s == nullptr || ++steps_ > kMostSteps) return;
    switch (s->kind) {
      case StmtKind::kFor:
        return walk_loop(*s);
      case StmtKind::kIf:
        return walk_if(*s);
      case StmtKind::kSeq:
        for (const Stmt& child : s->stmts) walk(child);
        return;
      case StmtKind::kAllocate:
        state_[s->buffer.get()] = Elements(static_cast<size_t>(s->buffer->elements()));
        walk(s->body);
        state_.erase(s->buffer.get());
        return;
      case StmtKind::kStore:
        for (const Expr& index : s->indices) read(index);
        read(s->value);
        if (const auto at = place(s->buffer, s->indices)) state_[s->buffer.get()][*at] = true;
        return;
      case StmtKind::kIntrinsic:
        return walk_intrinsic(*s);
      case StmtKind::kBarrier:
      case StmtKind::kAsync:
        return;
    }
  }

  void walk_loop(const StmtNode& s) {
    if (indexing_.contains(s.var.get())) {
      for (int64_t i = 0; i < s.extent && steps_ <= kMostSteps; ++i) {
        values_[s.var.get()] = i;
        walk(s.body);
      }
    } else {
      values_[s.var.get()] = 0;
      walk(s.body);
      values_.erase(s.var.get());
      // Any later iteration starts with at least what the first one wrote.
      if (s.extent > 1) walk(s.body);
    }
    values_.erase(s.var.get());
  }

  void walk_if(const StmtNode& s) {
    read(s.condition);
    if (const auto known = value_of(s.condition)) return walk(*known != 0 ? s.body : s.else_body);
    const State before = state_;
    walk(s.body);
    const State after = std::exchange(state_, before);
    walk(s.else_body);
    for (auto& [buffer, written] : state_)
      for (size_t i = 0; i < written.size(); ++i) written[i] = written[i] && after.at(buffer)[i];
  }

  void walk_intrinsic(const StmtNode& s) {
    const Intrinsic* intrinsic = find_intrinsic(s.name);
    if (intrinsic == nullptr || intrinsic->operands.size() != s.operands.size()) return;
    for (size_t i = 0; i < s.operands.size(); ++i) {
      const Expr& first = s.operands[i];
      if (first->kind != ExprKind::kLoad) continue;
      const bool reads = intrinsic->operands[i].access != IntrinsicOperand::Access::kWrite;
      const bool writes = intrinsic->operands[i].access != IntrinsicOperand::Access::kRead;
      for (int64_t r = 0; r < intrinsic->operands[i].registers; ++r) {
        std::vector<Expr> indices = first->operands;
        if (!indices.empty()) indices.back() = indices.back() + Expr(r);
        if (reads) read(load(first->buffer, indices));
        if (!writes) continue;
        if (const auto at = place(first->buffer, indices)) state_[first->buffer.get()][*at] = true;
      }
    }
  }

  void read(const Expr& e) {
    visit(e, [&](const Expr& inner) {
      if (inner->kind != ExprKind::kLoad || inner->buffer->scope != MemoryScope::kRegister) return;
      const auto at = place(inner->buffer, inner->operands);
      const auto known = state_.find(inner->buffer.get());
      if (!at || known == state_.end() || !known->second[*at]) unproved_.insert(inner->buffer.get());
    });
  }

  // The value under the loops run through, if that decides it.
  std::optional<int64_t> value_of(const Expr& e) const {
    if (e->kind == ExprKind::kIntImm) return e->int_value;
    if (e->kind == ExprKind::kVar) {
      const auto known = values_.find(e->var.get());
      return known == values_.end() ? std::nullopt : std::optional(known->second);
    }
    if (e->kind != ExprKind::kBinary || is_float(e->operands[0]->dtype)) return std::nullopt;
    const auto a = value_of(e->operands[0]), b = value_of(e->operands[1]);
    // One side may decide a guard alone.
    if (e->binary_op == BinaryOp::kAnd && ((a && *a == 0) || (b && *b == 0))) return 0;
    if (e->binary_op == BinaryOp::kOr && ((a && *a != 0) || (b && *b != 0))) return 1;
    if (!a || !b) return std::nullopt;
    int64_t value = 0;
    if (is_const_int(binary(e->binary_op, int_imm(*a), int_imm(*b)), &value)) return value;
    return std::nullopt;
  }

  // The flat element of a register buffer, if it is one known element.
  std::optional<size_t> place(const Buffer& buffer, const std::vector<Expr>& indices) const {
    if (buffer->scope != MemoryScope::kRegister || !state_.contains(buffer.get())) return std::nullopt;
    int64_t flat = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const auto index = value_of(indices[d]);
      if (!index || *index < 0 || *index >= buffer->shape[d]) return std::nullopt;
      flat = flat * buffer->shape[d] + *index;
    }
    return static_cast<size_t>(flat);
  }

  std::set<const VarNode*> indexing_;  // loops whose variables stand in indices of registers
  std::map<const VarNode*, int64_t> values_;
  State state_;
  std::set<const BufferNode*> unproved_;
  int64_t steps_ = 0;
};

}  // namespace

std::set<const BufferNode*> unproved_registers(const Stmt& body) { return Prover().run(body); }

}  // namespace tuner::emulation
