#include "compiler_core/codegen_cuda/index_value.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"

namespace tuner::cuda {
namespace {

int64_t binary_value(BinaryOp op, int64_t a, int64_t b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
      return b == 0 ? 0 : floor_quotient(a, b);
    case BinaryOp::kFloorMod:
      return b == 0 ? a : floor_remainder(a, b);
    case BinaryOp::kMin:
      return std::min(a, b);
    case BinaryOp::kMax:
    case BinaryOp::kAtLeast:
      return std::max(a, b);
    case BinaryOp::kEq:
      return a == b;
    case BinaryOp::kNe:
      return a != b;
    case BinaryOp::kLt:
      return a < b;
    case BinaryOp::kLe:
      return a <= b;
    case BinaryOp::kGt:
      return a > b;
    case BinaryOp::kGe:
      return a >= b;
    case BinaryOp::kAnd:
      return a != 0 && b != 0;
    case BinaryOp::kOr:
      return a != 0 || b != 0;
    case BinaryOp::kXor:
      return a ^ b;
    case BinaryOp::kBitAnd:
      return a & b;
    case BinaryOp::kBitOr:
      return a | b;
    case BinaryOp::kShiftLeft:
      return static_cast<int64_t>(static_cast<uint64_t>(a) << (b & 63));
    case BinaryOp::kShiftRight:
      return a >> (b & 63);
    case BinaryOp::kPow:  // of floats, never of indices
      break;
  }
  return 0;
}

}  // namespace

int64_t index_value(const Expr& e, const VarValues& values) {
  const auto value_of = [&](const auto& self, const ExprNode& part) -> int64_t {
    switch (part.kind) {
      case ExprKind::kIntImm:
        return part.int_value;
      case ExprKind::kVar:
        for (auto v = values.rbegin(); v != values.rend(); ++v)
          if (v->first == part.var.get()) return v->second;
        return 0;
      case ExprKind::kBinary:
        return binary_value(part.binary_op, self(self, *part.operands[0]), self(self, *part.operands[1]));
      case ExprKind::kUnary: {
        const int64_t a = self(self, *part.operands[0]);
        return part.unary_op == UnaryOp::kNot ? a == 0 : part.unary_op == UnaryOp::kNeg ? -a : a;
      }
      case ExprKind::kSelect:
        return self(self, *part.operands[self(self, *part.operands[0]) != 0 ? 1 : 2]);
      case ExprKind::kCast:
        return self(self, *part.operands[0]);
      case ExprKind::kFloatImm:
      case ExprKind::kLoad:
        return 0;
    }
    return 0;
  };
  return value_of(value_of, *e);
}

}  // namespace tuner::cuda
