// Values: expressions of the Program as LLVM values; scalars where all lanes agree, vectors where they
// differ.
#include <cmath>

#include "compiler_core/codegen/emitter.h"
#include "compiler_core/ir/visitor.h"
#include "llvm/Analysis/SimplifyQuery.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace tuner::codegen {
namespace {

// Floats of 16 bits are computed with in float32 and held as their bits.
bool is_narrow(DType t) { return t == DType::kBFloat16 || t == DType::kFloat16; }
bool is_zero(double value) { return value == 0 && !std::signbit(value); }

}  // namespace

bool Emitter::depends_on_lane(const Expr& e) const { return lane_var_ != nullptr && uses_var(e, lane_var_); }

llvm::Value* Emitter::widen(llvm::Value* v) {
  if (lanes_ == 0 || v->getType()->isVectorTy()) return v;
  return b_.CreateVectorSplat(static_cast<unsigned>(lanes_), v);
}

void Emitter::match(llvm::Value*& a, llvm::Value*& b) {
  if (a->getType()->isVectorTy() == b->getType()->isVectorTy()) return;
  a = widen(a);
  b = widen(b);
}

llvm::Value* Emitter::with_mask(llvm::Value* mask) {
  mask = widen(mask);
  return mask_ == nullptr ? mask : b_.CreateAnd(mask_, mask);
}

llvm::Value* Emitter::emit(const Expr& e) {
  switch (e->kind) {
    case ExprKind::kIntImm:
      return llvm::ConstantInt::get(type_of(e->dtype), static_cast<uint64_t>(e->int_value), true);
    case ExprKind::kFloatImm:
      if (is_narrow(e->dtype))
        return narrowed(e->dtype, llvm::ConstantFP::get(b_.getFloatTy(), e->float_value));
      return llvm::ConstantFP::get(type_of(e->dtype), e->float_value);
    case ExprKind::kVar: {
      if (e->var == lane_var_) {
        llvm::SmallVector<llvm::Constant*> lanes;
        for (int64_t lane = 0; lane < lanes_; ++lane)
          lanes.push_back(b_.getInt64(static_cast<uint64_t>(lane_begin_ + lane)));
        return llvm::ConstantVector::get(lanes);
      }
      const auto it = vars_.find(e->var.get());
      if (it != vars_.end()) return it->second.value;
      refuse("variable ", e->var->name, " is used outside its loop");
      return int_of(0);
    }
    case ExprKind::kLoad:
      if (llvm::Value* vector = transposed(e)) return vector;
      return emit_load(e->buffer, e->operands);
    case ExprKind::kBinary:
      return emit_binary(e);
    case ExprKind::kUnary:
      return emit_unary(e);
    case ExprKind::kSelect:
      return emit_select(e);
    case ExprKind::kCast:
      return emit_cast(e->dtype, e->operands[0]);
  }
  return nullptr;
}

// a * b + c in one rounding where the target has it: what every reduction's inner statement is.
llvm::Value* Emitter::emit_float_add(const Expr& e) {
  Expr product = e->operands[1], rest = e->operands[0];
  const auto is_product = [](const Expr& x) {
    return x->kind == ExprKind::kBinary && x->binary_op == BinaryOp::kMul;
  };
  if (!is_product(product)) std::swap(product, rest);
  if (!is_product(product) || !machine_.has_fma) {
    llvm::Value *a = emit(e->operands[0]), *b = emit(e->operands[1]);
    match(a, b);
    return b_.CreateFAdd(a, b);
  }
  llvm::Value *c = emit(rest), *x = emit(product->operands[0]), *y = emit(product->operands[1]);
  if (c->getType()->isVectorTy() || x->getType()->isVectorTy() || y->getType()->isVectorTy()) {
    c = widen(c);
    x = widen(x);
    y = widen(y);
  }
  return fused(x, y, c);
}

// Quotient and remainder round towards minus infinity; a numerator known not to be negative makes them plain.
llvm::Value* Emitter::emit_index_division(const Expr& e, llvm::Value* a, llvm::Value* b) {
  const bool quotient = e->binary_op == BinaryOp::kFloorDiv;
  int64_t divisor = 0;
  if (!is_const_int(e->operands[1], &divisor)) return emit_data_division(e, a, b);
  const auto bounds = const_bounds(e->operands[0], ranges_);
  if (e->dtype == DType::kUInt8 || (divisor > 0 && bounds && bounds->first >= 0))
    return quotient ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
  return floor_division(quotient, a, b);
}

llvm::Value* Emitter::floor_division(bool quotient, llvm::Value* a, llvm::Value* b) {
  llvm::Value* zero = llvm::Constant::getNullValue(a->getType());
  llvm::Value* remainder = b_.CreateSRem(a, b);
  llvm::Value* wrong =
      b_.CreateAnd(b_.CreateICmpNE(remainder, zero), b_.CreateICmpSLT(b_.CreateXor(remainder, b), zero));
  if (!quotient) return b_.CreateAdd(remainder, b_.CreateSelect(wrong, b, zero));
  return b_.CreateSub(b_.CreateSDiv(a, b), b_.CreateZExt(wrong, a->getType()));
}

// A divisor found in data: the processor traps on zero, and on the least number by -1; lanes that are masked hold
// zeros, too. By zero the quotient is a and the remainder 0.
llvm::Value* Emitter::emit_data_division(const Expr& e, llvm::Value* a, llvm::Value* b) {
  const bool quotient = e->binary_op == BinaryOp::kFloorDiv;
  match(a, b);
  llvm::Value *zero = llvm::Constant::getNullValue(b->getType()),
              *one = llvm::ConstantInt::get(b->getType(), 1);
  llvm::Value* traps = b_.CreateICmpEQ(b, zero);
  if (e->dtype == DType::kUInt8) {
    b = b_.CreateSelect(traps, one, b);
    return quotient ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
  }
  llvm::Value* is_minus_one = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType()));
  llvm::Value* divided =
      floor_division(quotient, a, b_.CreateSelect(b_.CreateOr(traps, is_minus_one), one, b));
  return quotient ? b_.CreateSelect(is_minus_one, b_.CreateNeg(a), divided) : divided;
}

// Comparison of affine indices between lanes in 32 bits: half the vectors of the 64-bit form. Null when it
// does not apply.
llvm::Value* Emitter::emit_lane_compare(const Expr& e) {
  if (e->operands[0]->dtype != DType::kInt64) return nullptr;
  const Expr difference = e->operands[0] - e->operands[1];
  const auto bounds = const_bounds(difference, ranges_);
  if (!bounds || bounds->first < INT32_MIN || bounds->second > INT32_MAX) return nullptr;
  const LinearForm form = linear_form(difference, ranges_);
  int64_t stride = 0;
  llvm::Value* uniform = int_of(form.constant);
  for (const auto& [term, coefficient] : form.terms) {
    if (term->kind == ExprKind::kVar && term->var == lane_var_) {
      stride = coefficient;
    } else if (depends_on_lane(term)) {
      return nullptr;
    } else {
      uniform = b_.CreateAdd(uniform, b_.CreateMul(emit(term), int_of(coefficient)));
    }
  }
  llvm::SmallVector<llvm::Constant*> steps;
  for (int64_t lane = 0; lane < lanes_; ++lane)
    steps.push_back(
        llvm::ConstantInt::getSigned(b_.getInt32Ty(), static_cast<int32_t>((lane_begin_ + lane) * stride)));
  llvm::Value* a =
      b_.CreateAdd(widen(b_.CreateTrunc(uniform, b_.getInt32Ty())), llvm::ConstantVector::get(steps));
  llvm::Value* zero = llvm::Constant::getNullValue(a->getType());
  switch (e->binary_op) {
    case BinaryOp::kEq:
      return b_.CreateICmpEQ(a, zero);
    case BinaryOp::kNe:
      return b_.CreateICmpNE(a, zero);
    case BinaryOp::kLt:
      return b_.CreateICmpSLT(a, zero);
    case BinaryOp::kLe:
      return b_.CreateICmpSLE(a, zero);
    case BinaryOp::kGt:
      return b_.CreateICmpSGT(a, zero);
    case BinaryOp::kGe:
      return b_.CreateICmpSGE(a, zero);
    default:
      return nullptr;
  }
}

llvm::Value* Emitter::emit_binary(const Expr& e) {
  const DType type = e->operands[0]->dtype;
  const BinaryOp op = e->binary_op;
  const bool comparison = op >= BinaryOp::kEq && op <= BinaryOp::kGe;
  if (is_narrow(type)) {
    const Expr wide =
        binary(op, cast(DType::kFloat32, e->operands[0]), cast(DType::kFloat32, e->operands[1]));
    return emit(comparison ? wide : cast(type, wide));
  }
  if (is_float(type) && op == BinaryOp::kAdd) return emit_float_add(e);
  if (comparison && depends_on_lane(e))
    if (llvm::Value* mask = emit_lane_compare(e)) return mask;
  llvm::Value *a = emit(e->operands[0]), *b = emit(e->operands[1]);
  match(a, b);
  llvm::Value* result = is_float(type) ? emit_float_binary(op, a, b) : emit_int_binary(e, a, b);
  if (result != nullptr) return result;
  refuse("no such operation on ", type, " values: ", to_text(e));
  return a;
}

// x where it is larger (smaller) than y, otherwise y, also where either is a NaN: one instruction of x86.
llvm::Value* Emitter::first_if_beyond(bool largest, llvm::Value* x, llvm::Value* y) {
  return b_.CreateSelect(largest ? b_.CreateFCmpOGT(x, y) : b_.CreateFCmpOLT(x, y), x, y);
}

// The maximum or minimum of IEEE 754: a NaN passes. On x86 one instruction is enough where one operand is known to be none.
// Otherwise b is looked at, not a: as the accumulator of a reduction comes as a, the next step waits for one instruction
// only.
llvm::Value* Emitter::extreme(bool largest, llvm::Value* a, llvm::Value* b) {
  if (machine_.has_neon)
    return b_.CreateBinaryIntrinsic(largest ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, b);
  const llvm::SimplifyQuery query(module_.getDataLayout());
  if (llvm::isKnownNeverNaN(a, query)) return first_if_beyond(largest, a, b);
  llvm::Value* picked = first_if_beyond(largest, b, a);
  return llvm::isKnownNeverNaN(b, query) ? picked : or_nan_of(b, picked);
}

// y where it is a NaN, elsewhere x. vfixupimmps looks at y by a table of kinds of numbers, the first two NaNs; it does not
// stand in the way of maxima and loads, as a comparison into a mask does, which costs a half of a maximum of many numbers.
llvm::Value* Emitter::or_nan_of(llvm::Value* y, llvm::Value* x) {
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

llvm::Value* Emitter::emit_float_binary(BinaryOp op, llvm::Value* a, llvm::Value* b) {
  switch (op) {
    case BinaryOp::kSub:
      return b_.CreateFSub(a, b);
    case BinaryOp::kMul:
      return b_.CreateFMul(a, b);
    case BinaryOp::kDiv:
      return b_.CreateFDiv(a, b);
    case BinaryOp::kMax:
    case BinaryOp::kMin:
      return extreme(op == BinaryOp::kMax, a, b);
    case BinaryOp::kAtLeast:
      return b_.CreateSelect(b_.CreateFCmpOGT(a, b), a, b);
    case BinaryOp::kPow:
      return power(a, b);
    case BinaryOp::kEq:
      return b_.CreateFCmpOEQ(a, b);
    case BinaryOp::kNe:
      return b_.CreateFCmpUNE(a, b);
    case BinaryOp::kLt:
      return b_.CreateFCmpOLT(a, b);
    case BinaryOp::kLe:
      return b_.CreateFCmpOLE(a, b);
    case BinaryOp::kGt:
      return b_.CreateFCmpOGT(a, b);
    case BinaryOp::kGe:
      return b_.CreateFCmpOGE(a, b);
    default:
      return nullptr;
  }
}

llvm::Value* Emitter::emit_int_binary(const Expr& e, llvm::Value* a, llvm::Value* b) {
  const DType type = e->operands[0]->dtype;
  const bool is_unsigned = type == DType::kUInt8 || type == DType::kBool;
  const bool wraps = type != DType::kInt64;  // indices never overflow; small integers wrap
  switch (e->binary_op) {
    case BinaryOp::kAdd:
      return b_.CreateAdd(a, b, "", false, !wraps);
    case BinaryOp::kSub:
      return b_.CreateSub(a, b, "", false, !wraps);
    case BinaryOp::kMul:
      return b_.CreateMul(a, b, "", false, !wraps);
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      return emit_index_division(e, a, b);
    case BinaryOp::kMin:
      return b_.CreateSelect(is_unsigned ? b_.CreateICmpULT(a, b) : b_.CreateICmpSLT(a, b), a, b);
    case BinaryOp::kMax:
      return b_.CreateSelect(is_unsigned ? b_.CreateICmpUGT(a, b) : b_.CreateICmpSGT(a, b), a, b);
    case BinaryOp::kEq:
      return b_.CreateICmpEQ(a, b);
    case BinaryOp::kNe:
      return b_.CreateICmpNE(a, b);
    case BinaryOp::kLt:
      return is_unsigned ? b_.CreateICmpULT(a, b) : b_.CreateICmpSLT(a, b);
    case BinaryOp::kLe:
      return is_unsigned ? b_.CreateICmpULE(a, b) : b_.CreateICmpSLE(a, b);
    case BinaryOp::kGt:
      return is_unsigned ? b_.CreateICmpUGT(a, b) : b_.CreateICmpSGT(a, b);
    case BinaryOp::kGe:
      return is_unsigned ? b_.CreateICmpUGE(a, b) : b_.CreateICmpSGE(a, b);
    case BinaryOp::kAnd:
      return b_.CreateAnd(a, b);
    case BinaryOp::kOr:
      return b_.CreateOr(a, b);
    case BinaryOp::kXor:
      return b_.CreateXor(a, b);
    case BinaryOp::kDiv:
    case BinaryOp::kPow:
    case BinaryOp::kAtLeast:
      break;
  }
  return nullptr;
}

llvm::Value* Emitter::emit_unary(const Expr& e) {
  const DType type = e->operands[0]->dtype;
  if (is_narrow(type)) return emit(cast(type, unary(e->unary_op, cast(DType::kFloat32, e->operands[0]))));
  llvm::Value* x = emit(e->operands[0]);
  switch (e->unary_op) {
    case UnaryOp::kNot:
      return b_.CreateNot(x);
    case UnaryOp::kNeg:
      return is_float(type) ? b_.CreateFNeg(x) : b_.CreateNeg(x);
    case UnaryOp::kAbs:
      if (is_float(type)) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse());
    default:
      break;
  }
  if (is_float(type)) return math(e->unary_op, x);
  refuse("no such operation on ", type, " values: ", to_text(e));
  return x;
}

// A Load in the branch not taken touches no memory: lanes are masked, scalars branch.
llvm::Value* Emitter::emit_select(const Expr& e) {
  const auto loads = [&](const Expr& x) {
    bool found = false;
    visit(x, [&](const Expr& inner) {
      found = found || (inner->kind == ExprKind::kLoad && transposed(inner) == nullptr);
    });
    return found;
  };
  const Expr &then_value = e->operands[1], &else_value = e->operands[2];
  // A tile was loaded under the condition, with zeros elsewhere.
  if (transposed(then_value) != nullptr && else_value->kind == ExprKind::kFloatImm &&
      is_zero(else_value->float_value))
    return emit(then_value);
  llvm::Value* condition = emit(e->operands[0]);
  if (const auto* known = llvm::dyn_cast<llvm::Constant>(condition)) {
    if (known->isAllOnesValue()) return emit(then_value);
    if (known->isNullValue()) return emit(else_value);
  }
  if (condition->getType()->isVectorTy()) {
    llvm::Value* outer = mask_;
    mask_ = with_mask(condition);
    llvm::Value* a = emit(then_value);
    mask_ = outer;
    if (loads(else_value)) mask_ = with_mask(b_.CreateNot(condition));
    llvm::Value* b = emit(else_value);
    mask_ = outer;
    return b_.CreateSelect(condition, widen(a), widen(b));
  }
  if (!loads(then_value) && !loads(else_value)) {
    llvm::Value *a = emit(then_value), *b = emit(else_value);
    match(a, b);
    if (a->getType()->isVectorTy()) condition = widen(condition);  // a blend, not a branch
    return b_.CreateSelect(condition, a, b);
  }
  llvm::LLVMContext& context = module_.getContext();
  auto* then_block = llvm::BasicBlock::Create(context, "select.then", region_.function);
  auto* else_block = llvm::BasicBlock::Create(context, "select.else", region_.function);
  auto* after = llvm::BasicBlock::Create(context, "select.end", region_.function);
  const bool as_vector = depends_on_lane(then_value) || depends_on_lane(else_value);
  b_.CreateCondBr(condition, then_block, else_block);
  b_.SetInsertPoint(then_block);
  llvm::Value* a = emit(then_value);
  if (as_vector) a = widen(a);
  then_block = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(else_block);
  llvm::Value* b = emit(else_value);
  if (as_vector) b = widen(b);
  else_block = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* phi = b_.CreatePHI(a->getType(), 2);
  phi->addIncoming(a, then_block);
  phi->addIncoming(b, else_block);
  return phi;
}

// The nearest bfloat16, ties to even, as its bits; any NaN becomes a quiet one. The instruction takes numbers
// below the normal range for 0, as dot products do.
llvm::Value* Emitter::bfloat16_bits(llvm::Value* x) {
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
llvm::Value* Emitter::float16_bits(llvm::Value* x) {
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

llvm::Value* Emitter::narrowed(DType to, llvm::Value* x) {
  return to == DType::kBFloat16 ? bfloat16_bits(x) : float16_bits(x);
}

// The number that the bits are, as float32: exact. Of float16 without an instruction: the bits of a float32
// with the exponent too small by 112, which a product mends also below the normal range, but not for what is
// not finite.
llvm::Value* Emitter::widened(DType from, llvm::Value* x) {
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

// int32(round(x)) of float32 as one instruction. Null: the target has none for as many lanes, or `e` rounds nothing.
llvm::Value* Emitter::nearest_int(const Expr& e) {
  if (!rounds_lanes(e)) return nullptr;
  llvm::Value* x = emit(e->operands[0]);
  if (lanes_ == 4) return b_.CreateIntrinsic(llvm::Intrinsic::x86_sse2_cvtps2dq, {}, {x});
  if (lanes_ == 8) return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx_cvt_ps2dq_256, {}, {x});
  llvm::Value* unused = llvm::PoisonValue::get(x->getType()->getWithNewType(b_.getInt32Ty()));
  llvm::Value* all = llvm::Constant::getAllOnesValue(b_.getInt16Ty());
  return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
                            {x, unused, all, b_.getInt32(4)});  // 4: rounds as usual
}

bool Emitter::rounds_lanes(const Expr& e) const {
  if (e->kind != ExprKind::kUnary || e->unary_op != UnaryOp::kRound || e->dtype != DType::kFloat32)
    return false;
  return machine_.has_nearest_int && depends_on_lane(e->operands[0]) &&
         (lanes_ == 4 || lanes_ == 8 || lanes_ == 16) && lanes_ * 32 <= machine_.vector_bits;
}

// uint8(int32(round(min(at_least(x, 0 - z), 255 - z))) + z), what requantised sums are, where one instruction narrows to
// bytes and saturates: `min` is left out. Numbers that int32 does not hold become -2^31, which is above 255 as an
// unsigned number, also with z added. Null: `e` is something else.
llvm::Value* Emitter::saturated_byte(const Expr& e) {
  const auto operand = [](const Expr& x, ExprKind kind, size_t i) {
    return x.defined() && x->kind == kind && i < x->operands.size() ? x->operands[i] : Expr();
  };
  if (!machine_.has_saturation || !is_binary(e, BinaryOp::kAdd)) return nullptr;
  const Expr &whole = e->operands[0], &zero_point = e->operands[1];
  const Expr round = operand(whole, ExprKind::kCast, 0);
  if (!round.defined() || !rounds_lanes(round)) return nullptr;
  const Expr& bounded = round->operands[0];
  const auto is_bound = [&](const Expr& x, int64_t value) {
    const Expr difference = operand(x, ExprKind::kCast, 0);
    int64_t found = 0;
    return difference.defined() && is_binary(difference, BinaryOp::kSub) &&
           is_const_int(difference->operands[0], &found) && found == value &&
           equal(difference->operands[1], zero_point);
  };
  if (!is_binary(bounded, BinaryOp::kMin) || !is_bound(bounded->operands[1], 255)) return nullptr;
  const Expr& above = bounded->operands[0];
  if (!is_binary(above, BinaryOp::kAtLeast) || !is_bound(above->operands[1], 0)) return nullptr;
  llvm::Value* sum = b_.CreateAdd(nearest_int(unary(UnaryOp::kRound, above)), widen(emit(zero_point)));
  sum = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, sum, llvm::ConstantInt::get(sum->getType(), 255));
  return b_.CreateTrunc(sum, sum->getType()->getWithNewType(b_.getInt8Ty()));
}

llvm::Value* Emitter::emit_cast(DType to, const Expr& e) {
  const DType from = e->dtype;
  if (from == to) return emit(e);
  if (to == DType::kInt32)
    if (llvm::Value* whole = nearest_int(e)) return whole;
  if (to == DType::kUInt8)
    if (llvm::Value* byte = saturated_byte(e)) return byte;
  if (is_narrow(to)) return narrowed(to, emit_cast(DType::kFloat32, e));
  if (is_narrow(from) && to != DType::kFloat32) return emit(cast(to, cast(DType::kFloat32, e)));
  llvm::Value* x = emit(e);
  if (is_narrow(from)) return widened(from, x);
  llvm::Type* type = type_of(to);
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()))
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  const bool from_unsigned = from == DType::kUInt8 || from == DType::kBool, to_unsigned = to == DType::kUInt8;
  if (to == DType::kBool)
    return is_float(from) ? b_.CreateFCmpUNE(x, llvm::Constant::getNullValue(x->getType()))
                          : b_.CreateIsNotNull(x);
  if (is_float(from) && is_float(to)) return b_.CreateFPCast(x, type);
  if (is_float(from)) return to_unsigned ? b_.CreateFPToUI(x, type) : b_.CreateFPToSI(x, type);
  if (is_float(to)) return from_unsigned ? b_.CreateUIToFP(x, type) : b_.CreateSIToFP(x, type);
  return b_.CreateIntCast(x, type, !from_unsigned);
}

}  // namespace tuner::codegen
