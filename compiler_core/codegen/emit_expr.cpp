// Expressions as LLVM values.
#include <cmath>

#include "compiler_core/codegen/emit_values.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::codegen {
namespace {

// Floats of 16 bits are computed with in float32 and held as their bits.
bool is_narrow(DType t) { return t == DType::kBFloat16 || t == DType::kFloat16; }
bool is_zero(double value) { return value == 0 && !std::signbit(value); }

}  // namespace

llvm::Value* ValueEmitter::emit(const Expr& e) {
  switch (e->kind) {
    case ExprKind::kIntImm:
      return llvm::ConstantInt::get(type_of(e->dtype), static_cast<uint64_t>(e->int_value), true);
    case ExprKind::kFloatImm:
      if (is_narrow(e->dtype))
        return math_.narrowed(e->dtype, llvm::ConstantFP::get(b_.getFloatTy(), e->float_value));
      return llvm::ConstantFP::get(type_of(e->dtype), e->float_value);
    case ExprKind::kVar: {
      if (e->var == lanes_.var) {
        llvm::SmallVector<llvm::Constant*> lanes;
        for (int64_t lane = 0; lane < lanes_.count; ++lane)
          lanes.push_back(b_.getInt64(static_cast<uint64_t>(lanes_.begin + lane)));
        return llvm::ConstantVector::get(lanes);
      }
      const auto it = scope_.vars.find(e->var.get());
      if (it != scope_.vars.end()) return it->second.value;
      refuse("variable ", e->var->name, " is used outside its loop");
      return int_of(0);
    }
    case ExprKind::kLoad:
      if (llvm::Value* vector = transposed_.find(e)) return vector;
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
llvm::Value* ValueEmitter::emit_float_add(const Expr& e) {
  Expr product = e->operands[1], rest = e->operands[0];
  const auto is_product = [](const Expr& x) {
    return x->kind == ExprKind::kBinary && x->binary_op == BinaryOp::kMul;
  };
  if (!is_product(product)) std::swap(product, rest);
  if (!is_product(product) || !machine_.has_fma) {
    llvm::Value *a = emit(e->operands[0]), *b = emit(e->operands[1]);
    lanes_.match(a, b);
    return b_.CreateFAdd(a, b);
  }
  llvm::Value *c = emit(rest), *x = emit(product->operands[0]), *y = emit(product->operands[1]);
  if (c->getType()->isVectorTy() || x->getType()->isVectorTy() || y->getType()->isVectorTy()) {
    c = lanes_.widen(c);
    x = lanes_.widen(x);
    y = lanes_.widen(y);
  }
  return math_.fused(x, y, c);
}

// Quotient and remainder round towards minus infinity; a numerator known not to be negative makes them plain.
llvm::Value* ValueEmitter::emit_index_division(const Expr& e, llvm::Value* a, llvm::Value* b) {
  const bool quotient = e->binary_op == BinaryOp::kFloorDiv;
  int64_t divisor = 0;
  if (!is_const_int(e->operands[1], &divisor)) return emit_data_division(e, a, b);
  const auto bounds = const_bounds(e->operands[0], scope_.ranges);
  if (is_unsigned(e->dtype) || (divisor > 0 && bounds && bounds->first >= 0))
    return quotient ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
  return floor_division(quotient, a, b);
}

llvm::Value* ValueEmitter::floor_division(bool quotient, llvm::Value* a, llvm::Value* b) {
  llvm::Value* zero = llvm::Constant::getNullValue(a->getType());
  llvm::Value* remainder = b_.CreateSRem(a, b);
  llvm::Value* wrong =
      b_.CreateAnd(b_.CreateICmpNE(remainder, zero), b_.CreateICmpSLT(b_.CreateXor(remainder, b), zero));
  if (!quotient) return b_.CreateAdd(remainder, b_.CreateSelect(wrong, b, zero));
  return b_.CreateSub(b_.CreateSDiv(a, b), b_.CreateZExt(wrong, a->getType()));
}

// A divisor found in data: the processor traps on zero, and on the least number by -1; lanes that are masked
// hold zeros, too. By zero the quotient is a and the remainder 0.
llvm::Value* ValueEmitter::emit_data_division(const Expr& e, llvm::Value* a, llvm::Value* b) {
  const bool quotient = e->binary_op == BinaryOp::kFloorDiv;
  lanes_.match(a, b);
  llvm::Value *zero = llvm::Constant::getNullValue(b->getType()),
              *one = llvm::ConstantInt::get(b->getType(), 1);
  llvm::Value* traps = b_.CreateICmpEQ(b, zero);
  if (is_unsigned(e->dtype)) {
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
llvm::Value* ValueEmitter::emit_lane_compare(const Expr& e) {
  if (e->operands[0]->dtype != DType::kInt64) return nullptr;
  const Expr difference = e->operands[0] - e->operands[1];
  const auto bounds = const_bounds(difference, scope_.ranges);
  if (!bounds || bounds->first < INT32_MIN || bounds->second > INT32_MAX) return nullptr;
  const LinearForm form = linear_form(difference, scope_.ranges);
  int64_t stride = 0;
  llvm::Value* uniform = int_of(form.constant);
  for (const auto& [term, coefficient] : form.terms) {
    if (term->kind == ExprKind::kVar && term->var == lanes_.var) {
      stride = coefficient;
    } else if (lanes_.depends(term)) {
      return nullptr;
    } else {
      uniform = b_.CreateAdd(uniform, b_.CreateMul(emit(term), int_of(coefficient)));
    }
  }
  llvm::SmallVector<llvm::Constant*> steps;
  for (int64_t lane = 0; lane < lanes_.count; ++lane)
    steps.push_back(
        llvm::ConstantInt::getSigned(b_.getInt32Ty(), static_cast<int32_t>((lanes_.begin + lane) * stride)));
  llvm::Value* a =
      b_.CreateAdd(lanes_.widen(b_.CreateTrunc(uniform, b_.getInt32Ty())), llvm::ConstantVector::get(steps));
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

llvm::Value* ValueEmitter::emit_binary(const Expr& e) {
  const DType type = e->operands[0]->dtype;
  const BinaryOp op = e->binary_op;
  const bool comparison = op >= BinaryOp::kEq && op <= BinaryOp::kGe;
  if (is_narrow(type)) {
    const Expr wide =
        binary(op, cast(DType::kFloat32, e->operands[0]), cast(DType::kFloat32, e->operands[1]));
    return emit(comparison ? wide : cast(type, wide));
  }
  if (is_float(type) && op == BinaryOp::kAdd) return emit_float_add(e);
  if (comparison && lanes_.depends(e))
    if (llvm::Value* mask = emit_lane_compare(e)) return mask;
  llvm::Value *a = emit(e->operands[0]), *b = emit(e->operands[1]);
  lanes_.match(a, b);
  llvm::Value* result = is_float(type) ? emit_float_binary(op, a, b) : emit_int_binary(e, a, b);
  if (result != nullptr) return result;
  refuse("no such operation on ", type, " values: ", to_text(e));
  return a;
}

llvm::Value* ValueEmitter::emit_float_binary(BinaryOp op, llvm::Value* a, llvm::Value* b) {
  switch (op) {
    case BinaryOp::kSub:
      return b_.CreateFSub(a, b);
    case BinaryOp::kMul:
      return b_.CreateFMul(a, b);
    case BinaryOp::kDiv:
      return math_.quotient(a, b);
    case BinaryOp::kMax:
    case BinaryOp::kMin:
      return math_.extreme(op == BinaryOp::kMax, a, b);
    case BinaryOp::kAtLeast:
      return b_.CreateSelect(b_.CreateFCmpOGT(a, b), a, b);
    case BinaryOp::kPow:
      return math_.power(a, b);
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

llvm::Value* ValueEmitter::emit_int_binary(const Expr& e, llvm::Value* a, llvm::Value* b) {
  const DType type = e->operands[0]->dtype;
  const bool no_sign = is_unsigned(type) || type == DType::kBool;
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
      return b_.CreateSelect(no_sign ? b_.CreateICmpULT(a, b) : b_.CreateICmpSLT(a, b), a, b);
    case BinaryOp::kMax:
      return b_.CreateSelect(no_sign ? b_.CreateICmpUGT(a, b) : b_.CreateICmpSGT(a, b), a, b);
    case BinaryOp::kEq:
      return b_.CreateICmpEQ(a, b);
    case BinaryOp::kNe:
      return b_.CreateICmpNE(a, b);
    case BinaryOp::kLt:
      return no_sign ? b_.CreateICmpULT(a, b) : b_.CreateICmpSLT(a, b);
    case BinaryOp::kLe:
      return no_sign ? b_.CreateICmpULE(a, b) : b_.CreateICmpSLE(a, b);
    case BinaryOp::kGt:
      return no_sign ? b_.CreateICmpUGT(a, b) : b_.CreateICmpSGT(a, b);
    case BinaryOp::kGe:
      return no_sign ? b_.CreateICmpUGE(a, b) : b_.CreateICmpSGE(a, b);
    case BinaryOp::kAnd:
      return b_.CreateAnd(a, b);
    case BinaryOp::kOr:
      return b_.CreateOr(a, b);
    case BinaryOp::kXor:
      return b_.CreateXor(a, b);
    case BinaryOp::kBitAnd:
      return b_.CreateAnd(a, b);
    case BinaryOp::kBitOr:
      return b_.CreateOr(a, b);
    case BinaryOp::kShiftLeft:
      return b_.CreateShl(a, b);
    case BinaryOp::kShiftRight:
      return no_sign ? b_.CreateLShr(a, b) : b_.CreateAShr(a, b);
    case BinaryOp::kDiv:
    case BinaryOp::kPow:
    case BinaryOp::kAtLeast:
      break;
  }
  return nullptr;
}

llvm::Value* ValueEmitter::emit_unary(const Expr& e) {
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
  if (is_float(type)) return math_.math(e->unary_op, x);
  refuse("no such operation on ", type, " values: ", to_text(e));
  return x;
}

// A Load in the branch not taken touches no memory: lanes are masked, scalars branch.
llvm::Value* ValueEmitter::emit_select(const Expr& e) {
  const auto loads = [&](const Expr& x) {
    bool found = false;
    visit(x, [&](const Expr& inner) {
      found = found || (inner->kind == ExprKind::kLoad && transposed_.find(inner) == nullptr);
    });
    return found;
  };
  const Expr &then_value = e->operands[1], &else_value = e->operands[2];
  // A tile was loaded under the condition, with zeros elsewhere.
  if (transposed_.find(then_value) != nullptr && else_value->kind == ExprKind::kFloatImm &&
      is_zero(else_value->float_value))
    return emit(then_value);
  llvm::Value* condition = emit(e->operands[0]);
  if (const auto* known = llvm::dyn_cast<llvm::Constant>(condition)) {
    if (known->isAllOnesValue()) return emit(then_value);
    if (known->isNullValue()) return emit(else_value);
  }
  if (condition->getType()->isVectorTy()) {
    llvm::Value* outer = lanes_.mask;
    lanes_.mask = lanes_.with_mask(condition);
    llvm::Value* a = emit(then_value);
    lanes_.mask = outer;
    if (loads(else_value)) lanes_.mask = lanes_.with_mask(b_.CreateNot(condition));
    llvm::Value* b = emit(else_value);
    lanes_.mask = outer;
    return b_.CreateSelect(condition, lanes_.widen(a), lanes_.widen(b));
  }
  if (!loads(then_value) && !loads(else_value)) {
    llvm::Value *a = emit(then_value), *b = emit(else_value);
    lanes_.match(a, b);
    if (a->getType()->isVectorTy()) condition = lanes_.widen(condition);  // a blend, not a branch
    return b_.CreateSelect(condition, a, b);
  }
  llvm::LLVMContext& context = module_.getContext();
  auto* then_block = llvm::BasicBlock::Create(context, "select.then", scope_.region.function);
  auto* else_block = llvm::BasicBlock::Create(context, "select.else", scope_.region.function);
  auto* after = llvm::BasicBlock::Create(context, "select.end", scope_.region.function);
  const bool as_vector = lanes_.depends(then_value) || lanes_.depends(else_value);
  b_.CreateCondBr(condition, then_block, else_block);
  b_.SetInsertPoint(then_block);
  llvm::Value* a = emit(then_value);
  if (as_vector) a = lanes_.widen(a);
  then_block = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(else_block);
  llvm::Value* b = emit(else_value);
  if (as_vector) b = lanes_.widen(b);
  else_block = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* phi = b_.CreatePHI(a->getType(), 2);
  phi->addIncoming(a, then_block);
  phi->addIncoming(b, else_block);
  return phi;
}

llvm::Value* ValueEmitter::emit_cast(DType to, const Expr& e) {
  const DType from = e->dtype;
  if (from == to) return emit(e);
  if (to == DType::kInt32)
    if (llvm::Value* whole = nearest_int(e)) return whole;
  if (to == DType::kUInt8 || to == DType::kInt8)
    if (llvm::Value* bytes = saturated_bytes(to, e)) return bytes;
  if (is_narrow(to)) return math_.narrowed(to, emit_cast(DType::kFloat32, e));
  if (is_narrow(from) && to != DType::kFloat32) return emit(cast(to, cast(DType::kFloat32, e)));
  llvm::Value* x = emit(e);
  if (is_narrow(from)) return math_.widened(from, x);
  llvm::Type* type = type_of(to);
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()))
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  const bool from_unsigned = is_unsigned(from) || from == DType::kBool, to_unsigned = is_unsigned(to);
  if (to == DType::kBool)
    return is_float(from) ? b_.CreateFCmpUNE(x, llvm::Constant::getNullValue(x->getType()))
                          : b_.CreateIsNotNull(x);
  if (is_float(from) && is_float(to)) return b_.CreateFPCast(x, type);
  if (is_float(from)) return to_unsigned ? b_.CreateFPToUI(x, type) : b_.CreateFPToSI(x, type);
  if (is_float(to)) return from_unsigned ? b_.CreateUIToFP(x, type) : b_.CreateSIToFP(x, type);
  return b_.CreateIntCast(x, type, !from_unsigned);
}

}  // namespace tuner::codegen
