// Expressions of a Program: immutable nodes in shared subtrees; an Expr is a cheap handle to one.
//
// Index arithmetic is int64 with floor division and floor modulo; every index is exact. Values are of the
// type of the buffers they come from. Equality of handles (`same_as`) is identity; `equal()` compares
// structure. An expression has no side effects and no memory of its own, so subtrees may be shared and
// re-used freely.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/dtype.h"

namespace tuner {

struct ExprNode;
struct VarNode;
struct BufferNode;

// A loop variable. Identity is the node: two variables may have the same name, and every loop has one of its
// own.
using Var = std::shared_ptr<const VarNode>;
// A buffer (a tensor once it has storage). Identity is the node.
using Buffer = std::shared_ptr<const BufferNode>;

enum class ExprKind : uint8_t { kIntImm, kFloatImm, kVar, kLoad, kBinary, kUnary, kSelect, kCast };

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv /* float */,
  kFloorDiv,
  kFloorMod,
  kMin,
  kMax,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
  kXor,  // of integers, bitwise: address swizzles
};
// kErf and the like are lowered to the target's own text or to a polynomial by the code generators.
enum class UnaryOp : uint8_t { kNeg, kNot, kAbs, kSqrt, kRsqrt, kExp, kLog, kTanh, kErf, kFloor };

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

// Where a buffer lives and who sees it.
enum class MemoryScope : uint8_t {
  kGlobal,    // arguments, and workspace when allocated inside the Program
  kShared,    // one per GPU block
  kRegister,  // one per thread; on a CPU promoted to registers, so every access needs constant indices after
              // unrolling
  kFragment,  // GPU: spread over the lanes of a warp or warpgroup by `BufferNode::layout`
};
std::string_view memory_scope_name(MemoryScope scope);

// What an argument is to the caller.
enum class BufferRole : uint8_t {
  kInput,         // read; new data every call
  kConstant,      // read; the same every call, so it may be packed ahead (the packing entry)
  kOutput,        // written in full
  kPacked,        // a constant after packing: written by the packing entry, read by the main one
  kIntermediate,  // inside the Program
};
std::string_view buffer_role_name(BufferRole role);

struct BufferNode {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // row-major, last dimension contiguous; empty for a scalar
  MemoryScope scope = MemoryScope::kGlobal;
  BufferRole role = BufferRole::kIntermediate;
  // Address function of shared buffers: "" is row-major, "pad:4" and "xor:4,8" are in ir/layout.h. Indices
  // stay logical: only what turns them into addresses (code generators, the emulator) looks at it. Never set
  // on global buffers. Fragments of tensor intrinsics have their layouts in the intrinsic's registry entry.
  std::string layout;

  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  int64_t bytes() const { return elements() * dtype_bytes(dtype); }
};

// One node type for all kinds: which fields are used follows from `kind`.
struct ExprNode {
  ExprKind kind;
  DType dtype;                 // of the value; comparisons, kAnd, kOr and kNot give kBool; indices are kInt64
  int64_t int_value = 0;       // kIntImm
  double float_value = 0;      // kFloatImm
  Var var;                     // kVar
  Buffer buffer;               // kLoad
  BinaryOp binary_op{};        // kBinary
  UnaryOp unary_op{};          // kUnary
  std::vector<Expr> operands;  // kLoad: one index a dimension; kBinary: a, b; kUnary, kCast: a; kSelect:
                               // condition, then, else
};

// Makers. They fold constants of index arithmetic and the identities x+0, x*1, x*0, x/1, x%1; nothing deeper
// (arith/simplify.h).
Expr int_imm(int64_t value, DType dtype = DType::kInt64);
Expr float_imm(double value, DType dtype = DType::kFloat32);
Expr bool_imm(bool value);
Expr load(const Buffer& buffer, std::vector<Expr> indices);
Expr binary(BinaryOp op, Expr a, Expr b);
Expr unary(UnaryOp op, Expr a);
// Both branches may be evaluated, but a Load in the branch not taken touches no memory.
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
Expr bit_xor(Expr a, Expr b);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr operator&&(Expr a, Expr b);
Expr operator||(Expr a, Expr b);

// The value of an integer constant, if it is one.
bool is_const_int(const Expr& e, int64_t* value = nullptr);
bool equal(const Expr& a, const Expr& b);

}  // namespace tuner
