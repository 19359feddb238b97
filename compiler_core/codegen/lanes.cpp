#include "compiler_core/codegen/lanes.h"

#include <algorithm>
#include <bit>

#include "compiler_core/arith/simplify.h"

namespace tuner::codegen {

// Whole vectors, then what is left: one masked vector where masks are cheap, shorter vectors where they are
// not.
Lanes::Piece Lanes::next_piece(int64_t begin, int64_t end, int64_t whole) const {
  const int64_t left = end - begin;
  if (left >= whole) return {begin, whole, whole};
  const bool has_masks = machine_.vector_bits >= 256;
  const auto shorter = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(left)));
  const int64_t lanes = has_masks && shorter != left ? 2 * shorter : shorter;
  return {begin, lanes, std::min(lanes, left)};
}

void Lanes::run_along(const Var& along, const Piece& piece) {
  scope_.ranges.bind(along, piece.begin, piece.begin + piece.active);
  var = along;
  begin = piece.begin;
  count = piece.lanes;
  piece_mask = nullptr;
  if (piece.active == piece.lanes) return;
  llvm::SmallVector<llvm::Constant*> exists;
  for (int64_t lane = 0; lane < piece.lanes; ++lane) exists.push_back(b_.getInt1(lane < piece.active));
  piece_mask = llvm::ConstantVector::get(exists);
}

void Lanes::run_at(const Var& at, int64_t value) {
  scope_.ranges.bind(at, value, value + 1);
  scope_.vars[at.get()] = {int_of(value), scope_.depth};
}

void Lanes::leave() {
  var = nullptr;
  count = 0;
  piece_mask = nullptr;
}

bool Lanes::depends(const Expr& e) const { return var != nullptr && uses_var(e, var); }

llvm::Value* Lanes::widen(llvm::Value* v) const {
  if (count == 0 || v->getType()->isVectorTy()) return v;
  return b_.CreateVectorSplat(static_cast<unsigned>(count), v);
}

void Lanes::match(llvm::Value*& a, llvm::Value*& b) const {
  if (a->getType()->isVectorTy() == b->getType()->isVectorTy()) return;
  a = widen(a);
  b = widen(b);
}

llvm::Value* Lanes::with_mask(llvm::Value* of) const {
  of = widen(of);
  return mask == nullptr ? of : b_.CreateAnd(mask, of);
}

llvm::Value* Lanes::memory_mask() const {
  if (mask == nullptr || piece_mask == nullptr) return mask == nullptr ? piece_mask : mask;
  return b_.CreateAnd(mask, piece_mask);
}

}  // namespace tuner::codegen
