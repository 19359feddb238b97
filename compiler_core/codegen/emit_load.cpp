// Loads: which instruction reaches the elements best.
#include <algorithm>
#include <bit>

#include "compiler_core/codegen/emit_values.h"

namespace tuner::codegen {

llvm::Value* TransposedLoads::find(const Expr& load) const {
  const auto found = vectors.find(&*load);
  return found == vectors.end() || found->second.empty() ? nullptr : found->second[row];
}

llvm::Value* ValueEmitter::emit_load(const Buffer& buffer, const std::vector<Expr>& indices) {
  const Access access = addresses_.analyze(buffer, indices);
  llvm::Type* element = memory_type(buffer->dtype);
  const bool in_register = buffer->scope == MemoryScope::kRegister;
  if (in_register && !addresses_.register_offset(buffer, access))
    return llvm::PoisonValue::get(type_of(buffer->dtype));
  const auto as_value = [&](llvm::Value* v) {
    if (buffer->dtype != DType::kBool) return v;
    return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  };
  auto* vector =
      lanes_.count > 0 ? llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_.count)) : nullptr;
  const llvm::Align one(static_cast<uint64_t>(dtype_bytes(buffer->dtype)));
  llvm::Value* mask = lanes_.count > 0 && !in_register ? lanes_.memory_mask() : nullptr;
  switch (access.kind) {
    case Access::kUniform: {
      llvm::Value* p = addresses_.pointer(buffer, access);
      // When no lane runs the element may not exist: then a dummy is read.
      const bool may_be_idle = mask != nullptr && !llvm::isa<llvm::Constant>(mask);
      if (may_be_idle) {
        llvm::BasicBlock& first = scope_.region.function->getEntryBlock();
        llvm::IRBuilder<> at_entry(&first, first.begin());
        llvm::Value* dummy = at_entry.CreateAlloca(element);
        at_entry.CreateStore(llvm::Constant::getNullValue(element), dummy);
        p = b_.CreateSelect(b_.CreateOrReduce(mask), p, dummy);
      }
      return as_value(b_.CreateAlignedLoad(element, p, one));
    }
    case Access::kContiguous: {
      llvm::Value* p = addresses_.pointer(buffer, access);
      const llvm::Align align = addresses_.alignment(buffer, access, lanes_.count);
      if (mask == nullptr) return as_value(b_.CreateAlignedLoad(vector, p, align));
      return as_value(b_.CreateMaskedLoad(vector, p, align, mask, llvm::Constant::getNullValue(vector)));
    }
    case Access::kStrided:
      break;
  }
  if (in_register) {
    llvm::Value* v = llvm::PoisonValue::get(vector);
    for (int64_t lane = 0; lane < lanes_.count; ++lane) {
      if (lanes_.piece_mask != nullptr &&
          lanes_.piece_mask->getAggregateElement(static_cast<unsigned>(lane))->isNullValue())
        break;
      Access at = access;
      at.form.constant += lane * access.stride;
      v = b_.CreateInsertElement(v, b_.CreateAlignedLoad(element, addresses_.pointer(buffer, at), one),
                                 static_cast<uint64_t>(lane));
    }
    return as_value(v);
  }
  if (llvm::Value* v = emit_every_nth(buffer, access, mask)) return as_value(v);
  if (llvm::Value* v = emit_near_one_another(buffer, access, mask)) return as_value(v);
  llvm::Value* all = llvm::Constant::getAllOnesValue(
      llvm::FixedVectorType::get(b_.getInt1Ty(), static_cast<unsigned>(lanes_.count)));
  return as_value(b_.CreateMaskedGather(vector, addresses_.lane_pointers(buffer, access), one,
                                        mask == nullptr ? all : mask, llvm::Constant::getNullValue(vector)));
}

// Every second, third or fourth element: as many whole vectors, from the first to the last element that is
// wanted, and shuffles that pick from them. Null where that does not apply or `mask` is known only when the
// kernel runs.
llvm::Value* ValueEmitter::emit_every_nth(const Buffer& buffer, const Access& access, llvm::Value* mask) {
  constexpr int64_t kMostApart = 4;  // a gather costs about as much as two loads and shuffles a lane
  if (!access.affine() || access.stride < 2 || access.stride > kMostApart) return nullptr;
  auto* known = mask == nullptr ? nullptr : llvm::dyn_cast<llvm::Constant>(mask);
  if (mask != nullptr && known == nullptr) return nullptr;
  int64_t first = lanes_.count, last = -1;
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    if (known != nullptr && known->getAggregateElement(static_cast<unsigned>(lane))->isNullValue()) continue;
    first = std::min(first, lane);
    last = lane;
  }
  auto* vector = llvm::FixedVectorType::get(memory_type(buffer->dtype), static_cast<unsigned>(lanes_.count));
  if (last < 0) return llvm::Constant::getNullValue(vector);
  const int64_t begin = first * access.stride, end = last * access.stride + 1;
  // The first vector, then what each shuffle picked from all before and one more.
  llvm::Value *picked = nullptr, *loaded = nullptr;
  llvm::SmallVector<int> lanes(static_cast<size_t>(lanes_.count), llvm::PoisonMaskElem);
  for (int64_t at = begin; at < end; at += lanes_.count) {
    // The last vector ends with the last element, so that none beyond it is touched; a single one is masked.
    const int64_t from = std::max(begin, std::min(at, end - lanes_.count));
    Access part = access;
    part.form.constant += from;
    llvm::Value* p = addresses_.pointer(buffer, part);
    const llvm::Align align = addresses_.alignment(buffer, part, lanes_.count);
    if (from + lanes_.count <= end) {
      loaded = b_.CreateAlignedLoad(vector, p, align);
    } else {
      llvm::SmallVector<llvm::Constant*> exists;
      for (int64_t i = 0; i < lanes_.count; ++i) exists.push_back(b_.getInt1(from + i < end));
      loaded = b_.CreateMaskedLoad(vector, p, align, llvm::ConstantVector::get(exists),
                                   llvm::Constant::getNullValue(vector));
    }
    for (int64_t lane = first; lane <= last; ++lane) {
      const int64_t element = lane * access.stride;
      if (element >= at && element < at + lanes_.count)
        lanes[static_cast<size_t>(lane)] =
            static_cast<int>(element - from + (picked == nullptr ? 0 : lanes_.count));
    }
    if (picked != nullptr) {
      picked = b_.CreateShuffleVector(picked, loaded, lanes);
      for (int64_t lane = 0; lane < lanes_.count; ++lane) {
        int& taken = lanes[static_cast<size_t>(lane)];
        if (taken != llvm::PoisonMaskElem) taken = static_cast<int>(lane);
      }
    } else {
      picked = loaded;
    }
  }
  return end - begin > lanes_.count ? picked : b_.CreateShuffleVector(picked, lanes);
}

// Elements of one row of at most a vector, in any order, some of them several times: loaded from the first to
// the last that is wanted, and shuffled. Null where that does not apply or `mask` is known only when the
// kernel runs.
llvm::Value* ValueEmitter::emit_near_one_another(const Buffer& buffer, const Access& access,
                                                 llvm::Value* mask) {
  auto* known = mask == nullptr ? nullptr : llvm::dyn_cast<llvm::Constant>(mask);
  if (mask != nullptr && known == nullptr) return nullptr;
  const std::vector<int64_t> offsets = addresses_.lane_offsets(access);
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
    return llvm::Constant::getNullValue(
        llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_.count)));
  const int64_t n = last - first + 1;
  if (n * dtype_bytes(buffer->dtype) > machine_.vector_bits / 8) return nullptr;
  // Whole, or in two parts of a power of two that lie one over the other.
  const auto part = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n)));
  const auto load_part = [&](int64_t from) {
    Access at = access;
    at.form.constant += from;
    return b_.CreateAlignedLoad(llvm::FixedVectorType::get(element, static_cast<unsigned>(part)),
                                addresses_.pointer(buffer, at), addresses_.alignment(buffer, at, part));
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

}  // namespace tuner::codegen
