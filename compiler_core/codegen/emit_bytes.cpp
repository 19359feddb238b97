// Sums that become bytes: rounded, moved by a zero point, saturated.
#include <vector>

#include "compiler_core/codegen/emit_values.h"
#include "compiler_core/ir/visitor.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace tuner::codegen {
namespace {

constexpr int64_t kFullVector = 16;  // lanes of 32 bits

bool is_cast_to(DType to, const Expr& e) { return e->kind == ExprKind::kCast && e->dtype == to; }

bool is_round(const Expr& e) { return e->kind == ExprKind::kUnary && e->unary_op == UnaryOp::kRound; }

// int32(round(x)) + z.
bool is_moved_int(const Expr& e) {
  return is_binary(e, BinaryOp::kAdd) && is_cast_to(DType::kInt32, e->operands[0]) &&
         is_round(e->operands[0]->operands[0]);
}

bool is_number(const Expr& e, double value) {
  return e->kind == ExprKind::kFloatImm && e->float_value == value;
}

// An int32 that a byte holds: then 16 bits hold it, too.
bool is_of_a_byte(const Expr& z) {
  if (z->dtype != DType::kInt32) return false;
  if (z->kind == ExprKind::kCast)
    return z->operands[0]->dtype == DType::kUInt8 || z->operands[0]->dtype == DType::kInt8;
  int64_t value = 0;
  return is_const_int(z, &value) && value >= -128 && value <= 255;
}

// min(at_least(round(x) + float32(z), LOW), HIGH) of the bounds of T, z a byte, as graphs quantise.
bool is_bounded_float(DType to, const Expr& e) {
  const double low = to == DType::kInt8 ? -128 : 0;
  if (!is_binary(e, BinaryOp::kMin) || !is_number(e->operands[1], low + 255)) return false;
  const Expr& above = e->operands[0];
  if (!is_binary(above, BinaryOp::kAtLeast) || !is_number(above->operands[1], low)) return false;
  const Expr& moved = above->operands[0];
  return is_binary(moved, BinaryOp::kAdd) && is_round(moved->operands[0]) &&
         is_cast_to(DType::kFloat32, moved->operands[1]) && is_of_a_byte(moved->operands[1]->operands[0]);
}

}  // namespace

bool rounds_to_bytes(const Stmt& body) {
  bool all = true, some = false;
  visit(body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kStore) return;
    const DType to = s->buffer->dtype;
    const bool rounds = (to == DType::kUInt8 || to == DType::kInt8) && is_cast_to(to, s->value) &&
                        (is_moved_int(s->value->operands[0]) || is_bounded_float(to, s->value->operands[0]));
    some = some || rounds;
    all = all && rounds;
  });
  visit_exprs(body, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad && e->buffer->scope == MemoryScope::kRegister) all = false;
  });
  return some && all;
}

// int32(round(x)) of float32 as one instruction, or one for each full vector. Null: the target has none for
// as many lanes, or `e` rounds nothing.
llvm::Value* ValueEmitter::nearest_int(const Expr& e) {
  if (!rounds_lanes(e)) return nullptr;
  llvm::Value* x = emit(e->operands[0]);
  if (lanes_.count == 4) return b_.CreateIntrinsic(llvm::Intrinsic::x86_sse2_cvtps2dq, {}, {x});
  if (lanes_.count == 8) return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx_cvt_ps2dq_256, {}, {x});
  std::vector<llvm::Value*> parts;
  for (llvm::Value* part : full_vectors(x)) parts.push_back(nearest_ints(part));
  return llvm::concatenateVectors(b_, parts);
}

// `x` in vectors of 16 lanes.
std::vector<llvm::Value*> ValueEmitter::full_vectors(llvm::Value* x) {
  if (lanes_.count == kFullVector) return {x};
  std::vector<llvm::Value*> parts;
  for (int64_t first = 0; first < lanes_.count; first += kFullVector) {
    llvm::SmallVector<int> lanes;
    for (int64_t lane = 0; lane < kFullVector; ++lane) lanes.push_back(static_cast<int>(first + lane));
    parts.push_back(b_.CreateShuffleVector(x, lanes));
  }
  return parts;
}

llvm::Value* ValueEmitter::nearest_ints(llvm::Value* x) {
  llvm::Value* unused = llvm::PoisonValue::get(x->getType()->getWithNewType(b_.getInt32Ty()));
  llvm::Value* all = llvm::Constant::getAllOnesValue(b_.getInt16Ty());
  return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
                            {x, unused, all, b_.getInt32(4)});  // 4: rounds as usual
}

bool ValueEmitter::rounds_lanes(const Expr& e) const {
  if (e->kind != ExprKind::kUnary || e->unary_op != UnaryOp::kRound || e->dtype != DType::kFloat32)
    return false;
  if (!machine_.has_nearest_int || !lanes_.depends(e->operands[0])) return false;
  if (lanes_.count == 4 || lanes_.count == 8) return lanes_.count * 32 <= machine_.vector_bits;
  return lanes_.count % kFullVector == 0 && machine_.vector_bits == 32 * kFullVector;
}

// T(int32(round(min(at_least(x, LOW - z), HIGH - z))) + z), what requantised sums are: LOW and HIGH are the
// bounds of T, a type of bytes; or as is_bounded_float() has it. Null: `e` is something else, or nothing here
// does it faster.
llvm::Value* ValueEmitter::saturated_bytes(DType to, const Expr& e) {
  const auto operand = [](const Expr& x, ExprKind kind, size_t i) {
    return x.defined() && x->kind == kind && i < x->operands.size() ? x->operands[i] : Expr();
  };
  const bool packs =
      machine_.has_byte_packs && (lanes_.count == 2 * kFullVector || lanes_.count == 4 * kFullVector);
  if (packs && is_bounded_float(to, e)) {
    const Expr& moved = e->operands[0]->operands[0];
    const Expr &round = moved->operands[0], &zero_point = moved->operands[1]->operands[0];
    if (rounds_lanes(round) && !lanes_.depends(zero_point))
      return packed_bytes(to, emit(round->operands[0]), emit(zero_point));
  }
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
  const int64_t low = to == DType::kInt8 ? -128 : 0;
  if (!is_binary(bounded, BinaryOp::kMin) || !is_bound(bounded->operands[1], low + 255)) return nullptr;
  const Expr& above = bounded->operands[0];
  if (!is_binary(above, BinaryOp::kAtLeast) || !is_bound(above->operands[1], low)) return nullptr;
  if (packs && is_of_a_byte(zero_point) && !lanes_.depends(zero_point))
    return packed_bytes(to, emit(above->operands[0]), emit(zero_point));
  return to == DType::kUInt8 ? saturated_lanes(above, zero_point) : nullptr;
}

// `min` is left out. Numbers that int32 does not hold become -2^31, which is above 255 as an unsigned number,
// also with z added.
llvm::Value* ValueEmitter::saturated_lanes(const Expr& above, const Expr& zero_point) {
  llvm::Value* sum = b_.CreateAdd(nearest_int(unary(UnaryOp::kRound, above)), lanes_.widen(emit(zero_point)));
  sum = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, sum, llvm::ConstantInt::get(sum->getType(), 255));
  return b_.CreateTrunc(sum, sum->getType()->getWithNewType(b_.getInt8Ty()));
}

// Two or four full vectors: to 16 bits and then to 8, saturated each time, where half as many and a quarter
// as many instructions do the rest. Both bounds are left out, but what int32 does not hold: a NaN, and what
// is far below, become -2^31, which saturates downwards; what is far above is bounded before.
llvm::Value* ValueEmitter::packed_bytes(DType to, llvm::Value* x, llvm::Value* zero_point) {
  constexpr double kMost = 32767;
  std::vector<llvm::Value*> words, parts = full_vectors(x);
  for (llvm::Value*& part : parts) {
    llvm::Value* most = llvm::ConstantFP::get(part->getType(), kMost);
    part = nearest_ints(b_.CreateSelect(b_.CreateFCmpOLT(most, part), most, part));
  }
  llvm::Value* added = nullptr;
  for (size_t i = 0; i < parts.size(); i += 2) {
    llvm::Value* word =
        b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_packssdw_512, {}, {parts[i], parts[i + 1]});
    if (added == nullptr)
      added = b_.CreateVectorSplat(2 * kFullVector, b_.CreateTrunc(zero_point, b_.getInt16Ty()));
    words.push_back(b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, word, added));
  }
  llvm::Value* bytes = b_.CreateIntrinsic(to == DType::kInt8 ? llvm::Intrinsic::x86_avx512_packsswb_512
                                                             : llvm::Intrinsic::x86_avx512_packuswb_512,
                                          {}, {words.front(), words.back()});
  // Each instruction took four lanes of one operand, then four of the other.
  constexpr int64_t kQuarter = kFullVector / 4;
  llvm::SmallVector<int> lanes;
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    const int64_t part = lane / kFullVector, in_part = lane % kFullVector;
    lanes.push_back(
        static_cast<int>(in_part / kQuarter * kFullVector + part * kQuarter + in_part % kQuarter));
  }
  return b_.CreateShuffleVector(bytes, lanes);
}

}  // namespace tuner::codegen
