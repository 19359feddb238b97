// Copies that overlap: all loads from global memory before the first store that needs one.
//
//   before   unrolled r in 0..4                      after   allocate x.staged [4] register
//              if t + r*64 < 200                               unrolled r in 0..4
//                s[t + r*64] = select(c, x[..], 0)               x.staged[r] = select(t + r*64 < 200 && c,
//                                                                x[..], 0)
//                                                              unrolled r in 0..4
//                                                                if t + r*64 < 200
//                                                                  s[t + r*64] = x.staged[r]
//
// As it was, the compiler makes a branch of the guard, and a load in a branch is waited for there: one memory
// latency an element. A select with nothing but a load in it becomes one predicated load, without a branch,
// and loads in a row wait together. A copy without guards and selects is straight code already and stays as
// it is, unless it is a tile of vectors (kVectorRows around kVectorized): then vectors of one loop are
// loaded, vectors of the other are stored, and the registers in between transpose them.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"

namespace tuner::gpu {
namespace {

// Registers that loads under way may take, whatever else a thread keeps.
constexpr int64_t kLeastStaged = 8, kMostStaged = 64;
// Registers of a thread beside its buffers: addresses, counters.
constexpr int64_t kOtherRegisters = 40;
constexpr int64_t kRegistersOfBlocks = 65536, kRegistersOfThread = 255;

// Unrolled loops (outermost first), the guards among them, one store.
struct Copy {
  std::vector<Stmt> loops;
  std::vector<Expr> guards;
  Stmt store;
};

std::optional<Copy> copy_at(const Stmt& root) {
  Copy copy;
  for (Stmt s = root; s != nullptr; s = s->body) {
    if (s->kind == StmtKind::kFor && (s->loop == LoopKind::kUnrolled || s->loop == LoopKind::kVectorized ||
                                      s->loop == LoopKind::kVectorRows)) {
      copy.loops.push_back(s);
    } else if (s->kind == StmtKind::kIf && s->else_body == nullptr) {
      for (Expr& e : conjuncts(s->condition)) copy.guards.push_back(std::move(e));
    } else if (s->kind == StmtKind::kStore && s->reduce == ReduceOp::kNone) {
      copy.store = s;
      return copy;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// Vectors one way and the other.
bool is_tile(const Copy& copy) {
  return std::any_of(copy.loops.begin(), copy.loops.end(),
                     [](const Stmt& loop) { return loop->loop == LoopKind::kVectorRows; });
}

// 32-bit registers of a buffer; bytes lie together.
int64_t registers_of(const BufferNode& b) {
  return b.dtype == DType::kInt8 || b.dtype == DType::kUInt8 ? ceil_div(b.elements(), int64_t{4})
                                                             : b.elements();
}

// A load from global memory, and what must hold for it to touch memory.
struct GlobalLoad {
  Expr load;
  std::vector<Expr> conditions;
};

bool same_conditions(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

// The loads of `value` under the selects they stand in. False if one cannot be done ahead: its index or its
// condition comes from memory.
bool global_loads(const Expr& value, const std::vector<Expr>& conditions, std::vector<GlobalLoad>& found) {
  if (value->kind == ExprKind::kLoad) {
    if (value->buffer->scope != MemoryScope::kGlobal) return true;
    if (std::any_of(value->operands.begin(), value->operands.end(), reads_memory)) return false;
    const bool known = std::any_of(found.begin(), found.end(), [&](const GlobalLoad& l) {
      return equal(l.load, value) && same_conditions(l.conditions, conditions);
    });
    if (!known) found.push_back({value, conditions});
    return true;
  }
  if (value->kind == ExprKind::kSelect) {
    const Expr& own = value->operands[0];
    if (reads_memory(own)) return false;
    std::vector<Expr> then_holds = conditions, else_holds = conditions;
    then_holds.push_back(own);
    else_holds.push_back(unary(UnaryOp::kNot, own));
    return global_loads(value->operands[1], then_holds, found) &&
           global_loads(value->operands[2], else_holds, found);
  }
  return std::all_of(value->operands.begin(), value->operands.end(),
                     [&](const Expr& operand) { return global_loads(operand, conditions, found); });
}

Expr zero(DType dtype) { return is_float(dtype) ? float_imm(0, dtype) : int_imm(0, dtype); }

bool uses_any(const std::vector<Expr>& exprs, const Var& var) {
  return std::any_of(exprs.begin(), exprs.end(), [&](const Expr& e) { return uses_var(e, var); });
}

// s with its one store, below loops and guards only, replaced.
Stmt with_store(const Stmt& s, const Stmt& store) {
  if (s->kind == StmtKind::kStore) return store;
  return map_children(
      s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return with_store(child, store); });
}

// `loops` around `body`, with variables of their own.
Stmt fresh_nest(const std::vector<Stmt>& loops, Stmt body) {
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    const Var var = make_var((*loop)->var->name);
    body = make_for(var, (*loop)->extent, substitute(body, {{(*loop)->var, Expr(var)}}), (*loop)->axis,
                    (*loop)->loop);
  }
  return body;
}

// A load that is done ahead, into a register for each iteration of the loops it depends on.
struct Staged {
  GlobalLoad from;
  std::vector<Stmt> loops;
  Buffer registers;
  Expr value;  // of the store: the register
};

// What can be done ahead: a load that depends on every loop that decides whether it is done. Others would be
// repeated.
std::vector<Staged> staged_loads(const Copy& copy, const std::vector<GlobalLoad>& loads) {
  const bool to_shared = copy.store->buffer->scope == MemoryScope::kShared;
  std::vector<Staged> result;
  for (const GlobalLoad& l : loads) {
    Staged staged{.from = l};
    staged.from.conditions.insert(staged.from.conditions.begin(), copy.guards.begin(), copy.guards.end());
    bool repeated = false;
    std::vector<int64_t> shape;
    std::vector<Expr> place;
    for (const Stmt& loop : copy.loops) {
      const bool used = uses_any(l.load->operands, loop->var);
      repeated |= !used && uses_any(staged.from.conditions, loop->var);
      if (!used) continue;
      staged.loops.push_back(loop);
      shape.push_back(loop->extent);
      place.emplace_back(loop->var);
    }
    // One load has nothing to overlap with, except on the way to shared memory: other copies follow there.
    if (repeated || (staged.loops.empty() && !(copy.loops.empty() && to_shared))) continue;
    const Buffer& source = l.load->buffer;
    staged.registers =
        make_buffer(source->name + ".ahead", source->dtype, std::move(shape), MemoryScope::kRegister);
    staged.value = load(staged.registers, std::move(place));
    result.push_back(std::move(staged));
  }
  return result;
}

// `value` with the registers in place of the loads; in place of select(condition, load, 0) too, for the
// register holds 0 where the load touches no memory.
Expr with_registers(const Expr& value, const std::vector<Expr>& conditions,
                    const std::vector<Staged>& staged) {
  const auto found = [&](const Expr& e, const std::vector<Expr>& holds) -> const Staged* {
    for (const Staged& s : staged)
      if (equal(s.from.load, e) && same_conditions(s.from.conditions, holds)) return &s;
    return nullptr;
  };
  if (value->kind == ExprKind::kLoad) {
    const Staged* s = found(value, conditions);
    return s == nullptr ? value : s->value;
  }
  if (value->kind != ExprKind::kSelect)
    return map_children(value,
                        [&](const Expr& operand) { return with_registers(operand, conditions, staged); });
  std::vector<Expr> then_holds = conditions, else_holds = conditions;
  then_holds.push_back(value->operands[0]);
  else_holds.push_back(unary(UnaryOp::kNot, value->operands[0]));
  if (is_zero(value->operands[2]))
    if (const Staged* s = found(value->operands[1], then_holds)) return s->value;
  return select(value->operands[0], with_registers(value->operands[1], then_holds, staged),
                with_registers(value->operands[2], else_holds, staged));
}

class Overlap {
 public:
  Overlap(const Stmt& body, const GpuKernel& kernel) : kernel_(kernel) {
    visit(body, [&](const Stmt& s) {
      if (s->kind == StmtKind::kStore) ++stores_[s->buffer];
    });
  }

  Stmt rewrite(const Stmt& s) {
    if (s == nullptr || s->kind == StmtKind::kAsync) return s;  // asynchronous copies overlap as they are
    // A guard that the threads decide alike stays a branch around the copy.
    if (s->kind == StmtKind::kFor || s->kind == StmtKind::kStore ||
        (s->kind == StmtKind::kIf && asks_for_thread(s->condition, kernel_)))
      if (const std::optional<Copy> copy = copy_at(s)) return overlapped(s, *copy);
    const bool registers = s->kind == StmtKind::kAllocate && s->buffer->scope == MemoryScope::kRegister;
    if (registers) live_ += registers_of(*s->buffer);
    Stmt result = map_children(
        s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return rewrite(child); });
    if (registers) live_ -= registers_of(*s->buffer);
    return result != nullptr && result->kind == StmtKind::kSeq ? loads_first(result) : result;
  }

 private:
  // A copy whose loads are done ahead.
  struct Ahead {
    std::vector<Buffer> registers;
    std::vector<Stmt> loads;
    Stmt store;
    bool guarded = false;  // the store
  };

  Stmt overlapped(const Stmt& s, const Copy& copy) {
    std::vector<GlobalLoad> loads;
    if (std::any_of(copy.guards.begin(), copy.guards.end(), reads_memory) ||
        !global_loads(copy.store->value, {}, loads))
      return s;
    const bool conditional =
        !copy.guards.empty() || is_tile(copy) ||
        std::any_of(loads.begin(), loads.end(), [](const GlobalLoad& l) { return !l.conditions.empty(); });
    const bool in_place = std::any_of(loads.begin(), loads.end(), [&](const GlobalLoad& l) {
      return l.load->buffer == copy.store->buffer;
    });
    if (loads.empty() || in_place) return s;
    const bool to_shared = copy.store->buffer->scope == MemoryScope::kShared;
    if (!conditional) {
      const std::vector<Staged> staged = staged_loads(copy, loads);
      if (to_shared && !staged.empty()) straight_[s] = ahead_of(s, copy, staged);
      return s;
    }
    if (is_own_stage(copy)) return without_guards(copy);
    const std::vector<Staged> staged = staged_loads(copy, loads);
    if (staged.empty()) return s;
    int64_t registers = 0;
    for (const Staged& part : staged) registers += registers_of(*part.registers);
    const bool has_rounds = !copy.loops.empty() && copy.loops.front()->loop == LoopKind::kUnrolled;
    if (registers > budget() && has_rounds) return in_parts(s, registers);
    Ahead ahead = ahead_of(s, copy, staged);
    Stmt result = whole(ahead);
    if (to_shared) ahead_[result] = std::move(ahead);
    return result;
  }

  static Ahead ahead_of(const Stmt& s, const Copy& copy, const std::vector<Staged>& staged) {
    Ahead ahead{.guarded = !copy.guards.empty()};
    for (const Staged& part : staged) {
      const Expr value = part.from.conditions.empty() ? part.from.load
                                                      : select(conjunction(part.from.conditions),
                                                               part.from.load, zero(part.registers->dtype));
      ahead.registers.push_back(part.registers);
      ahead.loads.push_back(fresh_nest(part.loops, make_store(part.registers, part.value->operands, value)));
    }
    ahead.store = with_store(s, make_store(copy.store->buffer, copy.store->indices,
                                           with_registers(copy.store->value, copy.guards, staged)));
    return ahead;
  }

  static Stmt whole(const Ahead& ahead) {
    std::vector<Stmt> parts = ahead.loads;
    parts.push_back(ahead.store);
    Stmt result = make_seq(std::move(parts));
    for (const Buffer& registers : ahead.registers) result = make_allocate(registers, std::move(result));
    return result;
  }

  // Copies to shared memory that follow each other, where a store is guarded: the loads of all stand before
  // the first guarded store, as far as there are registers. Behind a store under a guard the compiler makes a
  // branch of the next load.
  Stmt loads_first(const Stmt& seq) {
    std::vector<Stmt> result, run;
    for (const Stmt& child : seq->stmts) {
      if (ahead_.contains(child) || straight_.contains(child)) {
        run.push_back(child);
        continue;
      }
      append_run(run, result);
      run.clear();
      result.push_back(child);
    }
    append_run(run, result);
    return make_seq(std::move(result));
  }

  const Ahead& ahead_at(const Stmt& s) const { return ahead_.contains(s) ? ahead_.at(s) : straight_.at(s); }

  static int64_t registers_of_ahead(const Ahead& ahead) {
    int64_t registers = 0;
    for (const Buffer& b : ahead.registers) registers += registers_of(*b);
    return registers;
  }

  void append_run(const std::vector<Stmt>& run, std::vector<Stmt>& result) const {
    int64_t registers = 0, guarded = 0;
    for (const Stmt& s : run) {
      const Ahead& ahead = ahead_at(s);
      registers += registers_of_ahead(ahead);
      if (ahead.guarded) guarded += registers_of_ahead(ahead);
    }
    if (run.size() < 2 || guarded == 0) {
      result.insert(result.end(), run.begin(), run.end());
    } else if (registers > budget() && guarded <= kLeastStaged) {
      result.push_back(guarded_around(run));
    } else {
      append_parts(run, result);
    }
  }

  // The loads of the guarded copies, the other copies as they are, the guarded stores.
  Stmt guarded_around(const std::vector<Stmt>& run) const {
    Ahead all;
    std::vector<Stmt> copies, stores;
    for (const Stmt& s : run) {
      const Ahead& next = ahead_at(s);
      if (!next.guarded) {
        copies.push_back(s);
        continue;
      }
      add_loads(next, all);
      stores.push_back(next.store);
    }
    copies.insert(copies.end(), stores.begin(), stores.end());
    all.store = make_seq(std::move(copies));
    return whole(all);
  }

  // As many copies together as there are registers for.
  void append_parts(const std::vector<Stmt>& run, std::vector<Stmt>& result) const {
    size_t at = 0;
    while (at < run.size()) {
      Ahead all;
      std::vector<Stmt> stores;
      int64_t registers = 0;
      size_t end = at;
      for (; end < run.size(); ++end) {
        const Ahead& next = ahead_at(run[end]);
        registers += registers_of_ahead(next);
        if (end > at && registers > budget()) break;
        add_loads(next, all);
        stores.push_back(next.store);
      }
      all.store = make_seq(std::move(stores));
      if (end - at > 1 && all.guarded)
        result.push_back(whole(all));
      else
        result.insert(result.end(), run.begin() + static_cast<std::ptrdiff_t>(at),
                      run.begin() + static_cast<std::ptrdiff_t>(end));
      at = end;
    }
  }

  static void add_loads(const Ahead& from, Ahead& to) {
    to.guarded = to.guarded || from.guarded;
    to.registers.insert(to.registers.end(), from.registers.begin(), from.registers.end());
    to.loads.insert(to.loads.end(), from.loads.begin(), from.loads.end());
  }

  // Registers of a thread for loads under way: what launch bounds and the buffers around leave.
  int64_t budget() const {
    const int64_t threads = kernel_.block[0] * kernel_.block[1] * kernel_.block[2];
    const int64_t file = kRegistersOfBlocks / (threads * std::max(1, kernel_.min_blocks));
    return std::clamp(std::min(file, kRegistersOfThread) - kOtherRegisters - live_, kLeastStaged,
                      kMostStaged);
  }

  // The copy as several, each with as many loads under way as there are registers for.
  Stmt in_parts(const Stmt& s, int64_t registers) {
    if (s->kind == StmtKind::kIf) return make_if(s->condition, in_parts(s->body, registers));
    const int64_t inside = registers / s->extent;  // of one iteration, if it depends on this loop
    int64_t part = std::min(s->extent, budget() / std::max<int64_t>(inside, 1));
    while (part > 1 && s->extent % part != 0) --part;
    const std::optional<Copy> body = copy_at(s->body);
    if (part <= 1) return with_body(s, overlapped(s->body, *body));
    const Var outer = make_var(s->var->name + ".part"), inner = make_var(s->var->name);
    const Stmt loop =
        make_for(inner, part, substitute(s->body, {{s->var, Expr(outer) * part + inner}}), s->axis, s->loop);
    return make_for(outer, s->extent / part, overlapped(loop, *copy_at(loop)), s->axis, s->loop);
  }

  // The registers are stored here only: what they hold where the guard fails, nobody reads.
  bool is_own_stage(const Copy& copy) const {
    if (copy.store->buffer->scope != MemoryScope::kRegister || stores_.at(copy.store->buffer) != 1)
      return false;
    bool reads_itself = false;
    visit(copy.store->value, [&](const Expr& e) {
      reads_itself |= e->kind == ExprKind::kLoad && e->buffer == copy.store->buffer;
    });
    return !reads_itself;
  }

  static Stmt without_guards(const Copy& copy) {
    Stmt body = make_store(copy.store->buffer, copy.store->indices,
                           copy.guards.empty() ? copy.store->value : under(copy.guards, copy.store->value));
    for (auto loop = copy.loops.rbegin(); loop != copy.loops.rend(); ++loop)
      body = with_body(*loop, std::move(body));
    return body;
  }

  // `value` with each global load under `guards` too.
  static Expr under(const std::vector<Expr>& guards, const Expr& value) {
    if (value->kind == ExprKind::kSelect && value->operands[1]->kind == ExprKind::kLoad &&
        is_zero(value->operands[2])) {
      std::vector<Expr> all = guards;
      all.push_back(value->operands[0]);
      return select(conjunction(all), value->operands[1], value->operands[2]);
    }
    if (value->kind == ExprKind::kLoad)
      return value->buffer->scope == MemoryScope::kGlobal
                 ? select(conjunction(guards), value, zero(value->dtype))
                 : value;
    return map_children(value, [&](const Expr& operand) { return under(guards, operand); });
  }

  const GpuKernel& kernel_;
  std::map<Buffer, int> stores_;
  // Of copies to shared memory: what was made of those under conditions, and could be made of others.
  std::map<Stmt, Ahead> ahead_, straight_;
  int64_t live_ = 0;  // registers of the buffers around
};

// The step of an access to memory along a loop, in elements; 0 if it is none that is known.
int64_t step_along(const Buffer& buffer, const std::vector<Expr>& indices, const Var& var) {
  if (buffer->scope != MemoryScope::kGlobal && buffer->scope != MemoryScope::kShared) return 0;
  for (const auto& [term, factor] : linear_form(storage_offset(*buffer, indices)).terms)
    if (term->kind == ExprKind::kVar && term->var == var) return factor;
  return 0;
}

// True if what the copy touches in memory lies along `var`: the store, or, of a store to registers, its load.
bool lies_along(const Stmt& store, const Var& var) {
  if (store->buffer->scope != MemoryScope::kRegister)
    return step_along(store->buffer, store->indices, var) == 1;
  bool along = false;
  visit(store->value, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad) along |= step_along(e->buffer, e->operands, var) == 1;
  });
  return along;
}

// Of a tile of vectors the loop that memory lies along is vectorized, the other unrolled around it.
Stmt choose_vectors(const Stmt& s) {
  if (s == nullptr) return s;
  if (s->kind != StmtKind::kFor || s->loop != LoopKind::kVectorRows)
    return map_children(
        s, [](const Expr& e) { return e; }, choose_vectors);
  const std::optional<Copy> copy = copy_at(s);
  const bool swapped = copy.has_value() && copy->loops.size() == 2 &&
                       copy->loops.back()->loop == LoopKind::kVectorized && lies_along(copy->store, s->var) &&
                       !lies_along(copy->store, copy->loops.back()->var);
  if (!swapped) return make_for(s->var, s->extent, choose_vectors(s->body), s->axis, LoopKind::kUnrolled);
  const Stmt& lanes = copy->loops.back();
  Stmt body = copy->guards.empty() ? copy->store : make_if(conjunction(copy->guards), copy->store);
  body = make_for(s->var, s->extent, std::move(body), s->axis, LoopKind::kVectorized);
  return make_for(lanes->var, lanes->extent, std::move(body), lanes->axis, LoopKind::kUnrolled);
}

}  // namespace

Stmt overlap_copies(const Stmt& body, const GpuKernel& kernel) {
  return choose_vectors(Overlap(body, kernel).rewrite(body));
}

}  // namespace tuner::gpu
