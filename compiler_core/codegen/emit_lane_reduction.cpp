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

void Emitter::emit_lane_reduction(const StmtNode& s) {
  std::vector<Expr> guards;
  const StmtNode* store = s.body.get();
  for (; store->kind == StmtKind::kIf && store->else_body == nullptr; store = store->body.get())
    guards.push_back(store->condition);
  if (store->kind != StmtKind::kStore || store->reduce == ReduceOp::kNone || store->first.defined())
    return refuse("vectorized reduce loop ", s.var->name, " holds more than a reduction without its start");
  const ReduceOp op = store->reduce;
  const DType dtype = store->buffer->dtype;
  const bool is_narrow = is_float(dtype) && dtype_bytes(dtype) == 2;
  // Floats of 16 bits are held as their bits: they are combined in float32, and rounded once.
  const Expr term = is_narrow ? cast(DType::kFloat32, store->value) : store->value;
  if (!is_float(dtype))
    return refuse("vectorized reduce loop ", s.var->name, " is over ", dtype,
                  "; only floats are reduced across lanes");
  std::vector<llvm::Value*> terms;
  llvm::Value *wide = nullptr, *rest = nullptr;  // of whole vectors; of the shorter ones that are left
  for (Piece piece{0, 0, 0}; piece.begin < s.extent; piece.begin += piece.lanes) {
    piece = lanes_.next_piece(piece.begin, s.extent, machine_.vector_bits / 32);
    if (piece.lanes == 1)
      lanes_.run_at(s.var, piece.begin);
    else
      lanes_.run_along(s.var, piece);
    if (mask_by(guards)) {
      llvm::Value* v = lanes_.widen(values_.emit(term));
      llvm::Value* runs = piece.lanes == 1 ? lanes_.mask : lanes_.memory_mask();
      if (runs != nullptr) v = b_.CreateSelect(runs, v, math_.number(v, identity_of(op)));
      terms.push_back(v);
      if (wide != nullptr && wide->getType() == v->getType())
        wide = math_.reduced(op, wide, v);
      else if (wide == nullptr && v->getType()->isVectorTy())
        wide = v;
      else
        rest = rest == nullptr ? math_.reduced_lanes(op, v)
                               : math_.reduced(op, rest, math_.reduced_lanes(op, v));
    }
    lanes_.mask = nullptr;
    lanes_.leave();
    scope_.vars.erase(s.var.get());
  }
  scope_.ranges.bind(s.var, s.extent);
  if (wide != nullptr) wide = math_.reduced_lanes(op, wide);
  if (wide != nullptr && rest != nullptr) wide = math_.reduced(op, wide, rest);
  llvm::Value* all = wide != nullptr ? wide : rest;
  if (all == nullptr) return;
  const Access access = addresses_.analyze(store->buffer, store->indices);
  if (store->buffer->scope == MemoryScope::kRegister && !addresses_.register_offset(store->buffer, access))
    return;
  llvm::Value* p = addresses_.pointer(store->buffer, access);
  const llvm::Align align(static_cast<uint64_t>(dtype_bytes(dtype)));
  llvm::Value* before = values_.emit_load(store->buffer, store->indices);
  terms.push_back(is_narrow ? math_.widened(dtype, before) : before);
  all = math_.reduced(op, terms.back(), all);
  if (op != ReduceOp::kSum) all = math_.nan_if(math_.any_nan(terms), all);
  b_.CreateAlignedStore(is_narrow ? math_.narrowed(dtype, all) : all, p, align);
}

}  // namespace tuner::codegen
