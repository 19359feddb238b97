// Dot products: a kDot loop as one instruction of each lane, where the target has one.
//
//   for j vectorized: for k dot in 0..4: acc[j] += int32(a[i, k]) * int32(b[j, k])
//
//   word of a   the four elements a[i, 0..4], 32 bits, in every lane (one broadcast)
//   word of b   b[j, 0..4] in lane j: one vector load, as the elements of a lane lie side by side
//
// A last iteration of fewer elements fills the word of `a` with zeros. What does not look like this is run as
// the loop it is.
#include <algorithm>

#include "compiler_core/codegen/emitter.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::codegen {
namespace {

bool is_load_cast(const Expr& e) {
  return e->kind == ExprKind::kCast && e->operands[0]->kind == ExprKind::kLoad;
}

}  // namespace

void Emitter::emit_dot(const StmtNode& s) {
  scope_.ranges.bind(s.var, s.extent);
  llvm::Value* sum = nullptr;
  if (s.body->kind == StmtKind::kStore && lanes_.count >= 4 && lanes_.memory_mask() == nullptr)
    sum = dot_product(s.var, s.extent, *s.body);
  if (sum != nullptr) {
    store_contiguous(s.body->buffer, addresses_.analyze(s.body->buffer, s.body->indices), sum);
    return;
  }
  for (int64_t i = 0; i < s.extent; ++i) {
    lanes_.run_at(s.var, i);
    emit(s.body);
  }
  scope_.ranges.bind(s.var, s.extent);
  scope_.vars.erase(s.var.get());
}

// Null when the store is not a dot product of this form.
llvm::Value* Emitter::dot_product(const Var& k, int64_t extent, const StmtNode& store) {
  if (!is_binary(store.value, BinaryOp::kAdd)) return nullptr;
  Expr old = store.value->operands[0], product = store.value->operands[1];
  if (!is_binary(product, BinaryOp::kMul)) std::swap(old, product);
  if (old->kind != ExprKind::kLoad || old->buffer != store.buffer || !is_binary(product, BinaryOp::kMul) ||
      !is_load_cast(product->operands[0]) || !is_load_cast(product->operands[1]))
    return nullptr;
  const Access sums = addresses_.analyze(store.buffer, store.indices);
  if (sums.kind != Access::kContiguous) return nullptr;
  if (store.buffer->scope == MemoryScope::kRegister && !addresses_.register_offset(store.buffer, sums))
    return nullptr;
  const Expr &x = product->operands[0]->operands[0], &y = product->operands[1]->operands[0];
  if (x->dtype != DType::kBFloat16 && dtype_bytes(x->dtype) != 1) return nullptr;
  llvm::Value* first = dot_word(k, extent, *x);
  llvm::Value* second = first == nullptr ? nullptr : dot_word(k, extent, *y);
  if (second == nullptr) return nullptr;
  llvm::Value* sum = values_.emit(old);
  if (x->dtype == DType::kBFloat16) return dots_.bf16_dot(sum, first, second);
  return dots_.byte_dot(sum, first, second, x->dtype == DType::kUInt8, y->dtype == DType::kUInt8);
}

// The elements x[.., 0..extent] of each lane as one number of 32 bits a lane; null when they do not lie so.
llvm::Value* Emitter::dot_word(const Var& k, int64_t extent, const ExprNode& x) {
  const int64_t bytes = dtype_bytes(x.dtype), elements = 4 / bytes;
  Access access = addresses_.analyze(x.buffer, x.operands);
  const auto along = std::find_if(access.form.terms.begin(), access.form.terms.end(), [&](const auto& term) {
    return term.first->kind == ExprKind::kVar && term.first->var == k;
  });
  const bool moves = along != access.form.terms.end();
  if (moves ? along->second != 1 : extent != 1) return nullptr;
  if (moves) access.form.terms.erase(along);
  for (const auto& term : access.form.terms)
    if (uses_var(term.first, k)) return nullptr;
  auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(lanes_.count));
  if (access.affine() && access.stride == elements) {
    // Whole words are read, also where fewer elements are asked for: they must be in the row.
    int64_t first = 0;
    const Expr& last = x.operands.back();
    const bool fills_row = x.buffer->shape.back() == elements &&
                           (last->kind == ExprKind::kVar ? last->var == k : is_const_int(last, &first));
    if (!fills_row || first != 0) return nullptr;
    return b_.CreateAlignedLoad(words, addresses_.pointer(x.buffer, access),
                                addresses_.alignment(x.buffer, access, lanes_.count * elements));
  }
  if (access.kind != Access::kUniform) return nullptr;
  llvm::Value* p = addresses_.pointer(x.buffer, access);
  if (extent == elements) return lanes_.widen(b_.CreateAlignedLoad(b_.getInt32Ty(), p, llvm::Align(bytes)));
  llvm::Type* element = b_.getIntNTy(static_cast<unsigned>(8 * bytes));
  llvm::Value* word = b_.getInt32(0);
  for (int64_t i = 0; i < extent; ++i) {
    llvm::Value* part =
        b_.CreateAlignedLoad(element, b_.CreateGEP(element, p, int_of(i)), llvm::Align(bytes));
    part = b_.CreateShl(b_.CreateZExt(part, b_.getInt32Ty()), static_cast<uint64_t>(8 * bytes * i));
    word = b_.CreateOr(word, part);
  }
  return lanes_.widen(word);
}

}  // namespace tuner::codegen
