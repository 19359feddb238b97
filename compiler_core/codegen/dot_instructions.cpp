// Which instructions make a dot product:
//
//              bfloat16, two products a lane         int8, four products a lane
//   x86        vdpbf16ps                             vpdpbusd (one side unsigned, the other signed)
//   x86, else  -                                     even and odd bytes as 16 bits, vpmaddwd each: exact,
//   while
//                                                    vpmaddubsw, the shorter way, saturates
//   AArch64    bfdot (+bf16); else as any            sdot, udot; usdot (+i8mm), one side signed, the other not
//     +dotprod                                       without +i8mm the unsigned side less 128, and 128 times
//                                                    the other side's sum: sdot both
//     neither                                        even and odd bytes as 16 bits: mul, saddlp, exact
//   any        halves as floats, two FMAs            bytes shifted out, four multiplications
#include "compiler_core/codegen/dot_instructions.h"

#include "llvm/IR/IntrinsicsAArch64.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace tuner::codegen {
namespace {

llvm::Intrinsic::ID bf16_instruction(int64_t lanes) {
  return lanes == 16  ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512
         : lanes == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                      : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
}
llvm::Intrinsic::ID vnni_instruction(int64_t lanes) {
  return lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
         : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                      : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
}
llvm::Intrinsic::ID pair_instruction(int64_t lanes) {
  return lanes == 16  ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
         : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                      : llvm::Intrinsic::x86_sse2_pmadd_wd;
}

}  // namespace

// An instruction of the target on (sum, x, y), words taken for what it wants.
llvm::Value* DotInstructions::dot_instruction(llvm::Intrinsic::ID id, std::vector<llvm::Value*> operands) {
  llvm::Function* f = llvm::Intrinsic::getOrInsertDeclaration(&module_, id);
  for (size_t i = 0; i < operands.size(); ++i)
    operands[i] = b_.CreateBitCast(operands[i], f->getFunctionType()->getParamType(static_cast<unsigned>(i)));
  return b_.CreateCall(f, operands);
}

llvm::Value* DotInstructions::bf16_dot(llvm::Value* sum, llvm::Value* x, llvm::Value* y) {
  if (machine_.has_bf16_dot) return dot_instruction(bf16_instruction(lanes_.count), {sum, x, y});
  if (machine_.has_neon_bf16_dot && lanes_.count == 4) {
    // LLVM 22 makes no lane of the broadcast side (its issue 170883): an instruction more for each number.
    auto* halves = llvm::FixedVectorType::get(b_.getBFloatTy(), 8);
    return b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_bfdot, {sum->getType(), halves},
                              {sum, b_.CreateBitCast(x, halves), b_.CreateBitCast(y, halves)});
  }
  // A bfloat16 is the upper half of a float: the first element lies in the lower half of the word.
  const auto low = [&](llvm::Value* word) {
    return b_.CreateBitCast(b_.CreateShl(word, 16), sum->getType());
  };
  const auto high = [&](llvm::Value* word) {
    return b_.CreateBitCast(b_.CreateAnd(word, llvm::ConstantInt::get(word->getType(), 0xffff0000)),
                            sum->getType());
  };
  const auto add = [&](llvm::Value* a, llvm::Value* b, llvm::Value* c) {
    return machine_.has_fma ? math_.fused(a, b, c) : b_.CreateFAdd(b_.CreateFMul(a, b), c);
  };
  return add(high(x), high(y), add(low(x), low(y), sum));
}

llvm::Value* DotInstructions::byte_dot(llvm::Value* sum, llvm::Value* x, llvm::Value* y, bool x_unsigned,
                                       bool y_unsigned) {
  if (machine_.has_byte_dot && x_unsigned != y_unsigned)
    return dot_instruction(vnni_instruction(lanes_.count), {sum, x_unsigned ? x : y, x_unsigned ? y : x});
  if (machine_.has_neon && lanes_.count == 4) return neon_byte_dot(sum, x, y, x_unsigned, y_unsigned);
  if (machine_.has_pair_sums) {
    const llvm::Intrinsic::ID pairs = pair_instruction(lanes_.count);
    const auto products = [&](int part) {
      return dot_instruction(pairs, {every_other(x, part, x_unsigned), every_other(y, part, y_unsigned)});
    };
    sum = b_.CreateAdd(sum, products(0));
    return b_.CreateAdd(sum, products(1));
  }
  const auto byte = [&](llvm::Value* word, uint64_t i, bool is_unsigned) {
    llvm::Value* up = b_.CreateShl(word, 24 - 8 * i);
    return is_unsigned ? b_.CreateLShr(up, 24) : b_.CreateAShr(up, 24);
  };
  for (uint64_t i = 0; i < 4; ++i)
    sum = b_.CreateAdd(sum, b_.CreateMul(byte(x, i, x_unsigned), byte(y, i, y_unsigned)));
  return sum;
}

// The even (part 0) or odd bytes of words, as 16 bits.
llvm::Value* DotInstructions::every_other(llvm::Value* words, int part, bool is_unsigned) {
  auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), static_cast<unsigned>(2 * lanes_.count));
  llvm::Value* v = b_.CreateBitCast(words, halves);
  if (part == 1) return is_unsigned ? b_.CreateLShr(v, 8) : b_.CreateAShr(v, 8);
  if (is_unsigned) return b_.CreateAnd(v, llvm::ConstantInt::get(halves, 0xff));
  return b_.CreateAShr(b_.CreateShl(v, 8), 8);
}

llvm::Value* DotInstructions::neon_byte_dot(llvm::Value* sum, llvm::Value* x, llvm::Value* y, bool x_unsigned,
                                            bool y_unsigned) {
  // LLVM makes the broadcast side a lane where it comes last.
  if (llvm::isa<llvm::ShuffleVectorInst>(x)) {
    std::swap(x, y);
    std::swap(x_unsigned, y_unsigned);
  }
  auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), 4);
  auto* bytes = llvm::FixedVectorType::get(b_.getInt8Ty(), 16);
  const auto dot = [&](llvm::Intrinsic::ID id, llvm::Value* to, llvm::Value* a, llvm::Value* b) {
    return b_.CreateIntrinsic(id, {words, bytes},
                              {to, b_.CreateBitCast(a, bytes), b_.CreateBitCast(b, bytes)});
  };
  if (machine_.has_neon_dot && x_unsigned == y_unsigned)
    return dot(x_unsigned ? llvm::Intrinsic::aarch64_neon_udot : llvm::Intrinsic::aarch64_neon_sdot, sum, x,
               y);
  llvm::Value *positive = x_unsigned ? x : y, *other = x_unsigned ? y : x;
  if (machine_.has_neon_mixed_dot) return dot(llvm::Intrinsic::aarch64_neon_usdot, sum, positive, other);
  if (machine_.has_neon_dot) {
    // u * s = (u - 128) * s + 128 * s
    const auto all = [&](uint64_t byte) { return llvm::ConstantInt::get(words, 0x01010101 * byte); };
    const auto sdot = llvm::Intrinsic::aarch64_neon_sdot;
    llvm::Value* less = b_.CreateXor(positive, all(0x80));
    less = x_unsigned ? dot(sdot, sum, less, other) : dot(sdot, sum, other, less);
    llvm::Value* sums = dot(sdot, llvm::Constant::getNullValue(words), all(1), other);
    return b_.CreateAdd(less, b_.CreateShl(sums, 7));
  }
  // A product of two bytes fits 16 bits, with the sign of both.
  auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), 8);
  const auto pairs =
      x_unsigned && y_unsigned ? llvm::Intrinsic::aarch64_neon_uaddlp : llvm::Intrinsic::aarch64_neon_saddlp;
  for (const int part : {0, 1}) {
    llvm::Value* products = b_.CreateMul(every_other(x, part, x_unsigned), every_other(y, part, y_unsigned));
    sum = b_.CreateAdd(sum, b_.CreateIntrinsic(pairs, {words, halves}, {products}));
  }
  return sum;
}

}  // namespace tuner::codegen
