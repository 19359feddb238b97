// Floats of 16 bits: from float32 to their bits and back.
#include "compiler_core/codegen/emit_math.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace tuner::codegen {

// The nearest bfloat16, ties to even, as its bits; any NaN becomes a quiet one. The instruction takes numbers
// below the normal range for 0, as dot products do.
llvm::Value* MathEmitter::bfloat16_bits(llvm::Value* x) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  const unsigned lanes = vector == nullptr ? 0 : vector->getNumElements();
  if (machine_.has_bf16_dot && (lanes == 8 || lanes == 16)) {
    const llvm::Intrinsic::ID id = lanes == 16 ? llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512
                                               : llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_256;
    return b_.CreateBitCast(b_.CreateIntrinsic(id, {}, {x}),
                            llvm::FixedVectorType::get(b_.getInt16Ty(), lanes));
  }
  llvm::Type* words = x->getType()->getWithNewType(b_.getInt32Ty());
  llvm::Value* bits = b_.CreateBitCast(x, words);
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), llvm::ConstantInt::get(words, 1));
  llvm::Value* rounded = b_.CreateAdd(bits, b_.CreateAdd(odd, llvm::ConstantInt::get(words, 0x7fff)));
  llvm::Value* any =
      b_.CreateSelect(b_.CreateFCmpUNO(x, x), llvm::ConstantInt::get(words, 0x7fc00000), rounded);
  return b_.CreateTrunc(b_.CreateLShr(any, 16), words->getWithNewType(b_.getInt16Ty()));
}

// The nearest float16, ties to even, as its bits. Without an instruction: below the normal range, adding 1/2
// to the number's size rounds it to a unit of 2^-24, whose count is then in the low bits; above it, as
// bfloat16 is rounded, with another exponent.
llvm::Value* MathEmitter::float16_bits(llvm::Value* x) {
  llvm::Type *words = x->getType()->getWithNewType(b_.getInt32Ty()), *floats = x->getType();
  llvm::Type* halves = x->getType()->getWithNewType(b_.getInt16Ty());
  if (machine_.has_float16)
    return b_.CreateBitCast(b_.CreateFPTrunc(x, x->getType()->getWithNewType(b_.getHalfTy())), halves);
  const auto word = [&](uint64_t value) { return llvm::ConstantInt::get(words, value); };
  llvm::Value* bits = b_.CreateBitCast(x, words);
  llvm::Value* size = b_.CreateAnd(bits, word(0x7fffffff));
  llvm::Value* half = number(x, 0.5);
  llvm::Value* small =
      b_.CreateSub(b_.CreateBitCast(b_.CreateFAdd(b_.CreateBitCast(size, floats), half), words),
                   b_.CreateBitCast(half, words));
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(size, 13), word(1));
  llvm::Value* normal =
      b_.CreateLShr(b_.CreateAdd(b_.CreateSub(size, word(112 << 23)), b_.CreateAdd(odd, word(0xfff))), 13);
  llvm::Value* rounded = b_.CreateSelect(b_.CreateICmpULT(size, word(113 << 23)), small, normal);
  rounded = b_.CreateSelect(b_.CreateICmpULT(size, word(0x477ff000)), rounded, word(0x7c00));
  rounded = b_.CreateSelect(b_.CreateFCmpUNO(x, x), word(0x7e00), rounded);
  rounded = b_.CreateOr(rounded, b_.CreateAnd(b_.CreateLShr(bits, 16), word(0x8000)));
  return b_.CreateTrunc(rounded, halves);
}

llvm::Value* MathEmitter::narrowed(DType to, llvm::Value* x) {
  return to == DType::kBFloat16 ? bfloat16_bits(x) : float16_bits(x);
}

// The number that the bits are, as float32: exact. Of float16 without an instruction: the bits of a float32
// with the exponent too small by 112, which a product mends also below the normal range, but not for what is
// not finite.
llvm::Value* MathEmitter::widened(DType from, llvm::Value* x) {
  llvm::Type* words = x->getType()->getWithNewType(b_.getInt32Ty());
  llvm::Type* floats = x->getType()->getWithNewType(b_.getFloatTy());
  if (from == DType::kFloat16 && machine_.has_float16)
    return b_.CreateFPExt(b_.CreateBitCast(x, x->getType()->getWithNewType(b_.getHalfTy())), floats);
  llvm::Value* bits = b_.CreateZExt(x, words);
  if (from == DType::kBFloat16) return b_.CreateBitCast(b_.CreateShl(bits, 16), floats);
  const auto word = [&](uint64_t value) { return llvm::ConstantInt::get(words, value); };
  llvm::Value* small = b_.CreateBitCast(b_.CreateShl(b_.CreateAnd(bits, word(0x7fff)), 13), floats);
  llvm::Value* size = b_.CreateBitCast(b_.CreateFMul(small, number(small, 0x1p112)), words);
  llvm::Value* finite = b_.CreateICmpULT(b_.CreateAnd(bits, word(0x7fff)), word(0x7c00));
  size = b_.CreateOr(size, b_.CreateSelect(finite, word(0), word(0x7f800000)));
  size = b_.CreateOr(size, b_.CreateShl(b_.CreateAnd(bits, word(0x8000)), 16));
  return b_.CreateBitCast(size, floats);
}

}  // namespace tuner::codegen
