#include "compiler_core/codegen/addresses.h"

#include <algorithm>

#include "compiler_core/ir/visitor.h"

namespace tuner::codegen {

Addresses::Access Addresses::analyze(const Buffer& buffer, const std::vector<Expr>& indices) const {
  Expr flat = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    const bool in_register = buffer->scope == MemoryScope::kRegister;
    flat = flat * Expr(in_register ? register_extent(buffer->shape, d) : buffer->shape[d]) + indices[d];
  }
  Access access;
  const LinearForm form = linear_form(flat, scope_.ranges);
  access.form.constant = form.constant;
  for (const auto& [term, coefficient] : form.terms) {
    if (lanes_.var == nullptr || !uses_var(term, lanes_.var)) {
      access.form.terms.emplace_back(term, coefficient);
    } else if (term->kind == ExprKind::kVar) {
      access.stride = coefficient;
      access.form.constant += coefficient * lanes_.begin;
    } else {
      access.lane_terms.emplace_back(term, coefficient);
    }
  }
  if (!access.affine() || (access.stride != 0 && access.stride != 1)) {
    access.kind = Access::kStrided;
  } else {
    access.kind = access.stride == 1 ? Access::kContiguous : Access::kUniform;
  }
  return access;
}

llvm::Value* Addresses::base_pointer(const Buffer& buffer) {
  const auto it = scope_.region.buffers.find(buffer.get());
  if (it != scope_.region.buffers.end()) return it->second;
  refuse("buffer ", buffer->name, " is neither an argument nor allocated where it is used",
         scope_.region.in_parallel
             ? " (register buffers are not seen inside a parallel loop around which they stand)"
             : "");
  return llvm::PoisonValue::get(b_.getPtrTy());
}

// Terms of outer loops first, the constant last, as displacement. What follows the variable of a loop is
// computed at the head of that loop, once for all accesses that share it, and in the innermost loop by moving
// a pointer along: nothing is left to find for strength reduction, which would take longer than all the rest
// here.
llvm::Value* Addresses::pointer(const Buffer& buffer, const Access& access) {
  const auto depth_of = [&](const Expr& e) {
    int depth = 0;
    visit(e, [&](const Expr& inner) {
      if (inner->kind != ExprKind::kVar) return;
      const auto it = scope_.vars.find(inner->var.get());
      if (it != scope_.vars.end()) depth = std::max(depth, it->second.depth);
    });
    return depth;
  };
  std::vector<std::pair<int, const std::pair<Expr, int64_t>*>> order;
  for (const auto& term : access.form.terms) order.emplace_back(depth_of(term.first), &term);
  // Of one loop its variable first: the pointer that moves along with it starts before the loop.
  const auto place = [](const auto& of) {
    return std::pair(of.first, of.second->first->kind != ExprKind::kVar);
  };
  std::ranges::stable_sort(order, {}, place);
  llvm::Value* p = base_pointer(buffer);
  llvm::Type* element = memory_type(buffer->dtype);
  bool at_heads = true;  // p is known where the next loop begins
  for (const auto& [depth, term] : order) {
    OpenLoop* loop = at_heads ? loop_of(term->first) : nullptr;
    if (loop != nullptr) {
      p = moved(p, element, term->first, term->second, *loop);
      continue;
    }
    at_heads = false;
    llvm::Value* step =
        b_.CreateMul(emit_(term->first), int_of(term->second), "", /*nuw=*/false, /*nsw=*/true);
    p = b_.CreateGEP(element, p, step);
  }
  if (access.form.constant != 0) p = b_.CreateGEP(element, p, int_of(access.form.constant));
  return p;
}

OpenLoop* Addresses::loop_of(const Expr& term) const {
  size_t innermost = 0;  // from 1
  bool known = true;
  visit(term, [&](const Expr& e) {
    if (e->kind == ExprKind::kIntImm) return;
    if (e->kind != ExprKind::kVar) {
      known &= e->kind == ExprKind::kBinary && e->dtype == DType::kInt64;
      return;
    }
    const auto variable = scope_.vars.find(e->var.get());
    known &= variable != scope_.vars.end();
    for (size_t i = 0; known && i < scope_.region.loops.size(); ++i)
      if (scope_.region.loops[i]->variable == variable->second.value) innermost = std::max(innermost, i + 1);
  });
  return known && innermost > 0 ? scope_.region.loops[innermost - 1] : nullptr;
}

// pointer + term * coefficient, at the head of the loop; `pointer` is known there.
llvm::Value* Addresses::moved(llvm::Value* pointer, llvm::Type* element, const Expr& term,
                              int64_t coefficient, OpenLoop& loop) {
  for (const OpenLoop::Sum& sum : loop.sums)
    if (sum.pointer == pointer && sum.element == element && sum.coefficient == coefficient &&
        equal(sum.term, term))
      return sum.value;
  llvm::BasicBlock* head = loop.variable->getParent();
  llvm::Value* value = nullptr;
  const auto* made_at = llvm::dyn_cast<llvm::Instruction>(pointer);
  const bool known_before = made_at == nullptr || made_at->getParent() != head;
  if (&loop == scope_.region.loops.back() && term->kind == ExprKind::kVar && known_before) {
    llvm::IRBuilder<> at(loop.before->getTerminator());
    llvm::Value* begin = loop.variable->getIncomingValue(0);
    const auto* known = llvm::dyn_cast<llvm::ConstantInt>(begin);
    llvm::Value* first = known != nullptr && known->isZero()
                             ? pointer
                             : at.CreateGEP(element, pointer, at.CreateMul(begin, int_of(coefficient)));
    llvm::IRBuilder<> phis(head, head->begin());
    llvm::PHINode* along = phis.CreatePHI(phis.getPtrTy(), 2);
    along->addIncoming(first, loop.before);
    loop.steps.push_back({along, element, coefficient});
    value = along;
  } else {
    const auto here = b_.saveIP();
    llvm::BasicBlock::iterator at =
        loop.last == nullptr ? head->getFirstInsertionPt() : std::next(loop.last->getIterator());
    b_.SetInsertPoint(head, at);
    llvm::Value* step = emit_(term);
    if (coefficient != 1) step = b_.CreateMul(step, int_of(coefficient), "", /*nuw=*/false, /*nsw=*/true);
    value = b_.CreateGEP(element, pointer, step);
    loop.last = llvm::cast<llvm::Instruction>(value);
    // Where the head is also where we are, what comes next stands behind.
    if (here.getBlock() == head && here.getPoint() == at)
      b_.SetInsertPoint(head, std::next(loop.last->getIterator()));
    else
      b_.restoreIP(here);
  }
  loop.sums.push_back({pointer, element, coefficient, term, value});
  return value;
}

llvm::Value* Addresses::lane_pointers(const Buffer& buffer, const Access& access) {
  llvm::SmallVector<llvm::Constant*> steps;
  for (int64_t lane = 0; lane < lanes_.count; ++lane)
    steps.push_back(b_.getInt64(static_cast<uint64_t>(lane * access.stride)));
  llvm::Value* offsets = llvm::ConstantVector::get(steps);
  for (const auto& [term, coefficient] : access.lane_terms)
    offsets =
        b_.CreateAdd(offsets, b_.CreateMul(lanes_.widen(emit_(term)), lanes_.widen(int_of(coefficient))));
  return b_.CreateGEP(memory_type(buffer->dtype), pointer(buffer, access), offsets);
}

std::vector<int64_t> Addresses::lane_offsets(const Access& access) const {
  std::vector<int64_t> offsets;
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    int64_t offset = lane * access.stride;
    for (const auto& [term, coefficient] : access.lane_terms) {
      int64_t value = 0;
      if (!is_const_int(simplify(substitute(term, {{lanes_.var, Expr(lanes_.begin + lane)}})), &value))
        return {};
      offset += value * coefficient;
    }
    offsets.push_back(offset);
  }
  return offsets;
}

llvm::Align Addresses::alignment(const Buffer& buffer, const Access& access, int64_t lanes) const {
  const int64_t size = dtype_bytes(buffer->dtype);
  for (int64_t bytes = 64; bytes > size; bytes /= 2) {
    if (bytes > lanes * size) continue;
    const int64_t elements = bytes / size;
    bool proven = access.form.constant % elements == 0;
    for (const auto& [term, coefficient] : access.form.terms)
      proven = proven &&
               (coefficient % elements == 0 || divisible(term * Expr(coefficient), elements, scope_.ranges));
    if (proven) return llvm::Align(static_cast<uint64_t>(bytes));
  }
  return llvm::Align(static_cast<uint64_t>(size));
}

bool Addresses::register_offset(const Buffer& buffer, const Access& access) {
  if (access.form.terms.empty() && access.affine()) return true;
  refuse("register buffer ", buffer->name, " is indexed by ", to_text(to_expr(access.form)),
         ", which is not a constant; unroll the loops that index it");
  return false;
}

}  // namespace tuner::codegen
