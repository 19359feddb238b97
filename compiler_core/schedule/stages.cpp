// double_buffer, pipeline: several stages of a shared tile, so that copies for later iterations are
// under way while one is used.
#include <algorithm>

#include "compiler_core/analysis/tensor_copy.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

// A copy into shared memory: its loops (outermost first), the guards among them, the store.
struct CopyNest {
  std::vector<Stmt> loops;
  std::vector<Expr> guards;
  Stmt store;
  bool by_tma = false;  // copy_by_tma()
};

Result<CopyNest> copy_nest(const Stmt& nest_root, const Buffer& buffer) {
  CopyNest copy;
  for (Stmt s = nest_root;; s = s->body) {
    if (is_async(*s, "fetch")) {
      copy.by_tma = true;
    } else if (s->kind == StmtKind::kFor) {
      copy.loops.push_back(s);
    } else if (s->kind == StmtKind::kIf && s->else_body == nullptr) {
      for (Expr& e : conjuncts(s->condition)) copy.guards.push_back(std::move(e));
    } else if (s->kind == StmtKind::kStore && s->buffer == buffer && s->reduce == ReduceOp::kNone) {
      copy.store = s;
      return copy;
    } else {
      return invalid_config(buffer->name, " is not a plain copy: loops, guards and one store");
    }
  }
}

// The same nest with loop variables of its own, `k` replaced, storing `value` into `to` at
// `leading` and then `indices` (both those of the copy itself when not given).
Stmt fresh_copy(const CopyNest& copy, const Var& k, const Expr& iteration, const Buffer& to,
                const std::vector<Expr>& leading, const std::optional<std::vector<Expr>>& indices,
                const std::optional<Expr>& value) {
  VarMap fresh{{k, iteration}};
  std::vector<Stmt> loops;
  for (const Stmt& loop : copy.loops) {
    const Var var = make_var(loop->var->name);
    fresh[loop->var] = var;
    loops.push_back(make_for(var, loop->extent, loop->body, loop->axis, loop->loop));
  }
  std::vector<Expr> guards, at = leading;
  for (const Expr& guard : copy.guards) guards.push_back(substitute(guard, fresh));
  for (const Expr& index : indices.value_or(copy.store->indices)) at.push_back(substitute(index, fresh));
  return nest(loops, guards,
              make_store(to, std::move(at), substitute(value.value_or(copy.store->value), fresh)));
}

// A copy that stands directly in a loop, beside what uses it.
struct LoopCopy {
  Path to_block;  // from the body of the loop to the sequence
  CopyNest copy;
  std::vector<Stmt> others;  // of the sequence
};

Result<Path> serial_loop(const Stmt& root, const Axis& axis) {
  Path path = find_loop(root, axis.var);
  if (path.empty()) return invalid_config("not an axis of the Program (split, fused or never there)");
  if (path.back()->loop != LoopKind::kSerial)
    return invalid_config(axis.var->name, " is ", loop_kind_name(path.back()->loop), "; it must be serial");
  return path;
}

Result<LoopCopy> copy_in_loop(const Stmt& body, const std::string& loop, const Buffer& buffer) {
  RETURN_IF_ERROR(check_shared(buffer));
  // Allocations and sequences lead from the loop to the copy; its neighbours are what it is used by.
  const Path to_copy = find_path(body, [&](const StmtNode& s) {
    return (s.kind == StmtKind::kFor || s.kind == StmtKind::kIf || s.kind == StmtKind::kStore ||
            is_async(s, "fetch")) &&
           stores_to(std::make_shared<const StmtNode>(s), buffer);
  });
  if (to_copy.size() < 2 || to_copy[to_copy.size() - 2]->kind != StmtKind::kSeq)
    return invalid_config(buffer->name, " is not computed and used directly in ", loop, "; compute_at first");
  bool allocated = false;
  for (size_t i = 0; i + 1 < to_copy.size(); ++i) {
    allocated |= to_copy[i]->kind == StmtKind::kAllocate && to_copy[i]->buffer == buffer;
    if (to_copy[i]->kind != StmtKind::kAllocate && to_copy[i]->kind != StmtKind::kSeq)
      return invalid_config(buffer->name, " is computed further inside than directly in ", loop);
  }
  if (!allocated) return invalid_config(buffer->name, " is not computed inside ", loop);
  LoopCopy found{.to_block = prefix(to_copy, to_copy.size() - 2)};
  ASSIGN_OR_RETURN(found.copy, copy_nest(to_copy.back(), buffer));
  for (const Stmt& s : found.to_block.back()->stmts)
    if (s != to_copy.back()) found.others.push_back(s);
  // It is to happen before what the iterations between do.
  Buffer changing;
  visit_exprs(to_copy.back(), [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad && stores_to(body, e->buffer)) changing = e->buffer;
  });
  if (changing != nullptr)
    return invalid_config(buffer->name, " copies ", changing->name, ", which is stored in ", loop,
                          ": what a later iteration copies is not there before");
  return found;
}

// `buffer` with a leading dimension.
Result<Buffer> staged(const Buffer& buffer, int64_t stages) {
  std::vector<int64_t> shape = buffer->shape;
  shape.insert(shape.begin(), stages);
  const Buffer result = derived_buffer(buffer, buffer->name, std::move(shape), MemoryScope::kShared);
  RETURN_IF_ERROR(check_size(result));
  return result;
}

// The body of the loop with `block` in place of the copy's sequence, reading stage `stage`.
Result<Stmt> without_copy(const LoopCopy& found, std::vector<Stmt> block, const Buffer& from,
                          const Buffer& to, const Expr& stage) {
  Stmt body = drop_allocation(replace_at(found.to_block, make_seq(std::move(block))), from);
  body = with_leading_index(body, from, to, stage);
  if (stores_to(body, from)) return invalid_config(from->name, " is stored in more than one place");
  return body;
}

}  // namespace

void Schedule::double_buffer(const Tensor& t, Axis axis, bool in_registers) {
  if (refused()) return;
  const Buffer buffer = resolve(t);
  const std::string call =
      str("double_buffer(", buffer == nullptr ? "(none)" : buffer->name, ", ", label(program_.body, axis.var),
          ", ", in_registers ? "registers" : "direct", ")");
  apply(call, [&]() -> Status {
    RETURN_IF_ERROR(check_shared(buffer));
    ASSIGN_OR_RETURN(const Path to_loop, serial_loop(program_.body, axis));
    const Stmt& loop = to_loop.back();
    ASSIGN_OR_RETURN(LoopCopy found, copy_in_loop(loop->body, axis.var->name, buffer));
    const CopyNest& copy = found.copy;
    if (copy.by_tma) return invalid_config(buffer->name, " is copied by TMA; pipeline() instead");
    ASSIGN_OR_RETURN(const Buffer stages, staged(buffer, 2));
    const Expr next = Expr(loop->var) + 1, has_next = next < loop->extent;
    std::vector<Stmt> block = std::move(found.others);
    Buffer registers;
    if (in_registers) {
      // One register an element of the copy; the dimension of a thread axis becomes the thread itself.
      std::vector<int64_t> extents;
      std::vector<Expr> places;
      for (const Stmt& l : copy.loops) {
        extents.push_back(l->extent);
        places.emplace_back(l->var);
      }
      registers = make_buffer(free_name(program_, buffer->name + ".staged"), buffer->dtype,
                              std::move(extents), MemoryScope::kRegister);
      block.insert(block.begin(),
                   make_if(has_next, fresh_copy(copy, loop->var, next, registers, {}, places, std::nullopt)));
      block.push_back(make_if(has_next, fresh_copy(copy, loop->var, next, stages, {floor_mod(next, 2)},
                                                   std::nullopt, load(registers, places))));
    } else {
      block.insert(block.begin(),
                   make_if(has_next, fresh_copy(copy, loop->var, next, stages, {floor_mod(next, 2)},
                                                std::nullopt, std::nullopt)));
    }
    ASSIGN_OR_RETURN(Stmt body,
                     without_copy(found, std::move(block), buffer, stages, floor_mod(loop->var, 2)));
    if (registers != nullptr) body = make_allocate(registers, std::move(body));
    Stmt changed = with_body(loop, std::move(body));
    Stmt first = fresh_copy(copy, loop->var, 0, stages, {0}, std::nullopt, std::nullopt);
    changed = make_allocate(stages, make_seq({std::move(first), std::move(changed)}));
    program_.body = replace_at(to_loop, simplify(changed, ranges_at(to_loop)));
    moved(buffer, stages);
    record(call);
    return Status::ok();
  });
}

namespace {

// Products by a unit that works by itself, in a loop: each goes on behind its statement.
class ProductsThatGoOn {
 public:
  // `body` with them; InvalidConfig where there are none, or others.
  Result<Stmt> start(const Stmt& body) {
    Status status;
    Stmt result = rebuild(body, status);
    RETURN_IF_ERROR(status);
    if (products_.empty()) return invalid_config("no product in it is one of a unit that works by itself");
    return result;
  }
  // The statements that land those of iteration `k`: with all others, or all but the latest group.
  Stmt land(const Var& var, const Expr& k, bool all) const {
    std::vector<Stmt> result;
    for (const auto& [product, loops] : products_) {
      auto landed = std::make_shared<StmtNode>(*product);
      const Intrinsic& started = *find_intrinsic(product->name);
      landed->name = all ? started.landed : started.landed_before;
      VarMap values{{var, k}};
      std::vector<Stmt> fresh;
      for (const Stmt& loop : loops) {
        const Var own = make_var(loop->var->name);
        values[loop->var] = Expr(own);
        fresh.push_back(make_for(own, loop->extent, loop->body, loop->axis, loop->loop));
      }
      for (Expr& operand : landed->operands) operand = substitute(operand, values);
      result.push_back(nest(fresh, {}, landed));
    }
    return make_seq(std::move(result));
  }

 private:
  Stmt rebuild(const Stmt& s, Status& status) {
    if (s->kind == StmtKind::kFor) {
      loops_.push_back(s);
      Stmt body = rebuild(s->body, status);
      loops_.pop_back();
      return with_body(s, std::move(body));
    }
    if (s->kind == StmtKind::kSeq) {
      std::vector<Stmt> stmts;
      for (const Stmt& child : s->stmts) stmts.push_back(rebuild(child, status));
      return make_seq(std::move(stmts));
    }
    const Intrinsic* const i = s->kind == StmtKind::kIntrinsic ? find_intrinsic(s->name) : nullptr;
    if (i == nullptr || i->started.empty()) {
      if (status.is_ok())
        status = invalid_config("more than products of a unit that works by itself stands in it");
      return s;
    }
    auto started = std::make_shared<StmtNode>(*s);
    started->name = i->started;
    products_.emplace_back(started, loops_);
    return started;
  }

  std::vector<Stmt> loops_;
  std::vector<std::pair<Stmt, std::vector<Stmt>>> products_;  // with the loops around
};

}  // namespace

void Schedule::pipeline(std::span<const Tensor> tensors, const Axis& axis, int64_t stages) {
  pipeline_tensors("pipeline", tensors, axis, stages, /*products_go_on=*/false);
}

void Schedule::pipeline_products(std::span<const Tensor> tensors, const Axis& axis, int64_t stages) {
  pipeline_tensors("pipeline_products", tensors, axis, stages, /*products_go_on=*/true);
}

namespace {

// A pipelined loop in the making.
struct Pipeline {
  Stmt loop;
  int64_t stages = 0, distance = 0;  // iterations whose copies are on their way while one is used
  bool by_tma = false, products_go_on = false;
  Buffer barriers;                       // by TMA: one for each stage
  int64_t bytes = 0;                     // by TMA: of a stage
  Stmt body;                             // of the loop, without copies
  std::vector<std::vector<Stmt>> first;  // copies of the iterations before the loop
  std::vector<Stmt> ahead;               // copies of the iteration that is `distance` ahead

  Expr next() const { return Expr(loop->var) + distance; }
  Expr barrier(const Expr& iteration) const { return load(barriers, {floor_mod(iteration, stages)}); }

  // The copies of an iteration together: threads commit them as a group; TMA counts their bytes.
  Stmt together(std::vector<Stmt> copies, const Expr& iteration) const {
    if (!by_tma) return make_seq(std::move(copies));
    copies.insert(copies.begin(), make_async_expect(barrier(iteration), bytes));
    return make_seq(std::move(copies));
  }
  Stmt copies_ahead() const {
    Stmt copies = make_if(next() < loop->extent, together(ahead, next()));
    return by_tma ? copies : make_seq({std::move(copies), make_async_commit()});
  }
  Stmt wait() const {
    if (!by_tma) return make_async_wait(distance - 1);
    return make_async_await(barrier(loop->var), floor_mod(floor_div(loop->var, stages), 2));
  }

  Result<Stmt> assemble() const {
    Stmt copies = copies_ahead(), used = body, last;
    if (products_go_on) {
      ProductsThatGoOn products;
      ASSIGN_OR_RETURN(used, products.start(body));
      const Expr k(loop->var);
      used = make_seq({std::move(used), make_if(Expr(0) < k, products.land(loop->var, k - 1, /*all=*/false)),
                       std::move(copies)});
      last = products.land(loop->var, Expr(loop->extent - 1), /*all=*/true);
    } else {
      used = make_seq({std::move(copies), std::move(used)});
    }
    std::vector<Stmt> whole;
    if (by_tma) whole.push_back(make_async_init(load(barriers, {Expr(0)}), /*arrivals=*/1));
    for (size_t s = 0; s < first.size(); ++s) {
      whole.push_back(together(first[s], Expr(static_cast<int64_t>(s))));
      if (!by_tma) whole.push_back(make_async_commit());
    }
    whole.push_back(with_body(loop, make_seq({wait(), std::move(used)})));
    whole.push_back(std::move(last));
    return make_seq(std::move(whole));
  }
};

// Of all tensors in the same way.
Result<bool> copied_by_tma(const Stmt& body, const std::string& loop, const std::vector<Buffer>& buffers) {
  size_t by_tma = 0;
  for (const Buffer& buffer : buffers) {
    ASSIGN_OR_RETURN(const LoopCopy found, copy_in_loop(body, loop, buffer));
    by_tma += found.copy.by_tma ? 1 : 0;
  }
  if (by_tma != 0 && by_tma != buffers.size())
    return invalid_config(
        "some of the tensors are copied by TMA and some by threads; copy_by_tma() all or none");
  return by_tma != 0;
}

}  // namespace

void Schedule::pipeline_tensors(std::string_view name, std::span<const Tensor> tensors, const Axis& axis,
                                int64_t stages, bool products_go_on) {
  if (refused()) return;
  std::vector<Buffer> buffers;
  std::string names;
  for (const Tensor& t : tensors) {
    buffers.push_back(resolve(t));
    names += str(names.empty() ? "" : ", ", buffers.back() == nullptr ? "(none)" : buffers.back()->name);
  }
  const std::string call = str(name, "({", names, "}, ", label(program_.body, axis.var), ", ", stages, ")");
  apply(call, [&]() -> Status {
    constexpr int64_t kMostStages = 16;
    if (buffers.empty()) return invalid_config("needs at least one tensor");
    ASSIGN_OR_RETURN(const Path to_loop, serial_loop(program_.body, axis));
    Pipeline p{.loop = to_loop.back(),
               .stages = stages,
               .products_go_on = products_go_on,
               .body = to_loop.back()->body};
    ASSIGN_OR_RETURN(p.by_tma, copied_by_tma(p.body, axis.var->name, buffers));
    // Copies by threads end at a barrier before the products: those of the step before still read their stage
    // then.
    const int64_t least = products_go_on && !p.by_tma ? 3 : 2;
    if (stages < least || stages > kMostStages)
      return invalid_config("stages must be in ", least, "..", kMostStages, ", found ", stages);
    p.distance = stages + 1 - least;
    if (p.loop->extent < p.distance)
      return invalid_config(axis.var->name, " has ", p.loop->extent, " iterations; ", stages,
                            " stages need at least ", p.distance);
    p.first.resize(static_cast<size_t>(p.distance));
    if (p.by_tma)
      p.barriers = make_buffer(free_name(program_, "full"), DType::kInt64, {stages}, MemoryScope::kShared);
    std::vector<Buffer> all;
    for (const Buffer& buffer : buffers) {
      ASSIGN_OR_RETURN(const LoopCopy found, copy_in_loop(p.body, axis.var->name, buffer));
      ASSIGN_OR_RETURN(const Buffer to, staged(buffer, stages));
      ASSIGN_OR_RETURN(p.body, without_copy(found, found.others, buffer, to, floor_mod(p.loop->var, stages)));
      const auto copy_of = [&](const Expr& iteration) {
        Stmt copy = fresh_copy(found.copy, p.loop->var, iteration, to, {floor_mod(iteration, stages)},
                               std::nullopt, std::nullopt);
        return p.by_tma ? make_async_fetch(p.barrier(iteration), std::move(copy))
                        : make_async_copy(std::move(copy));
      };
      for (size_t s = 0; s < p.first.size(); ++s)
        p.first[s].push_back(copy_of(Expr(static_cast<int64_t>(s))));
      p.ahead.push_back(copy_of(p.next()));
      p.bytes += buffer->bytes();
      all.push_back(to);
    }
    ASSIGN_OR_RETURN(Stmt changed, p.assemble());
    if (p.by_tma) changed = make_allocate(p.barriers, std::move(changed));
    for (const Buffer& b : all) changed = make_allocate(b, std::move(changed));
    program_.body = replace_at(to_loop, simplify(changed, ranges_at(to_loop)));
    for (size_t i = 0; i < buffers.size(); ++i) moved(buffers[i], all[i]);
    record(call);
    return Status::ok();
  });
}

void Schedule::copy_by_tma(const Tensor& t) {
  if (refused()) return;
  const Buffer buffer = resolve(t);
  const std::string call = str("copy_by_tma(", buffer == nullptr ? "(none)" : buffer->name, ")");
  apply(call, [&]() -> Status {
    RETURN_IF_ERROR(check_shared(buffer));
    const Path to_copy = find_path(program_.body, [&](const StmtNode& s) {
      return (s.kind == StmtKind::kFor || s.kind == StmtKind::kIf || s.kind == StmtKind::kStore ||
              is_async(s, "fetch")) &&
             stores_to(std::make_shared<const StmtNode>(s), buffer) &&
             copy_nest(std::make_shared<const StmtNode>(s), buffer).is_ok();
    });
    if (to_copy.empty())
      return invalid_config(buffer->name, " is not a plain copy: loops, guards and one store");
    ASSIGN_OR_RETURN(const CopyNest copy, copy_nest(to_copy.back(), buffer));
    if (copy.by_tma) return invalid_config(buffer->name, " is copied by TMA already");
    for (const Stmt& loop : copy.loops)
      if (loop->loop != LoopKind::kSerial)
        return invalid_config(loop->var->name, " is ", loop_kind_name(loop->loop),
                              "; one thread asks for the whole copy, so all of its loops must be serial");
    RETURN_IF_ERROR(tensor_copy(to_copy.back(), ranges_at(to_copy)).status());
    program_.body = replace_at(to_copy, make_async_fetch({}, to_copy.back()));
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner
