// Products that go on behind their statement (Intrinsic::Way). Values are there at once; what the unit reads
// is held until a statement lands it, and a store to it is a fault.
#include "compiler_core/arith/meaning.h"
#include "compiler_core/emulator/fission.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/layout.h"

namespace tuner::emulation {
Stmt Fission::for_share(const StmtNode& s, size_t operand, const Crew& crew,
                        const std::function<Stmt(const Buffer&, const std::vector<Expr>&)>& f) {
  const Intrinsic& intrinsic = *find_intrinsic(s.name);
  const IntrinsicOperand& o = intrinsic.operands[operand];
  const Expr& first = s.operands[operand];
  const Var reg = make_var("reg");
  const std::vector<Expr> at =
      in_buffer(first->operands, o.layout(floor_mod(context_.thread, intrinsic.threads), Expr(reg)));
  return run_by_threads(make_for(reg, o.registers, f(first->buffer, at)), crew);
}

// The product is there at once; what it read may change only when it has landed.
Stmt Fission::hold(const StmtNode& s, const Crew& crew) {
  if (context_.faults == nullptr) return nullptr;
  std::vector<Stmt> all = {
      make_store(context_.started, {}, load(context_.started, {}) + int_imm(1, DType::kInt32))};
  const Intrinsic& intrinsic = *find_intrinsic(s.name);
  for (size_t i = 0; i < intrinsic.operands.size(); ++i)
    if (intrinsic.operands[i].place == IntrinsicOperand::Place::kShared)
      all.push_back(for_share(s, i, crew, [&](const Buffer& b, const std::vector<Expr>& at) {
        return instrumenter_.hold(b, at);
      }));
  return make_seq(std::move(all));
}

// Until here the unit read its operands: as if the threads read them now, so that others need a barrier
// before they store there.
Stmt Fission::land(const StmtNode& s, const RangeMap& ranges, const Crew& crew) {
  if (context_.faults == nullptr) return nullptr;
  const Intrinsic& intrinsic = *find_intrinsic(s.name);
  std::vector<Stmt> reads, checks, releases;
  for (size_t i = 0; i < intrinsic.operands.size(); ++i) {
    if (intrinsic.operands[i].place != IntrinsicOperand::Place::kShared) continue;
    const Buffer sink = make_scratch("sink", intrinsic.operands[i].dtype, {context_.block_threads});
    context_.places[sink.get()] = {.storage = sink};
    const Expr& first = s.operands[i];
    const Var reg = make_var("reg");
    const std::vector<Expr> at =
        in_buffer(first->operands,
                  intrinsic.operands[i].layout(floor_mod(context_.thread, intrinsic.threads), Expr(reg)));
    reads.push_back(interval(make_for(reg, intrinsic.operands[i].registers,
                                      make_store(sink, {context_.thread}, load(first->buffer, at))),
                             shared_, ranges, crew));
    checks.push_back(for_share(s, i, crew, [&](const Buffer& b, const std::vector<Expr>& share) {
      return instrumenter_.released_check(b, share, intrinsic.way == Intrinsic::Way::kLandsBefore, s.name);
    }));
    releases.push_back(for_share(s, i, crew, [&](const Buffer& b, const std::vector<Expr>& share) {
      return instrumenter_.release(b, share);
    }));
  }
  std::vector<Stmt> all = std::move(reads);
  all.insert(all.end(), checks.begin(), checks.end());
  all.insert(all.end(), releases.begin(), releases.end());
  return make_seq(std::move(all));
}

// Products under way read the element until they have landed.
Stmt Instrumenter::held_check(const Place& place, const Buffer& buffer, const std::vector<Expr>& indices,
                              const std::string& access) {
  if (place.held == nullptr) return nullptr;
  return make_if(binary(BinaryOp::kNe, load(place.held, storage_indices(place, buffer, indices)),
                        int_imm(0, DType::kInt32)),
                 context_.faults->record(site(FaultKind::kHeld, access, buffer),
                                         flat_element(buffer, indices), context_.number, Expr(0)));
}

Stmt Instrumenter::hold(const Buffer& buffer, const std::vector<Expr>& indices) const {
  const Place& place = context_.places.at(buffer.get());
  return make_store(place.held, storage_indices(place, buffer, indices), load(context_.started, {}));
}

Stmt Instrumenter::release(const Buffer& buffer, const std::vector<Expr>& indices) const {
  const Place& place = context_.places.at(buffer.get());
  return make_store(place.held, storage_indices(place, buffer, indices), int_imm(0, DType::kInt32));
}

Stmt Instrumenter::released_check(const Buffer& buffer, const std::vector<Expr>& indices, bool before,
                                  const std::string& access) {
  const Place& place = context_.places.at(buffer.get());
  const Expr held = load(place.held, storage_indices(place, buffer, indices));
  Expr wrong = binary(BinaryOp::kEq, held, int_imm(0, DType::kInt32));
  if (before) wrong = wrong || binary(BinaryOp::kEq, held, load(context_.started, {}));
  return make_if(wrong, context_.faults->record(site(FaultKind::kNotStarted, access, buffer),
                                                flat_element(buffer, indices), context_.number, Expr(0)));
}

}  // namespace tuner::emulation
