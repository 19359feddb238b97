// A vectorised reduce axis: the values of all lanes and one element become one.
//
//   vectorized reduce l in 0..64: y[i] max= x[i, l]
//
//   v = max of the 4 vectors x[i, 16*p .. 16*p + 15]      lanes that do not run hold what changes nothing
//   4 times: v = max of its lower and its upper half
//   y[i] = max(y[i], v)
#include <limits>

#include "compiler_core/codegen/emitter.h"

namespace tuner::codegen {
namespace {

double identity_of(ReduceOp op) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return op == ReduceOp::kMax ? -kInfinity : op == ReduceOp::kMin ? kInfinity : 0;
}

}  // namespace

// As emit_binary does it, so that the order of terms is all that differs from a serial loop. A NaN may get lost in an
// extreme: any_nan() finds it.
llvm::Value* Emitter::reduced(ReduceOp op, llvm::Value* a, llvm::Value* b) {
  if (op == ReduceOp::kSum) return b_.CreateFAdd(a, b);
  return first_if_beyond(op == ReduceOp::kMax, a, b);
}

// Whether a term is a NaN: two are looked at by one comparison, which no step of the reduction waits for.
llvm::Value* Emitter::any_nan(const std::vector<llvm::Value*>& terms) {
  llvm::Value* found = b_.getFalse();
  for (size_t i = 0; i < terms.size(); ++i) {
    llvm::Value *x = terms[i], *y = x;
    if (i + 1 < terms.size() && terms[i + 1]->getType() == x->getType()) y = terms[++i];
    llvm::Value* nans = b_.CreateFCmpUNO(x, y);
    found = b_.CreateOr(found, x->getType()->isVectorTy() ? b_.CreateOrReduce(nans) : nans);
  }
  return found;
}

// x, or a NaN: the bits of a NaN are or-ed into it. A select would become a load under a mask, with which short
// rows take longer on Zen 5 (tests/bench/HISTORY.md, "What NaNs cost").
llvm::Value* Emitter::nan_if(llvm::Value* found, llvm::Value* x) {
  llvm::Type* bits = b_.getIntNTy(x->getType()->getPrimitiveSizeInBits());
  llvm::Value* nan = b_.CreateBitCast(llvm::ConstantFP::getNaN(x->getType()), bits);
  llvm::Value* mask = b_.CreateAnd(b_.CreateSExt(found, bits), nan);
  return b_.CreateBitCast(b_.CreateOr(b_.CreateBitCast(x, bits), mask), x->getType());
}

llvm::Value* Emitter::reduced_lanes(ReduceOp op, llvm::Value* v) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  if (vector == nullptr) return v;
  for (unsigned n = vector->getNumElements() / 2; n >= 1; n /= 2) {
    llvm::SmallVector<int> lower, upper;
    for (unsigned i = 0; i < n; ++i) {
      lower.push_back(static_cast<int>(i));
      upper.push_back(static_cast<int>(n + i));
    }
    v = reduced(op, b_.CreateShuffleVector(v, lower), b_.CreateShuffleVector(v, upper));
  }
  return b_.CreateExtractElement(v, uint64_t{0});
}

void Emitter::emit_lane_reduction(const StmtNode& s) {
  std::vector<Expr> guards;
  const StmtNode* store = s.body.get();
  for (; store->kind == StmtKind::kIf && store->else_body == nullptr; store = store->body.get())
    guards.push_back(store->condition);
  if (store->kind != StmtKind::kStore || store->reduce == ReduceOp::kNone || store->first.defined())
    return refuse("vectorized reduce loop ", s.var->name, " holds more than a reduction without its start");
  const ReduceOp op = store->reduce;
  if (!is_float(store->buffer->dtype))
    return refuse("vectorized reduce loop ", s.var->name, " is over ", store->buffer->dtype,
                  "; only floats are reduced across lanes");
  std::vector<llvm::Value*> terms;
  llvm::Value *wide = nullptr, *rest = nullptr;  // of whole vectors; of the shorter ones that are left
  for (Piece piece{0, 0, 0}; piece.begin < s.extent; piece.begin += piece.lanes) {
    piece = next_piece(piece.begin, s.extent, machine_.vector_bits / 32);
    if (piece.lanes == 1)
      run_at(s.var, piece.begin);
    else
      run_along(s.var, piece);
    if (mask_by(guards)) {
      llvm::Value* v = widen(emit(store->value));
      llvm::Value* runs = piece.lanes == 1 ? mask_ : memory_mask();
      if (runs != nullptr) v = b_.CreateSelect(runs, v, number(v, identity_of(op)));
      terms.push_back(v);
      if (wide != nullptr && wide->getType() == v->getType())
        wide = reduced(op, wide, v);
      else if (wide == nullptr && v->getType()->isVectorTy())
        wide = v;
      else
        rest = rest == nullptr ? reduced_lanes(op, v) : reduced(op, rest, reduced_lanes(op, v));
    }
    mask_ = nullptr;
    leave_lanes();
    vars_.erase(s.var.get());
  }
  ranges_.bind(s.var, s.extent);
  if (wide != nullptr) wide = reduced_lanes(op, wide);
  if (wide != nullptr && rest != nullptr) wide = reduced(op, wide, rest);
  llvm::Value* all = wide != nullptr ? wide : rest;
  if (all == nullptr) return;
  const Access access = analyze(store->buffer, store->indices);
  if (store->buffer->scope == MemoryScope::kRegister && !register_offset(store->buffer, access)) return;
  llvm::Value* p = pointer(store->buffer, access);
  const llvm::Align align(static_cast<uint64_t>(dtype_bytes(store->buffer->dtype)));
  terms.push_back(emit_load(store->buffer, store->indices));
  all = reduced(op, terms.back(), all);
  if (op != ReduceOp::kSum) all = nan_if(any_nan(terms), all);
  b_.CreateAlignedStore(all, p, align);
}

}  // namespace tuner::codegen
