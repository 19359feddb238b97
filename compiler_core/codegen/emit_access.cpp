// Loads and stores: where an element lies, and which instruction reaches it best.
#include <algorithm>
#include <bit>
#include <optional>

#include "compiler_core/codegen/emitter.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::codegen {
namespace {

// The one lane that a mask leaves, if it is known and leaves one.
std::optional<uint64_t> only_lane(llvm::Value* mask) {
  const auto* known = llvm::dyn_cast<llvm::Constant>(mask);
  if (known == nullptr) return std::nullopt;
  std::optional<uint64_t> only;
  const auto lanes = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  for (unsigned lane = 0; lane < lanes; ++lane) {
    if (known->getAggregateElement(lane)->isNullValue()) continue;
    if (only.has_value()) return std::nullopt;
    only = lane;
  }
  return only;
}

}  // namespace

Emitter::Access Emitter::analyze(const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr flat = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    const bool in_register = buffer->scope == MemoryScope::kRegister;
    flat = flat * Expr(in_register ? register_extent(buffer->shape, d) : buffer->shape[d]) + indices[d];
  }
  Access access;
  const LinearForm form = linear_form(flat, ranges_);
  access.form.constant = form.constant;
  for (const auto& [term, coefficient] : form.terms) {
    if (lane_var_ == nullptr || !uses_var(term, lane_var_)) {
      access.form.terms.emplace_back(term, coefficient);
    } else if (term->kind == ExprKind::kVar) {
      access.stride = coefficient;
      access.form.constant += coefficient * lane_begin_;
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

llvm::Value* Emitter::base_pointer(const Buffer& buffer) {
  const auto it = region_.buffers.find(buffer.get());
  if (it != region_.buffers.end()) return it->second;
  refuse("buffer ", buffer->name, " is neither an argument nor allocated where it is used",
         region_.in_parallel
             ? " (register buffers are not seen inside a parallel loop around which they stand)"
             : "");
  return llvm::PoisonValue::get(b_.getPtrTy());
}

// Terms of outer loops first, the constant last, as displacement. What follows the variable of a loop is
// computed at the head of that loop, once for all accesses that share it, and in the innermost loop by moving
// a pointer along: nothing is left to find for strength reduction, which would take longer than all the rest
// here.
llvm::Value* Emitter::pointer(const Buffer& buffer, const Access& access) {
  const auto depth_of = [&](const Expr& e) {
    int depth = 0;
    visit(e, [&](const Expr& inner) {
      if (inner->kind != ExprKind::kVar) return;
      const auto it = vars_.find(inner->var.get());
      if (it != vars_.end()) depth = std::max(depth, it->second.depth);
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
    Loop* loop = at_heads ? loop_of(term->first) : nullptr;
    if (loop != nullptr) {
      p = moved(p, element, term->first, term->second, *loop);
      continue;
    }
    at_heads = false;
    llvm::Value* step =
        b_.CreateMul(emit(term->first), int_of(term->second), "", /*nuw=*/false, /*nsw=*/true);
    p = b_.CreateGEP(element, p, step);
  }
  if (access.form.constant != 0) p = b_.CreateGEP(element, p, int_of(access.form.constant));
  return p;
}

Emitter::Loop* Emitter::loop_of(const Expr& term) {
  size_t innermost = 0;  // from 1
  bool known = true;
  visit(term, [&](const Expr& e) {
    if (e->kind == ExprKind::kIntImm) return;
    if (e->kind != ExprKind::kVar) {
      known &= e->kind == ExprKind::kBinary && e->dtype == DType::kInt64;
      return;
    }
    const auto variable = vars_.find(e->var.get());
    known &= variable != vars_.end();
    for (size_t i = 0; known && i < region_.loops.size(); ++i)
      if (region_.loops[i]->variable == variable->second.value) innermost = std::max(innermost, i + 1);
  });
  return known && innermost > 0 ? region_.loops[innermost - 1] : nullptr;
}

// pointer + term * coefficient, at the head of the loop; `pointer` is known there.
llvm::Value* Emitter::moved(llvm::Value* pointer, llvm::Type* element, const Expr& term, int64_t coefficient,
                            Loop& loop) {
  for (const Loop::Sum& sum : loop.sums)
    if (sum.pointer == pointer && sum.element == element && sum.coefficient == coefficient &&
        equal(sum.term, term))
      return sum.value;
  llvm::BasicBlock* head = loop.variable->getParent();
  llvm::Value* value = nullptr;
  const auto* made_at = llvm::dyn_cast<llvm::Instruction>(pointer);
  const bool known_before = made_at == nullptr || made_at->getParent() != head;
  if (&loop == region_.loops.back() && term->kind == ExprKind::kVar && known_before) {
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
    llvm::Value* step = emit(term);
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

llvm::Value* Emitter::lane_pointers(const Buffer& buffer, const Access& access) {
  llvm::SmallVector<llvm::Constant*> steps;
  for (int64_t lane = 0; lane < lanes_; ++lane)
    steps.push_back(b_.getInt64(static_cast<uint64_t>(lane * access.stride)));
  llvm::Value* offsets = llvm::ConstantVector::get(steps);
  for (const auto& [term, coefficient] : access.lane_terms)
    offsets = b_.CreateAdd(offsets, b_.CreateMul(widen(emit(term)), widen(int_of(coefficient))));
  return b_.CreateGEP(memory_type(buffer->dtype), pointer(buffer, access), offsets);
}

// Bytes the address is a proven multiple of, up to what one vector of all lanes can use.
llvm::Align Emitter::alignment(const Buffer& buffer, const Access& access, int64_t lanes) {
  const int64_t size = dtype_bytes(buffer->dtype);
  for (int64_t bytes = 64; bytes > size; bytes /= 2) {
    if (bytes > lanes * size) continue;
    const int64_t elements = bytes / size;
    bool proven = access.form.constant % elements == 0;
    for (const auto& [term, coefficient] : access.form.terms)
      proven =
          proven && (coefficient % elements == 0 || divisible(term * Expr(coefficient), elements, ranges_));
    if (proven) return llvm::Align(static_cast<uint64_t>(bytes));
  }
  return llvm::Align(static_cast<uint64_t>(size));
}

// Register buffers have no address: every index must be known now.
bool Emitter::register_offset(const Buffer& buffer, const Access& access) {
  if (access.form.terms.empty() && access.affine()) return true;
  refuse("register buffer ", buffer->name, " is indexed by ", to_text(to_expr(access.form)),
         ", which is not a constant; unroll the loops that index it");
  return false;
}

void Emitter::emit_prefetch(const StmtNode& prefetch) {
  const ExprNode& load = *prefetch.operands[0];
  llvm::Value* p = pointer(load.buffer, analyze(load.buffer, load.operands));
  const auto word = [&](uint32_t value) { return b_.getInt32(value); };
  const uint32_t locality = prefetch.name == "prefetch" ? 3 : 2;  // 3: all caches, 2: all but the first
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {p->getType()},
                     {p, /*write=*/word(0), word(locality), /*data=*/word(1)});
}

llvm::Value* Emitter::any_lane(llvm::Value* mask) { return b_.CreateOrReduce(mask); }

llvm::Value* Emitter::memory_mask() {
  if (mask_ == nullptr || piece_mask_ == nullptr) return mask_ == nullptr ? piece_mask_ : mask_;
  return b_.CreateAnd(mask_, piece_mask_);
}

llvm::Value* Emitter::emit_load(const Buffer& buffer, const std::vector<Expr>& indices) {
  const Access access = analyze(buffer, indices);
  llvm::Type* element = memory_type(buffer->dtype);
  const bool in_register = buffer->scope == MemoryScope::kRegister;
  if (in_register && !register_offset(buffer, access)) return llvm::PoisonValue::get(type_of(buffer->dtype));
  const auto as_value = [&](llvm::Value* v) {
    if (buffer->dtype != DType::kBool) return v;
    return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  };
  auto* vector = lanes_ > 0 ? llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_)) : nullptr;
  const llvm::Align one(static_cast<uint64_t>(dtype_bytes(buffer->dtype)));
  llvm::Value* mask = lanes_ > 0 && !in_register ? memory_mask() : nullptr;
  switch (access.kind) {
    case Access::kUniform: {
      llvm::Value* p = pointer(buffer, access);
      // When no lane runs the element may not exist: then a dummy is read.
      const bool may_be_idle = mask != nullptr && !llvm::isa<llvm::Constant>(mask);
      if (may_be_idle) {
        llvm::BasicBlock& first = region_.function->getEntryBlock();
        llvm::IRBuilder<> at_entry(&first, first.begin());
        llvm::Value* dummy = at_entry.CreateAlloca(element);
        at_entry.CreateStore(llvm::Constant::getNullValue(element), dummy);
        p = b_.CreateSelect(any_lane(mask), p, dummy);
      }
      return as_value(b_.CreateAlignedLoad(element, p, one));
    }
    case Access::kContiguous: {
      llvm::Value* p = pointer(buffer, access);
      const llvm::Align align = alignment(buffer, access, lanes_);
      if (mask == nullptr) return as_value(b_.CreateAlignedLoad(vector, p, align));
      return as_value(b_.CreateMaskedLoad(vector, p, align, mask, llvm::Constant::getNullValue(vector)));
    }
    case Access::kStrided:
      break;
  }
  if (in_register) {
    llvm::Value* v = llvm::PoisonValue::get(vector);
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      if (piece_mask_ != nullptr &&
          piece_mask_->getAggregateElement(static_cast<unsigned>(lane))->isNullValue())
        break;
      Access at = access;
      at.form.constant += lane * access.stride;
      v = b_.CreateInsertElement(v, b_.CreateAlignedLoad(element, pointer(buffer, at), one),
                                 static_cast<uint64_t>(lane));
    }
    return as_value(v);
  }
  if (llvm::Value* v = emit_every_nth(buffer, access, mask)) return as_value(v);
  if (llvm::Value* v = emit_near_one_another(buffer, access, mask)) return as_value(v);
  llvm::Value* all = llvm::Constant::getAllOnesValue(
      llvm::FixedVectorType::get(b_.getInt1Ty(), static_cast<unsigned>(lanes_)));
  return as_value(b_.CreateMaskedGather(vector, lane_pointers(buffer, access), one,
                                        mask == nullptr ? all : mask, llvm::Constant::getNullValue(vector)));
}

// Every second, third or fourth element: as many whole vectors, from the first to the last element that is
// wanted, and shuffles that pick from them. Null where that does not apply or `mask` is known only when the
// kernel runs.
llvm::Value* Emitter::emit_every_nth(const Buffer& buffer, const Access& access, llvm::Value* mask) {
  constexpr int64_t kMostApart = 4;  // a gather costs about as much as two loads and shuffles a lane
  if (!access.affine() || access.stride < 2 || access.stride > kMostApart) return nullptr;
  auto* known = mask == nullptr ? nullptr : llvm::dyn_cast<llvm::Constant>(mask);
  if (mask != nullptr && known == nullptr) return nullptr;
  int64_t first = lanes_, last = -1;
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    if (known != nullptr && known->getAggregateElement(static_cast<unsigned>(lane))->isNullValue()) continue;
    first = std::min(first, lane);
    last = lane;
  }
  auto* vector = llvm::FixedVectorType::get(memory_type(buffer->dtype), static_cast<unsigned>(lanes_));
  if (last < 0) return llvm::Constant::getNullValue(vector);
  const int64_t begin = first * access.stride, end = last * access.stride + 1;
  // The first vector, then what each shuffle picked from all before and one more.
  llvm::Value *picked = nullptr, *loaded = nullptr;
  llvm::SmallVector<int> lanes(static_cast<size_t>(lanes_), llvm::PoisonMaskElem);
  for (int64_t at = begin; at < end; at += lanes_) {
    // The last vector ends with the last element, so that none beyond it is touched; a single one is masked.
    const int64_t from = std::max(begin, std::min(at, end - lanes_));
    Access part = access;
    part.form.constant += from;
    llvm::Value* p = pointer(buffer, part);
    const llvm::Align align = alignment(buffer, part, lanes_);
    if (from + lanes_ <= end) {
      loaded = b_.CreateAlignedLoad(vector, p, align);
    } else {
      llvm::SmallVector<llvm::Constant*> exists;
      for (int64_t i = 0; i < lanes_; ++i) exists.push_back(b_.getInt1(from + i < end));
      loaded = b_.CreateMaskedLoad(vector, p, align, llvm::ConstantVector::get(exists),
                                   llvm::Constant::getNullValue(vector));
    }
    for (int64_t lane = first; lane <= last; ++lane) {
      const int64_t element = lane * access.stride;
      if (element >= at && element < at + lanes_)
        lanes[static_cast<size_t>(lane)] =
            static_cast<int>(element - from + (picked == nullptr ? 0 : lanes_));
    }
    if (picked != nullptr) {
      picked = b_.CreateShuffleVector(picked, loaded, lanes);
      for (int64_t lane = 0; lane < lanes_; ++lane) {
        int& taken = lanes[static_cast<size_t>(lane)];
        if (taken != llvm::PoisonMaskElem) taken = static_cast<int>(lane);
      }
    } else {
      picked = loaded;
    }
  }
  return end - begin > lanes_ ? picked : b_.CreateShuffleVector(picked, lanes);
}

// The lanes' elements, where each lies from `access`, if that is known now; empty if not.
std::vector<int64_t> Emitter::lane_offsets(const Access& access) const {
  std::vector<int64_t> offsets;
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    int64_t offset = lane * access.stride;
    for (const auto& [term, coefficient] : access.lane_terms) {
      int64_t value = 0;
      if (!is_const_int(simplify(substitute(term, {{lane_var_, Expr(lane_begin_ + lane)}})), &value))
        return {};
      offset += value * coefficient;
    }
    offsets.push_back(offset);
  }
  return offsets;
}

// Elements of one row of at most a vector, in any order, some of them several times: loaded from the first to the last
// that is wanted, and shuffled. Null where that does not apply or `mask` is known only when the kernel runs.
llvm::Value* Emitter::emit_near_one_another(const Buffer& buffer, const Access& access, llvm::Value* mask) {
  auto* known = mask == nullptr ? nullptr : llvm::dyn_cast<llvm::Constant>(mask);
  if (mask != nullptr && known == nullptr) return nullptr;
  const std::vector<int64_t> offsets = lane_offsets(access);
  if (offsets.empty()) return nullptr;
  llvm::SmallVector<int> lanes(offsets.size(), llvm::PoisonMaskElem);
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (size_t lane = 0; lane < offsets.size(); ++lane) {
    if (known != nullptr && known->getAggregateElement(static_cast<unsigned>(lane))->isNullValue()) continue;
    first = std::min(first, offsets[lane]);
    last = std::max(last, offsets[lane]);
    lanes[lane] = 0;
  }
  llvm::Type* element = memory_type(buffer->dtype);
  if (last < first)
    return llvm::Constant::getNullValue(llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_)));
  const int64_t n = last - first + 1;
  if (n * dtype_bytes(buffer->dtype) > machine_.vector_bits / 8) return nullptr;
  // Whole, or in two parts of a power of two that lie one over the other.
  const auto part = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n)));
  const auto load_part = [&](int64_t from) {
    Access at = access;
    at.form.constant += from;
    return b_.CreateAlignedLoad(llvm::FixedVectorType::get(element, static_cast<unsigned>(part)),
                                pointer(buffer, at), alignment(buffer, at, part));
  };
  for (size_t lane = 0; lane < offsets.size(); ++lane) {
    if (lanes[lane] == llvm::PoisonMaskElem) continue;
    const int64_t at = offsets[lane] - first;
    lanes[lane] = static_cast<int>(at < part ? at : at - (n - part) + part);
  }
  llvm::Value* low = load_part(first);
  llvm::Value* high = llvm::PoisonValue::get(low->getType());
  if (n > part) high = load_part(last + 1 - part);
  return b_.CreateShuffleVector(low, high, lanes);
}

void Emitter::emit_store(const StmtNode& s) {
  if (s.reduce != ReduceOp::kNone)
    return refuse("store to ", s.buffer->name, " is a reduction: the Program is not lowered");
  const Access access = analyze(s.buffer, s.indices);
  const bool in_register = s.buffer->scope == MemoryScope::kRegister;
  if (in_register && !register_offset(s.buffer, access)) return;
  llvm::Value* value = emit(s.value);
  llvm::Type* element = memory_type(s.buffer->dtype);
  if (s.buffer->dtype == DType::kBool)
    value = b_.CreateZExt(value, lanes_ > 0 && value->getType()->isVectorTy()
                                     ? llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_))
                                     : element);
  const llvm::Align one(static_cast<uint64_t>(dtype_bytes(s.buffer->dtype)));
  if (access.kind == Access::kUniform) {
    if (lanes_ > 0) {
      // A guard that leaves one lane makes its index a constant. Of several lanes the last one would win.
      llvm::Value* mask = memory_mask();
      auto* known = mask == nullptr ? nullptr : llvm::dyn_cast<llvm::Constant>(mask);
      int64_t active = 0, last = 0;
      for (int64_t lane = 0; known != nullptr && lane < lanes_; ++lane) {
        if (known->getAggregateElement(static_cast<unsigned>(lane))->isNullValue()) continue;
        ++active;
        last = lane;
      }
      if (active != 1)
        return refuse("vectorized loop ", lane_var_->name, " writes the same element of ", s.buffer->name,
                      " in every lane");
      if (value->getType()->isVectorTy()) value = b_.CreateExtractElement(value, static_cast<uint64_t>(last));
    }
    b_.CreateAlignedStore(value, pointer(s.buffer, access), one);
    return;
  }
  value = widen(value);
  if (access.kind == Access::kContiguous) return store_contiguous(s.buffer, access, value);
  if (in_register) {
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      if (piece_mask_ != nullptr &&
          piece_mask_->getAggregateElement(static_cast<unsigned>(lane))->isNullValue())
        break;
      Access at = access;
      at.form.constant += lane * access.stride;
      llvm::Value* p = pointer(s.buffer, at);
      llvm::Value* v = b_.CreateExtractElement(value, static_cast<uint64_t>(lane));
      if (mask_ != nullptr)
        v = b_.CreateSelect(b_.CreateExtractElement(mask_, static_cast<uint64_t>(lane)), v,
                            b_.CreateAlignedLoad(element, p, one));
      b_.CreateAlignedStore(v, p, one);
    }
    return;
  }
  b_.CreateMaskedScatter(value, lane_pointers(s.buffer, access), one, memory_mask());
}

void Emitter::store_contiguous(const Buffer& buffer, const Access& access, llvm::Value* value) {
  const bool in_register = buffer->scope == MemoryScope::kRegister;
  llvm::Value* p = pointer(buffer, access);
  const llvm::Align align = alignment(buffer, access, lanes_);
  if (mask_ != nullptr && in_register) {
    value = b_.CreateSelect(mask_, value, b_.CreateAlignedLoad(value->getType(), p, align));
  } else if (llvm::Value* mask = in_register ? nullptr : memory_mask()) {
    // LLVM 22 stores the whole word that a small element was cut from where a known mask leaves one lane.
    if (const std::optional<uint64_t> lane =
            dtype_bytes(buffer->dtype) < 4 ? only_lane(mask) : std::nullopt) {
      p = b_.CreateGEP(memory_type(buffer->dtype), p, b_.getInt64(*lane));
      b_.CreateAlignedStore(b_.CreateExtractElement(value, *lane), p,
                            llvm::Align(static_cast<uint64_t>(dtype_bytes(buffer->dtype))));
    } else {
      b_.CreateMaskedStore(value, p, align, mask);
    }
    return;
  }
  b_.CreateAlignedStore(value, p, align);
}

}  // namespace tuner::codegen
