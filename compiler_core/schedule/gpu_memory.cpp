// set_layout, double_buffer, launch_bounds: shared memory and registers of a GPU.
#include <algorithm>

#include "compiler_core/ir/layout.h"
#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

Status check_shared(const Buffer& buffer) {
  if (buffer == nullptr) return invalid_config("the tensor handle is empty");
  if (buffer->scope == MemoryScope::kShared) return Status::ok();
  return invalid_config(buffer->name, " is in ", memory_scope_name(buffer->scope),
                        " memory; set_scope(shared) first");
}

// A copy into shared memory: its loops (outermost first), the guards among them, the store.
struct CopyNest {
  std::vector<Stmt> loops;
  std::vector<Expr> guards;
  Stmt store;
};

Result<CopyNest> copy_nest(const Stmt& nest_root, const Buffer& buffer) {
  CopyNest copy;
  for (Stmt s = nest_root;; s = s->body) {
    if (s->kind == StmtKind::kFor) {
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

// Reads of `from` become reads of `to` at one more, leading index.
Expr read_stage(const Expr& e, const Buffer& from, const Buffer& to, const Expr& leading) {
  const Expr mapped =
      map_children(e, [&](const Expr& operand) { return read_stage(operand, from, to, leading); });
  if (e->kind != ExprKind::kLoad || e->buffer != from) return mapped;
  std::vector<Expr> indices = mapped->operands;
  indices.insert(indices.begin(), leading);
  return load(to, std::move(indices));
}
Stmt read_stage(const Stmt& s, const Buffer& from, const Buffer& to, const Expr& leading) {
  return map_children(
      s, [&](const Expr& e) { return read_stage(e, from, to, leading); },
      [&](const Stmt& child) { return read_stage(child, from, to, leading); });
}

}  // namespace

void Schedule::set_layout(const Tensor& t, std::string_view layout) {
  if (refused()) return;
  const Buffer buffer = resolve(t);
  const std::string call =
      str("set_layout(", buffer == nullptr ? "(none)" : buffer->name, ", {", layout, "})");
  apply(call, [&]() -> Status {
    RETURN_IF_ERROR(check_shared(buffer));
    RETURN_IF_ERROR(check_layout(layout, buffer->shape));
    auto changed = std::make_shared<BufferNode>(*buffer);
    changed->layout = layout;
    program_.body = replace_buffers(program_.body, {{buffer, changed}});
    moved(buffer, changed);
    record(call);
    return Status::ok();
  });
}

void Schedule::double_buffer(const Tensor& t, Axis axis, bool in_registers) {
  if (refused()) return;
  const Buffer buffer = resolve(t);
  const std::string call =
      str("double_buffer(", buffer == nullptr ? "(none)" : buffer->name, ", ", label(program_.body, axis.var),
          ", ", in_registers ? "registers" : "direct", ")");
  apply(call, [&]() -> Status {
    RETURN_IF_ERROR(check_shared(buffer));
    const Path to_loop = find_loop(program_.body, axis.var);
    if (to_loop.empty()) return invalid_config("not an axis of the Program (split, fused or never there)");
    const Stmt& loop = to_loop.back();
    if (loop->loop != LoopKind::kSerial)
      return invalid_config(axis.var->name, " is ", loop_kind_name(loop->loop), "; it must be serial");
    // Allocations and sequences lead from the loop to the copy; its neighbours are what it is used by.
    const Path to_copy = find_path(loop->body, [&](const StmtNode& s) {
      return (s.kind == StmtKind::kFor || s.kind == StmtKind::kIf || s.kind == StmtKind::kStore) &&
             stores_to(std::make_shared<const StmtNode>(s), buffer);
    });
    if (to_copy.size() < 2 || to_copy[to_copy.size() - 2]->kind != StmtKind::kSeq)
      return invalid_config(buffer->name, " is not computed and used directly in ", axis.var->name,
                            "; compute_at first");
    bool allocated = false;
    for (size_t i = 0; i + 1 < to_copy.size(); ++i) {
      allocated |= to_copy[i]->kind == StmtKind::kAllocate && to_copy[i]->buffer == buffer;
      if (to_copy[i]->kind != StmtKind::kAllocate && to_copy[i]->kind != StmtKind::kSeq)
        return invalid_config(buffer->name, " is computed further inside than directly in ", axis.var->name);
    }
    if (!allocated) return invalid_config(buffer->name, " is not computed inside ", axis.var->name);
    ASSIGN_OR_RETURN(const CopyNest copy, copy_nest(to_copy.back(), buffer));
    const Path to_block = prefix(to_copy, to_copy.size() - 2);

    std::vector<int64_t> shape = buffer->shape;
    shape.insert(shape.begin(), 2);
    const Buffer stages = derived_buffer(buffer, buffer->name, std::move(shape), MemoryScope::kShared);
    RETURN_IF_ERROR(check_size(stages));
    const Expr next = Expr(loop->var) + 1, has_next = next < loop->extent;
    std::vector<Stmt> block;
    for (const Stmt& s : to_block.back()->stmts)
      if (s != to_copy.back()) block.push_back(s);
    Buffer staged;
    if (in_registers) {
      // One register an element of the copy; the dimension of a thread axis becomes the thread itself.
      std::vector<int64_t> extents;
      std::vector<Expr> places;
      for (const Stmt& l : copy.loops) {
        extents.push_back(l->extent);
        places.emplace_back(l->var);
      }
      staged = make_buffer(free_name(program_, buffer->name + ".staged"), buffer->dtype, std::move(extents),
                           MemoryScope::kRegister);
      block.insert(block.begin(),
                   make_if(has_next, fresh_copy(copy, loop->var, next, staged, {}, places, std::nullopt)));
      block.push_back(make_if(has_next, fresh_copy(copy, loop->var, next, stages, {floor_mod(next, 2)},
                                                   std::nullopt, load(staged, places))));
    } else {
      block.insert(block.begin(),
                   make_if(has_next, fresh_copy(copy, loop->var, next, stages, {floor_mod(next, 2)},
                                                std::nullopt, std::nullopt)));
    }
    Stmt body = drop_allocation(replace_at(to_block, make_seq(std::move(block))), buffer);
    body = read_stage(body, buffer, stages, floor_mod(loop->var, 2));
    if (stores_to(body, buffer)) return invalid_config(buffer->name, " is stored in more than one place");
    if (staged != nullptr) body = make_allocate(staged, std::move(body));
    Stmt changed = with_body(loop, std::move(body));
    Stmt first = fresh_copy(copy, loop->var, 0, stages, {0}, std::nullopt, std::nullopt);
    changed = make_allocate(stages, make_seq({std::move(first), std::move(changed)}));
    program_.body = replace_at(to_loop, simplify(changed, ranges_at(to_loop)));
    moved(buffer, stages);
    record(call);
    return Status::ok();
  });
}

void Schedule::launch_bounds(int blocks) {
  if (refused()) return;
  const std::string call = str("launch_bounds(", blocks, ")");
  apply(call, [&]() -> Status {
    if (blocks < 1 || blocks > 32) return invalid_config("blocks of a multiprocessor must be in 1..32");
    program_.min_blocks = blocks;
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner
