// Maxima, minima and sums: of two values, and of all lanes of a vector.
#include "compiler_core/codegen/emit_math.h"
#include "llvm/Analysis/SimplifyQuery.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace tuner::codegen {

// x where it is larger (smaller) than y, otherwise y, also where either is a NaN: one instruction of x86.
llvm::Value* MathEmitter::first_if_beyond(bool largest, llvm::Value* x, llvm::Value* y) {
  return b_.CreateSelect(largest ? b_.CreateFCmpOGT(x, y) : b_.CreateFCmpOLT(x, y), x, y);
}

// The maximum or minimum of IEEE 754: a NaN passes. On x86 one instruction is enough where one operand is
// known to be none. Otherwise b is looked at, not a: as the accumulator of a reduction comes as a, the next
// step waits for one instruction only.
llvm::Value* MathEmitter::extreme(bool largest, llvm::Value* a, llvm::Value* b) {
  if (machine_.has_neon)
    return b_.CreateBinaryIntrinsic(largest ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, b);
  const llvm::SimplifyQuery query(module_.getDataLayout());
  if (llvm::isKnownNeverNaN(a, query)) return first_if_beyond(largest, a, b);
  llvm::Value* picked = first_if_beyond(largest, b, a);
  return llvm::isKnownNeverNaN(b, query) ? picked : or_nan_of(b, picked);
}

// y where it is a NaN, elsewhere x. vfixupimmps looks at y by a table of kinds of numbers, the first two
// NaNs; it does not stand in the way of maxima and loads, as a comparison into a mask does, which costs a
// half of a maximum of many numbers.
llvm::Value* MathEmitter::or_nan_of(llvm::Value* y, llvm::Value* x) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(y->getType());
  const unsigned lanes = vector == nullptr ? 1 : vector->getNumElements();
  if (!machine_.has_scale || !y->getType()->getScalarType()->isFloatTy() ||
      (lanes != 4 && lanes != 8 && lanes != 16))
    return b_.CreateSelect(b_.CreateFCmpORD(y, y), x, y);
  const bool whole = lanes == 16;
  const llvm::Intrinsic::ID id = whole        ? llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_512
                                 : lanes == 8 ? llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_256
                                              : llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_128;
  llvm::Value* table =
      b_.CreateVectorSplat(lanes, b_.getInt32(0x11));  // NaNs: the looked at; all others: as they are
  std::vector<llvm::Value*> operands{
      x, y, table, b_.getInt32(0), llvm::Constant::getAllOnesValue(whole ? b_.getInt16Ty() : b_.getInt8Ty())};
  if (whole) operands.push_back(b_.getInt32(4));  // exceptions as usual
  return b_.CreateIntrinsic(id, {}, operands);
}

// As emit_binary does it, so that the order of terms is all that differs from a serial loop. A NaN may get
// lost in an extreme: any_nan() finds it.
llvm::Value* MathEmitter::reduced(ReduceOp op, llvm::Value* a, llvm::Value* b) {
  if (op == ReduceOp::kSum) return b_.CreateFAdd(a, b);
  return first_if_beyond(op == ReduceOp::kMax, a, b);
}

// Whether a term is a NaN: two are looked at by one comparison, which no step of the reduction waits for.
llvm::Value* MathEmitter::any_nan(const std::vector<llvm::Value*>& terms) {
  llvm::Value* found = b_.getFalse();
  for (size_t i = 0; i < terms.size(); ++i) {
    llvm::Value *x = terms[i], *y = x;
    if (i + 1 < terms.size() && terms[i + 1]->getType() == x->getType()) y = terms[++i];
    llvm::Value* nans = b_.CreateFCmpUNO(x, y);
    found = b_.CreateOr(found, x->getType()->isVectorTy() ? b_.CreateOrReduce(nans) : nans);
  }
  return found;
}

// x, or a NaN: the bits of a NaN are or-ed into it. A select would become a load under a mask, with which
// short rows take longer on Zen 5 (tests/bench/HISTORY.md, "What NaNs cost").
llvm::Value* MathEmitter::nan_if(llvm::Value* found, llvm::Value* x) {
  llvm::Type* bits = b_.getIntNTy(x->getType()->getPrimitiveSizeInBits());
  llvm::Value* nan = b_.CreateBitCast(llvm::ConstantFP::getNaN(x->getType()), bits);
  llvm::Value* mask = b_.CreateAnd(b_.CreateSExt(found, bits), nan);
  return b_.CreateBitCast(b_.CreateOr(b_.CreateBitCast(x, bits), mask), x->getType());
}

llvm::Value* MathEmitter::reduced_lanes(ReduceOp op, llvm::Value* v) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  if (vector == nullptr) return v;
  for (unsigned n = vector->getNumElements() / 2; n >= 1; n /= 2) {
    llvm::SmallVector<int> lower, upper;
    for (unsigned i = 0; i < n; ++i) {
      lower.push_back(static_cast<int>(i));
      upper.push_back(static_cast<int>(n + i));
    }
    v = reduced(op, b_.CreateShuffleVector(v, lower), b_.CreateShuffleVector(v, upper));
  }
  return b_.CreateExtractElement(v, uint64_t{0});
}

}  // namespace tuner::codegen
