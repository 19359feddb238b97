// Expressions of a Program: immutable nodes in shared subtrees. An Expr is a cheap handle to a node.
//
// Index arithmetic is int64 with floor division and floor modulo, and every index is exact. Values have the
// type of their buffers. `same_as` compares identity; `equal()` compares structure. An expression has no side
// effects, so subtrees may be shared and re-used freely.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/buffer_role.h"
#include "compiler_core/base/dtype.h"

namespace tuner {

struct ExprNode;
struct VarNode;
struct BufferNode;

// A loop variable. The node is its identity: two variables may have the same name, and every loop has its
// own.
using Var = std::shared_ptr<const VarNode>;
// A buffer (a tensor with storage). The node is its identity.
using Buffer = std::shared_ptr<const BufferNode>;

enum class ExprKind : uint8_t { kIntImm, kFloatImm, kVar, kLoad, kBinary, kUnary, kSelect, kCast };

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv /* float */,
  kFloorDiv,
  kFloorMod,
  kMin,  // of floats, minimum and maximum of IEEE 754: where either operand is a NaN, so is the result
  kMax,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
  kXor,  // bitwise xor of integers, for address swizzles
  // Bitwise operations of integers. Shifts are by 0 to the number of bits less 1; to the right they are
  // arithmetic for signed types.
  kBitAnd,
  kBitOr,
  kShiftLeft,
  kShiftRight,
  kPow,  // of floats, as C's pow()
  // Of floats: a where a > b, otherwise b, also where a is a NaN. The lower bound of what becomes an integer.
  kAtLeast,
};
// The code generators lower kErf and the like to the target's own text or to a polynomial. kRound gives the
// nearest integer, of two the even one. kTf32 gives the number as a float32 with its last 13 bits cleared,
// which is what a matrix unit takes of it: 10 bits of mantissa, towards zero. From kSin on, CPUs call the C
// library, a lane at a time.
enum class UnaryOp : uint8_t {
  kNeg,
  kNot,
  kAbs,
  kSqrt,
  kRsqrt,
  kExp,
  kLog,
  kTanh,
  kErf,
  kFloor,
  kRound,
  kTf32,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
};

class Expr {
 public:
  Expr() = default;
  Expr(int64_t value);  // implicit: indices are written as numbers
  Expr(int value) : Expr(static_cast<int64_t>(value)) {}
  Expr(const Var& var);  // implicit: loop variables are written as they are
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}

  const ExprNode* operator->() const { return node_.get(); }
  const ExprNode& operator*() const { return *node_; }
  bool defined() const { return node_ != nullptr; }
  bool same_as(const Expr& other) const { return node_ == other.node_; }

 private:
  std::shared_ptr<const ExprNode> node_;
};

struct VarNode {
  std::string name;  // for people; not unique
};

// Tells where a buffer lives and who sees it.
enum class MemoryScope : uint8_t {
  kGlobal,    // arguments, and workspace if allocated inside the Program
  kShared,    // one per GPU block
  kRegister,  // one per thread; on a CPU promoted to registers, so every access needs constant indices after
              // unrolling
  kFragment,  // registers of a matrix unit, a tile each: tile registers of a CPU; on a GPU spread over the
              // lanes of a warp. Only intrinsics read and write them (ir/intrinsic.h)
};
std::string_view memory_scope_name(MemoryScope scope);

struct BufferNode {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // row-major, last dimension contiguous; empty for a scalar
  MemoryScope scope = MemoryScope::kGlobal;
  BufferRole role = BufferRole::kIntermediate;
  // Address function of a shared buffer: "" is row-major; "pad:4" and "xor:4,8" are described in ir/layout.h.
  // Indices stay logical: only code that turns them into addresses (code generators, the emulator) uses it.
  // Never set for global buffers. Fragments of tensor intrinsics have their layouts in the intrinsic's
  // registry entry.
  std::string layout;

  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  int64_t bytes() const { return elements() * dtype_bytes(dtype); }
};

// One node type for all kinds; `kind` decides which fields are used.
struct ExprNode {
  ExprKind kind;
  DType dtype;                 // type of the value; comparisons, kAnd, kOr and kNot give kBool; indices are
                               // kInt64
  int64_t int_value = 0;       // kIntImm
  double float_value = 0;      // kFloatImm
  Var var;                     // kVar
  Buffer buffer;               // kLoad
  BinaryOp binary_op{};        // kBinary
  UnaryOp unary_op{};          // kUnary
  std::vector<Expr> operands;  // kLoad: one index per dimension; kBinary: a, b; kUnary, kCast: a; kSelect:
                               // condition, then, else
};

// Make nodes. They fold constants of index arithmetic and the identities x+0, x*1, x*0, x/1, x%1, but nothing
// deeper (arith/simplify.h).
Expr int_imm(int64_t value, DType dtype = DType::kInt64);
Expr float_imm(double value, DType dtype = DType::kFloat32);
Expr bool_imm(bool value);
Expr load(const Buffer& buffer, std::vector<Expr> indices);
Expr binary(BinaryOp op, Expr a, Expr b);
Expr unary(UnaryOp op, Expr a);
// Both branches may be evaluated, but a kLoad in the branch not taken reads no memory.
Expr select(Expr condition, Expr then_value, Expr else_value);
Expr cast(DType dtype, Expr a);
Var make_var(std::string name);
Buffer make_buffer(std::string name, DType dtype, std::vector<int64_t> shape,
                   MemoryScope scope = MemoryScope::kGlobal, BufferRole role = BufferRole::kIntermediate);

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);  // float division; indices use floor_div
Expr floor_div(Expr a, Expr b);
Expr floor_mod(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr at_least(Expr a, Expr b);  // BinaryOp::kAtLeast
Expr bit_xor(Expr a, Expr b);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr operator&&(Expr a, Expr b);
Expr operator||(Expr a, Expr b);

// True if `e` is an integer constant; stores it in `value` if that is not null.
bool is_const_int(const Expr& e, int64_t* value = nullptr);
bool equal(const Expr& a, const Expr& b);
inline bool is_binary(const Expr& e, BinaryOp op) {
  return e->kind == ExprKind::kBinary && e->binary_op == op;
}

}  // namespace tuner
