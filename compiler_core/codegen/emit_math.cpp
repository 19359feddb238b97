// Elementary functions, expanded so that a vector loop stays a vector loop. float32 follows Cephes (a few
// ulp; the test holds them against the C library); smaller floats go through float32. float64 is for
// reference answers: calls to the C library, which the process that loads the kernel provides.
#include <array>
#include <cmath>
#include <numbers>

#include "compiler_core/codegen/emit_math.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace tuner::codegen {

llvm::Value* MathEmitter::number(llvm::Value* like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}

llvm::Value* MathEmitter::fused(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
  if (!machine_.has_fma) return b_.CreateFAdd(b_.CreateFMul(a, b), c);
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

llvm::Value* MathEmitter::horner(llvm::Value* x, std::initializer_list<double> coefficients) {
  llvm::Value* sum = nullptr;
  for (const double c : coefficients) sum = sum == nullptr ? number(x, c) : fused(sum, x, number(x, c));
  return sum;
}

llvm::Value* MathEmitter::per_lane_call(const char* symbol, std::span<llvm::Value* const> operands) {
  const std::vector<llvm::Type*> types(operands.size(), b_.getDoubleTy());
  llvm::FunctionCallee f = module_.getOrInsertFunction(
      symbol, llvm::FunctionType::get(b_.getDoubleTy(), types, /*isVarArg=*/false));
  llvm::Type* type = operands[0]->getType();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (vector == nullptr) return b_.CreateCall(f, llvm::ArrayRef(operands.data(), operands.size()));
  llvm::Value* result = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
    std::vector<llvm::Value*> scalars;
    for (llvm::Value* x : operands) scalars.push_back(b_.CreateExtractElement(x, uint64_t{lane}));
    result = b_.CreateInsertElement(result, b_.CreateCall(f, scalars), uint64_t{lane});
  }
  return result;
}

llvm::Value* MathEmitter::in_type(llvm::Type* scalar, llvm::Value* x) {
  llvm::Type* type = scalar;
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()))
    type = llvm::FixedVectorType::get(scalar, vector->getNumElements());
  return b_.CreateFPCast(x, type);
}

llvm::Value* MathEmitter::power(llvm::Value* a, llvm::Value* b) {
  const std::array operands{in_type(b_.getDoubleTy(), a), in_type(b_.getDoubleTy(), b)};
  return b_.CreateFPCast(per_lane_call("pow", operands), a->getType());
}

namespace {

// The C library's function; null for one that is expanded here.
const char* library_function(UnaryOp op) {
  constexpr const char* kNames[] = {"sin",  "cos",  "tan",   "asin",  "acos", "atan",
                                    "sinh", "cosh", "asinh", "acosh", "atanh"};
  return op >= UnaryOp::kSin ? kNames[static_cast<int>(op) - static_cast<int>(UnaryOp::kSin)] : nullptr;
}

}  // namespace

llvm::Value* MathEmitter::math(UnaryOp op, llvm::Value* x) {
  llvm::Type* type = x->getType();
  if (op == UnaryOp::kSqrt) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
  if (op == UnaryOp::kRsqrt)
    return b_.CreateFDiv(number(x, 1), b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
  if (op == UnaryOp::kFloor) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
  if (op == UnaryOp::kRound) return rounded(x);
  if (op == UnaryOp::kTf32) return in_type(type->getScalarType(), tf32(in_type(b_.getFloatTy(), x)));
  if (const char* symbol = library_function(op)) {
    const std::array operands{in_type(b_.getDoubleTy(), x)};
    return b_.CreateFPCast(per_lane_call(symbol, operands), type);
  }
  if (type->getScalarType()->isDoubleTy()) {
    switch (op) {
      case UnaryOp::kExp:
        return per_lane_call("exp", std::array{x});
      case UnaryOp::kLog:
        return per_lane_call("log", std::array{x});
      case UnaryOp::kTanh:
        return per_lane_call("tanh", std::array{x});
      case UnaryOp::kErf:
        return per_lane_call("erf", std::array{x});
      default:
        break;
    }
  }
  if (!type->getScalarType()->isFloatTy())
    return b_.CreateFPTrunc(math(op, in_type(b_.getFloatTy(), x)), type);
  switch (op) {
    case UnaryOp::kExp:
      return exp32(x);
    case UnaryOp::kLog:
      return log32(x);
    case UnaryOp::kTanh:
      return tanh32(x);
    case UnaryOp::kErf:
      return erf32(x);
    default:
      refuse("no expansion of this function");
      return x;
  }
}

// Where no instruction rounds, adding 2^23 (to doubles 2^52) does: the sum has no place for fractions. A
// number of that size has none itself.
llvm::Value* MathEmitter::rounded(llvm::Value* x) {
  if (machine_.has_fma) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
  llvm::Value* large = number(x, x->getType()->getScalarType()->isDoubleTy() ? 0x1p52 : 0x1p23);
  llvm::Value* of_its_sign = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, large, x);
  llvm::Value* whole = b_.CreateFSub(b_.CreateFAdd(x, of_its_sign), of_its_sign);
  llvm::Value* size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  return b_.CreateSelect(b_.CreateFCmpOLT(size, large), whole, x);
}

llvm::Value* MathEmitter::tf32(llvm::Value* x) {
  llvm::Type* bits = b_.getInt32Ty();
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()))
    bits = llvm::FixedVectorType::get(bits, vector->getNumElements());
  return b_.CreateBitCast(b_.CreateAnd(b_.CreateBitCast(x, bits), llvm::ConstantInt::getSigned(bits, -8192)),
                          x->getType());
}

// e^x = 2^n * e^r, |r| <= ln(2)/2. Above the bound x is clamped to, the last product is infinite by itself.
// Far below, as masks of attention put it, the result is 0 without that product: Intel's CPUs take 150 cycles
// for one that leaves the normal range. Comparisons are such that a NaN passes. 14 instructions of a vector
// with vscalefps.
llvm::Value* MathEmitter::exp32(llvm::Value* x) {
  llvm::Value *most = number(x, 89), *none = number(x, 0);
  x = b_.CreateSelect(b_.CreateFCmpOLT(most, x), most, x);
  llvm::Value* vanishes = b_.CreateFCmpOGT(number(x, -104), x);
  // vscalefps takes any n; the other form wants one that a float's exponent has.
  if (!has_scale(x)) x = b_.CreateSelect(vanishes, none, x);
  const Power e = power_of_e(x);
  return times_power_of_two(b_.CreateSelect(vanishes, none, e.y), e.n, e.shifted);
}
llvm::Value* MathEmitter::bounded_exp32(llvm::Value* x) {
  const Power e = power_of_e(x);
  return times_power_of_two(e.y, e.n, e.shifted);
}
MathEmitter::Power MathEmitter::power_of_e(llvm::Value* x) {
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  llvm::Value* magic = number(x, 12582912);
  llvm::Value* shifted = fused(x, number(x, std::numbers::log2e), magic);
  llvm::Value* n = b_.CreateFSub(shifted, magic);
  llvm::Value* r = fused(n, number(x, -0.693359375), x);
  r = fused(n, number(x, 2.12194440e-4), r);
  llvm::Value* p = horner(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                              1.6666665459e-1, 5.0000001201e-1});
  llvm::Value* y = b_.CreateFAdd(fused(p, b_.CreateFMul(r, r), r), number(x, 1));
  return {.y = y, .n = n, .shifted = shifted};
}

bool MathEmitter::has_scale(llvm::Value* x) const {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  const unsigned lanes = vector == nullptr ? 1 : vector->getNumElements();
  return machine_.has_scale && (lanes == 4 || lanes == 8 || lanes == 16);
}

// y * 2^n, right below the normal range too. The low bits of `shifted` hold the integer n.
llvm::Value* MathEmitter::times_power_of_two(llvm::Value* y, llvm::Value* n, llvm::Value* shifted) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(y->getType());
  const unsigned lanes = vector == nullptr ? 1 : vector->getNumElements();
  if (has_scale(y)) {
    const bool whole = lanes == 16;
    const llvm::Intrinsic::ID id = whole        ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_512
                                   : lanes == 8 ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_256
                                                : llvm::Intrinsic::x86_avx512_mask_scalef_ps_128;
    llvm::Type* mask = whole ? b_.getInt16Ty() : b_.getInt8Ty();
    std::vector<llvm::Value*> operands{y, n, y, llvm::Constant::getAllOnesValue(mask)};
    if (whole) operands.push_back(b_.getInt32(4));  // rounds as usual
    return b_.CreateIntrinsic(id, {}, operands);
  }
  // Two halves: a power of two below the normal range has no bits of its own.
  llvm::Type* ints = b_.getInt32Ty();
  if (vector != nullptr) ints = llvm::FixedVectorType::get(ints, lanes);
  llvm::Value* whole =
      b_.CreateSub(b_.CreateBitCast(shifted, ints), b_.CreateBitCast(number(y, 12582912), ints));
  llvm::Value* half = b_.CreateAShr(whole, 1);
  const auto power = [&](llvm::Value* k) {
    llvm::Value* bits = b_.CreateShl(b_.CreateAdd(k, llvm::ConstantInt::get(ints, 127)), 23);
    return b_.CreateBitCast(bits, y->getType());
  };
  return b_.CreateFMul(b_.CreateFMul(y, power(half)), power(b_.CreateSub(whole, half)));
}

// log(x) = n * ln(2) + log(m), m in [sqrt(1/2), sqrt(2)).
llvm::Value* MathEmitter::log32(llvm::Value* x) {
  llvm::Type* ints = b_.getInt32Ty();
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()))
    ints = llvm::FixedVectorType::get(ints, vector->getNumElements());
  const auto whole = [&](int64_t v) { return llvm::ConstantInt::getSigned(ints, v); };
  llvm::Value* tiny = b_.CreateFCmpOLT(x, number(x, 1.17549435e-38));
  llvm::Value* scaled = b_.CreateSelect(tiny, b_.CreateFMul(x, number(x, 8388608)), x);
  llvm::Value* bits = b_.CreateBitCast(scaled, ints);
  llvm::Value* offset = b_.CreateSub(bits, whole(0x3f3504f3));  // bits of sqrt(1/2)
  llvm::Value* n = b_.CreateAShr(offset, 23);
  llvm::Value* m = b_.CreateBitCast(b_.CreateSub(bits, b_.CreateShl(n, 23)), x->getType());
  llvm::Value* e = b_.CreateSIToFP(n, x->getType());
  e = b_.CreateFSub(e, b_.CreateSelect(tiny, number(x, 23), number(x, 0)));
  llvm::Value* f = b_.CreateFSub(m, number(x, 1));
  llvm::Value* z = b_.CreateFMul(f, f);
  llvm::Value* p =
      horner(f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                 -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  llvm::Value* y = b_.CreateFMul(b_.CreateFMul(p, f), z);
  y = fused(e, number(x, -2.12194440e-4), y);
  y = fused(z, number(x, -0.5), y);
  y = fused(e, number(x, 0.693359375), b_.CreateFAdd(f, y));
  llvm::Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  y = b_.CreateSelect(b_.CreateFCmpOEQ(x, infinity), infinity, y);
  y = b_.CreateSelect(b_.CreateFCmpOEQ(x, number(x, 0)), llvm::ConstantFP::getInfinity(x->getType(), true),
                      y);
  return b_.CreateSelect(b_.CreateFCmpULT(x, number(x, 0)), llvm::ConstantFP::getNaN(x->getType()), y);
}

llvm::Value* MathEmitter::tanh32(llvm::Value* x) {
  llvm::Value* a = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Value* z = b_.CreateFMul(x, x);
  llvm::Value* p = horner(
      z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  llvm::Value* near = fused(b_.CreateFMul(p, z), x, x);
  llvm::Value* e = exp32(b_.CreateFAdd(a, a));
  llvm::Value* far = b_.CreateFSub(number(x, 1), b_.CreateFDiv(number(x, 2), b_.CreateFAdd(e, number(x, 1))));
  far = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, far, x);
  return b_.CreateSelect(b_.CreateFCmpULT(a, number(x, 0.625)), near, far);
}

// 1 - e^t for 1/2 < |x| < 4, where t = log(erfc |x|) is nearly a parabola: a polynomial of degree 6, of which
// the result is off by 4.5e-9. Beyond, erf is 1 in float32. Nearer to 0, x times a polynomial of x squared,
// off by 1.4e-9 of it. Both fitted to the C library's functions by weighted least squares, repeated until the
// largest errors are alike.
llvm::Value* MathEmitter::erf32(llvm::Value* x) {
  llvm::Value* a = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Value* z = b_.CreateFMul(x, x);
  llvm::Value* near =
      b_.CreateFMul(x, horner(z, {4.717995727323732e-3, -2.675718744695821e-2, 1.128282286933811e-1,
                                  -3.761260857695523e-1, 1.1283791655681084e+0}));
  llvm::Value* bounded = b_.CreateSelect(b_.CreateFCmpOLT(a, number(x, 4)), a, number(x, 4));
  llvm::Value* t = horner(
      bounded, {2.2301174936137814e-4, -3.291999243153265e-3, 2.315207837085782e-2, -1.0571524129810533e-1,
                -6.352998671895417e-1, -1.1287081798771477e+0, 3.470831845880664e-5});
  llvm::Value* far = b_.CreateFSub(number(x, 1), bounded_exp32(t));
  far = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, far, x);
  return b_.CreateSelect(b_.CreateFCmpULT(a, number(x, 0.5)), near, far);
}

// x / d as x * (1 / d), put right by what is left over: the nearest number as if divided, in three operations
// and a choice. A division of a vector takes 8 to 16 cycles. Infinities, and a zero with its sign, are those
// of the first product. Near the least number it may be off by one step.
llvm::Value* MathEmitter::quotient(llvm::Value* x, llvm::Value* d) {
  const auto* splat = llvm::dyn_cast<llvm::Constant>(d);
  if (splat != nullptr && splat->getType()->isVectorTy()) splat = splat->getSplatValue();
  const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantFP>(splat);
  const bool is_float = x->getType()->getScalarType()->isFloatTy();
  if (constant == nullptr || !is_float || !machine_.has_fma) return b_.CreateFDiv(x, d);
  const float divisor = constant->getValueAPF().convertToFloat(), reciprocal = 1 / divisor;
  int exponent = 0;
  const bool is_power = std::frexp(divisor, &exponent) == 0.5F || std::frexp(divisor, &exponent) == -0.5F;
  // A power of two is multiplied by as it is.
  if (is_power || !std::isnormal(divisor) || !std::isnormal(reciprocal)) return b_.CreateFDiv(x, d);
  llvm::Value* first = b_.CreateFMul(x, number(x, double{reciprocal}));
  llvm::Value* left = fused(first, number(x, -double{divisor}), x);
  llvm::Value* better = fused(left, number(x, double{reciprocal}), first);
  return b_.CreateSelect(b_.CreateFCmpUEQ(better, number(x, 0)), first, better);
}

}  // namespace tuner::codegen
