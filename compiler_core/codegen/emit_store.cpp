// Stores: which instruction reaches the elements best; and prefetches.
#include <optional>

#include "compiler_core/codegen/emitter.h"

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

void Emitter::emit_prefetch(const StmtNode& prefetch) {
  const ExprNode& load = *prefetch.operands[0];
  llvm::Value* p = addresses_.pointer(load.buffer, addresses_.analyze(load.buffer, load.operands));
  const auto word = [&](uint32_t value) { return b_.getInt32(value); };
  const uint32_t locality = prefetch.name == "prefetch" ? 3 : 2;  // 3: all caches, 2: all but the first
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {p->getType()},
                     {p, /*write=*/word(0), word(locality), /*data=*/word(1)});
}

void Emitter::emit_store(const StmtNode& s) {
  if (s.reduce != ReduceOp::kNone)
    return refuse("store to ", s.buffer->name, " is a reduction: the Program is not lowered");
  const Access access = addresses_.analyze(s.buffer, s.indices);
  const bool in_register = s.buffer->scope == MemoryScope::kRegister;
  if (in_register && !addresses_.register_offset(s.buffer, access)) return;
  llvm::Value* value = values_.emit(s.value);
  llvm::Type* element = memory_type(s.buffer->dtype);
  if (s.buffer->dtype == DType::kBool)
    value =
        b_.CreateZExt(value, lanes_.count > 0 && value->getType()->isVectorTy()
                                 ? llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_.count))
                                 : element);
  const llvm::Align one(static_cast<uint64_t>(dtype_bytes(s.buffer->dtype)));
  if (access.kind == Access::kUniform) {
    if (lanes_.count > 0) {
      // A guard that leaves one lane makes its index a constant. Of several lanes the last one would win.
      llvm::Value* mask = lanes_.memory_mask();
      auto* known = mask == nullptr ? nullptr : llvm::dyn_cast<llvm::Constant>(mask);
      int64_t active = 0, last = 0;
      for (int64_t lane = 0; known != nullptr && lane < lanes_.count; ++lane) {
        if (known->getAggregateElement(static_cast<unsigned>(lane))->isNullValue()) continue;
        ++active;
        last = lane;
      }
      if (active != 1)
        return refuse("vectorized loop ", lanes_.var->name, " writes the same element of ", s.buffer->name,
                      " in every lane");
      if (value->getType()->isVectorTy()) value = b_.CreateExtractElement(value, static_cast<uint64_t>(last));
    }
    b_.CreateAlignedStore(value, addresses_.pointer(s.buffer, access), one);
    return;
  }
  value = lanes_.widen(value);
  if (access.kind == Access::kContiguous) return store_contiguous(s.buffer, access, value);
  if (in_register) {
    for (int64_t lane = 0; lane < lanes_.count; ++lane) {
      if (lanes_.piece_mask != nullptr &&
          lanes_.piece_mask->getAggregateElement(static_cast<unsigned>(lane))->isNullValue())
        break;
      Access at = access;
      at.form.constant += lane * access.stride;
      llvm::Value* p = addresses_.pointer(s.buffer, at);
      llvm::Value* v = b_.CreateExtractElement(value, static_cast<uint64_t>(lane));
      if (lanes_.mask != nullptr)
        v = b_.CreateSelect(b_.CreateExtractElement(lanes_.mask, static_cast<uint64_t>(lane)), v,
                            b_.CreateAlignedLoad(element, p, one));
      b_.CreateAlignedStore(v, p, one);
    }
    return;
  }
  b_.CreateMaskedScatter(value, addresses_.lane_pointers(s.buffer, access), one, lanes_.memory_mask());
}

void Emitter::store_contiguous(const Buffer& buffer, const Access& access, llvm::Value* value) {
  const bool in_register = buffer->scope == MemoryScope::kRegister;
  llvm::Value* p = addresses_.pointer(buffer, access);
  const llvm::Align align = addresses_.alignment(buffer, access, lanes_.count);
  if (lanes_.mask != nullptr && in_register) {
    value = b_.CreateSelect(lanes_.mask, value, b_.CreateAlignedLoad(value->getType(), p, align));
  } else if (llvm::Value* mask = in_register ? nullptr : lanes_.memory_mask()) {
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
