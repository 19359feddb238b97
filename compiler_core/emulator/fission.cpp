#include "compiler_core/emulator/fission.h"

#include "compiler_core/ir/visitor.h"

namespace tuner::emulation {
namespace {

bool contains(const Stmt& s, StmtKind kind) {
  bool found = false;
  visit(s, [&](const Stmt& inner) { found = found || inner->kind == kind; });
  return found;
}
// Threads meet inside: it cannot be run by one thread after the other.
bool meets(const Stmt& s) {
  return contains(s, StmtKind::kBarrier) || contains(s, StmtKind::kIntrinsic) ||
         contains(s, StmtKind::kAsync);
}

}  // namespace

int64_t most_barriers(const Stmt& s) {
  if (s == nullptr) return 0;
  if (s->kind == StmtKind::kBarrier) return 1;
  int64_t n = most_barriers(s->body) + most_barriers(s->else_body);
  for (const Stmt& child : s->stmts) n += most_barriers(child);
  return s->kind == StmtKind::kFor ? n * s->extent : n;
}

Result<Stmt> Fission::run(const RangeMap& ranges) {
  std::vector<Stmt> stmts;
  if (context_.faults != nullptr) {
    stmts.push_back(next_interval());
    stmts.push_back(make_store(clock_.block_base, {}, load(clock_.base, {})));
    stmts.push_back(next_interval());  // what copies by TMA bring is older than all that threads do
    stmts.push_back(nothing_in_flight());
    stmts.push_back(no_barriers());
  }
  stmts.push_back(distribute(context_.kernel->body, ranges, {}));
  if (context_.faults != nullptr) stmts.push_back(nothing_left());
  RETURN_IF_ERROR(status_);
  RETURN_IF_ERROR(instrumenter_.status());
  return make_seq(std::move(stmts));
}

Stmt Fission::distribute(const Stmt& s, const RangeMap& ranges, const Crew& crew) {
  if (s == nullptr || !status_.is_ok()) return nullptr;
  if (!meets(s)) return interval(s, intervals_.contended(s), ranges, crew);
  switch (s->kind) {
    case StmtKind::kFor: {
      RangeMap inside = ranges;
      inside.bind(s->var, s->extent);
      Stmt body = distribute(s->body, inside, crew);
      return body == nullptr ? nullptr : make_for(s->var, s->extent, std::move(body), s->axis);
    }
    case StmtKind::kSeq:
      return distribute_seq(*s, ranges, crew);
    case StmtKind::kIf:
      return distribute_if(s, ranges, crew);
    case StmtKind::kAllocate: {
      if (s->buffer->scope != MemoryScope::kRegister)
        return refuse(s->buffer->name, " is allocated in ", memory_scope_name(s->buffer->scope),
                      " memory inside the kernel; only registers may be");
      const Place place = instrumenter_.place_register(s->buffer, true);
      Stmt reset = instrumenter_.reset_register(s->buffer, place);
      Stmt body = make_seq({reset, distribute(s->body, ranges, crew)});
      if (body == nullptr) return nullptr;
      body = make_allocate(place.storage, body);
      return place.flags == nullptr ? body : make_allocate(place.flags, body);
    }
    case StmtKind::kBarrier:
      return barrier(*s, crew);
    case StmtKind::kIntrinsic:
      return collective(*s, ranges, crew);
    case StmtKind::kAsync:
      return async(s, ranges, crew);
    case StmtKind::kStore:
      break;
  }
  return nullptr;
}

// Neighbours between two meetings are one interval.
Stmt Fission::distribute_seq(const StmtNode& s, const RangeMap& ranges, const Crew& crew) {
  std::vector<Stmt> done, alone;
  const auto flush = [&] {
    if (!alone.empty()) {
      const std::set<const BufferNode*>& contended = intervals_.contended(alone[0]);
      done.push_back(interval(make_seq(std::move(alone)), contended, ranges, crew));
    }
    alone.clear();
  };
  for (const Stmt& child : s.stmts) {
    if (!meets(child)) {
      alone.push_back(child);
      continue;
    }
    flush();
    done.push_back(distribute(child, ranges, crew));
  }
  flush();
  return make_seq(std::move(done));
}

Stmt Fission::distribute_if(const Stmt& s, const RangeMap& ranges, const Crew& crew) {
  const Expr otherwise = simplify(unary(UnaryOp::kNot, s->condition), ranges);
  if (!is_uniform(s->condition)) {
    Stmt then_body = distribute_branch(s->body, s->condition, ranges, crew);
    return make_seq({then_body, distribute_branch(s->else_body, otherwise, ranges, crew)});
  }
  const auto branch = [&](const Stmt& body, const Expr& condition) {
    RangeMap inside = ranges;
    inside.assume(condition);
    return distribute(body, inside, crew);
  };
  Stmt then_body = branch(s->body, s->condition), else_body = branch(s->else_body, otherwise);
  if (then_body == nullptr && else_body == nullptr) return nullptr;
  if (then_body == nullptr) return make_if(otherwise, std::move(else_body));
  return make_if(s->condition, std::move(then_body), std::move(else_body));
}

// A branch that threads take each for itself, with a meeting of some of them inside.
Stmt Fission::distribute_branch(const Stmt& body, const Expr& condition, const RangeMap& ranges,
                                const Crew& crew) {
  if (body == nullptr) return nullptr;
  const Crew inner{.chosen = make_scratch("chosen", DType::kInt32, {context_.block_threads}),
                   .condition = condition};
  RangeMap inside = ranges;
  inside.assume(condition);
  Stmt chosen = choose(inner.chosen, condition, ranges, crew);
  return make_seq({chosen, distribute(body, inside, inner)});
}

Stmt Fission::choose(const Buffer& chosen, const Expr& condition, const RangeMap& ranges, const Crew& crew) {
  context_.places[chosen.get()] = {.storage = chosen};
  const Var t = make_var("t");
  Stmt none = make_for(t, context_.block_threads, make_store(chosen, {Expr(t)}, int32(0)));
  Stmt mine = make_store(chosen, {context_.thread}, select(condition, int32(1), int32(0)));
  return make_seq({none, interval(mine, shared_, ranges, crew)});
}

bool Fission::is_uniform(const Expr& e) const {
  bool uniform = true;
  visit(e, [&](const Expr& inner) {
    if (inner->kind == ExprKind::kLoad) uniform = false;
    if (inner->kind != ExprKind::kVar) return;
    for (const Var& v : context_.threads) uniform = uniform && inner->var != v;
  });
  return uniform;
}

Stmt Fission::barrier(const StmtNode& s, const Crew& crew) {
  if (s.scope != MemoryScope::kShared)
    return refuse("a barrier of ", memory_scope_name(s.scope),
                  " scope; kernels have only barriers of the block (shared)");
  if (crew.chosen != nullptr)
    return refuse("a barrier stands under `if (", to_text(crew.condition),
                  ")`, which is not the same for all threads of a block: those that do not come by hang it");
  return next_interval();
}

Stmt Fission::next_interval() {
  if (context_.faults == nullptr) return nullptr;
  const Expr base = load(clock_.base, {});
  return make_store(clock_.base, {}, base + int_imm(clock_.stride, clock_.base->dtype));
}

Stmt Fission::interval(const Stmt& s, const std::set<const BufferNode*>& contended, const RangeMap& ranges,
                       const Crew& crew) {
  return run_by_threads(instrumenter_.run(s, ranges, contended), crew);
}

Stmt Fission::run_by_threads(Stmt body, const Crew& crew) {
  if (!instrumenter_.status().is_ok()) status_ = instrumenter_.status();
  if (body == nullptr || !status_.is_ok()) return nullptr;
  if (crew.chosen != nullptr)
    body = make_if(binary(BinaryOp::kNe, load(crew.chosen, {context_.thread}), int32(0)), body);
  if (context_.faults != nullptr) {
    const Expr number = block_ * Expr(context_.block_threads) + context_.thread;
    const DType tag = clock_.tag->dtype;
    body =
        make_seq({make_store(clock_.tag, {}, load(clock_.base, {}) + cast(tag, context_.thread)),
                  make_store(clock_.now, {}, cast(DType::kInt32, number)),
                  make_store(clock_.launch_tag, {}, cast(DType::kInt32, number + Expr(clock_.first))), body});
  }
  return thread_loops(std::move(body));
}

Stmt Fission::thread_loops(Stmt body) {
  const std::array<int64_t, 3>& block = context_.kernel->block;
  VarMap values;
  std::array<Var, 3> loops;
  for (size_t d = 0; d < 3; ++d) {
    loops[d] = make_var(context_.threads[d]->name);
    values[context_.threads[d]] = reverse_ ? Expr(block[d] - 1) - Expr(loops[d]) : Expr(loops[d]);
  }
  body = substitute(body, values);
  for (size_t d = 0; d < 3; ++d)
    if (block[d] > 1 || context_.kernel->thread_vars[d] != nullptr)
      body = make_for(loops[d], block[d], std::move(body));
  return body;
}

Buffer Fission::make_scratch(std::string name, DType type, std::vector<int64_t> shape) {
  scratch_.push_back(make_buffer(std::move(name), type, std::move(shape)));
  return scratch_.back();
}

}  // namespace tuner::emulation
