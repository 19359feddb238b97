// cache_write, cache_read: a tensor gets a second buffer nearer to where it is used.
#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

Tensor Schedule::cache_write(const Tensor& t, MemoryScope scope) {
  Tensor result;
  if (refused()) return result;
  const Buffer buffer = resolve(t);
  const std::string call =
      str("cache_write(", buffer == nullptr ? "(none)" : buffer->name, ", ", memory_scope_name(scope), ")");
  apply(call, [&]() -> Status {
    if (buffer == nullptr) return invalid_config("the tensor handle is empty");
    ASSIGN_OR_RETURN(const PlainStage plain, plain_stage(program_.body, buffer));
    const StmtNode& store = plain.stage.store();
    const Buffer cache = derived_buffer(
        buffer, free_name(program_, str(buffer->name, ".", memory_scope_name(scope))), buffer->shape, scope);
    // The cache takes over the computation, with spatial variables of its own; t keeps its axes for the copy.
    VarMap fresh;
    std::vector<Stmt> copy_loops;
    for (const Stmt& loop : plain.loops) {
      if (loop->axis != AxisKind::kSpatial) continue;
      fresh[loop->var] = make_var(loop->var->name);
      copy_loops.push_back(loop);
    }
    Stmt compute = substitute(
        make_reduce(cache, store.indices, store.reduce, store.init, store.value, store.first), fresh);
    std::vector<Stmt> loops;
    for (const Stmt& loop : plain.loops) {
      const auto renamed = fresh.find(loop->var);
      loops.push_back(renamed == fresh.end()
                          ? loop
                          : make_for(renamed->second->var, loop->extent, loop->body, loop->axis, loop->loop));
    }
    compute = nest(loops, {}, std::move(compute));
    Stmt copy = nest(copy_loops, {}, make_store(buffer, store.indices, load(cache, store.indices)));
    // The cache lives as long as the block that t's stage stands in.
    const Path path = prefix(plain.stage.path, plain.top);
    const bool at_root =
        std::none_of(path.begin(), path.end() - 1, [](const Stmt& s) { return s->kind == StmtKind::kFor; });
    Stmt both = make_seq({std::move(compute), std::move(copy)});
    if (at_root) {
      program_.body = allocate_at_root(replace_at(path, std::move(both)), cache);
    } else if (const Stmt& block = path[plain.top - 1]; block->kind == StmtKind::kSeq) {
      const Stmt whole = replace_at({block, path.back()}, std::move(both));
      program_.body = replace_at(prefix(path, plain.top - 1), make_allocate(cache, whole));
    } else {
      program_.body = replace_at(path, make_allocate(cache, std::move(both)));
    }
    result.buffer = cache;
    record(str(call, " -> ", cache->name));
    return Status::ok();
  });
  return result;
}

Tensor Schedule::cache_read(const Tensor& t, MemoryScope scope, const Tensor& reader) {
  Tensor result;
  if (refused()) return result;
  const Buffer buffer = resolve(t), into = resolve(reader);
  const std::string call = str("cache_read(", buffer == nullptr ? "(none)" : buffer->name, ", ",
                               memory_scope_name(scope), ", ", into == nullptr ? "(none)" : into->name, ")");
  apply(call, [&]() -> Status {
    if (buffer == nullptr || into == nullptr) return invalid_config("a tensor handle is empty");
    const std::optional<Stage> stage = find_stage(program_.body, into);
    if (!stage.has_value()) return invalid_config(into->name, " is not computed in this Program");
    if (!reads_from(stage->path.back(), buffer))
      return invalid_config(into->name, " does not read ", buffer->name);
    const Buffer cache = derived_buffer(
        buffer, free_name(program_, str(buffer->name, ".", memory_scope_name(scope))), buffer->shape, scope);
    // Before the outermost loop around the reader.
    size_t outermost = 0;
    while (stage->path[outermost]->kind == StmtKind::kAllocate ||
           stage->path[outermost]->kind == StmtKind::kSeq)
      ++outermost;
    const Path to_nest = prefix(stage->path, outermost);
    if (stores_to(to_nest.back(), buffer))
      return invalid_config(buffer->name, " is computed inside the loops of ", into->name,
                            "; cache before compute_at");
    std::vector<Stmt> loops;
    std::vector<Expr> indices;
    for (size_t d = 0; d < buffer->shape.size(); ++d) {
      const Var var = make_var(str("i", d));
      loops.push_back(make_for(var, buffer->shape[d], to_nest.back()));
      indices.emplace_back(var);
    }
    Stmt copy = nest(loops, {}, make_store(cache, indices, load(buffer, indices)));
    const Path from_nest(stage->path.begin() + static_cast<std::ptrdiff_t>(outermost), stage->path.end());
    Stmt reading = replace_at(from_nest, replace_buffers(stage->path.back(), {{buffer, cache}}));
    program_.body =
        allocate_at_root(replace_at(to_nest, make_seq({std::move(copy), std::move(reading)})), cache);
    result.buffer = cache;
    record(str(call, " -> ", cache->name));
    return Status::ok();
  });
  return result;
}

}  // namespace tuner
