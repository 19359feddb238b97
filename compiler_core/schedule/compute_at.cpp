// compute_at: a stage moves into a loop of its consumer and shrinks to what is read there.
#include <algorithm>

#include "compiler_core/analysis/regions.h"
#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

// True when every index below e that uses `var` stays inside its buffer without any guard on the moved stage. A load in a
// select counts under the select's condition.
bool reads_stay_inside(const Expr& e, const Var& var, const RangeMap& ranges) {
  if (e->kind == ExprKind::kSelect) {
    RangeMap inside = ranges;
    inside.assume(simplify(e->operands[0], ranges));
    return reads_stay_inside(e->operands[0], var, ranges) && reads_stay_inside(e->operands[1], var, inside) &&
           reads_stay_inside(e->operands[2], var, ranges);
  }
  if (e->kind == ExprKind::kLoad) {
    for (size_t d = 0; d < e->operands.size(); ++d) {
      if (!uses_var(e->operands[d], var)) continue;
      const auto bounds = const_bounds(e->operands[d], ranges);
      if (!bounds.has_value() || bounds->first < 0 || bounds->second >= e->buffer->shape[d]) return false;
    }
  }
  return std::all_of(e->operands.begin(), e->operands.end(),
                     [&](const Expr& operand) { return reads_stay_inside(operand, var, ranges); });
}

// Every load of `buffer` stands below `loop`.
bool all_readers_below(const Stmt& root, const Stmt& loop, const Buffer& buffer) {
  const auto count = [&](const Stmt& s) {
    int n = 0;
    visit_exprs(s, [&](const Expr& e) { n += e->kind == ExprKind::kLoad && e->buffer == buffer; });
    return n;
  };
  return count(root) == count(loop);
}

// The moved stage: loops over `region`, stored from 0 into `tile`.
Stmt moved_stage(const PlainStage& plain, const Region& region, const Buffer& tile, RangeMap ranges) {
  const StmtNode& store = plain.stage.store();
  std::vector<Expr> indices, guards;
  std::vector<int64_t> extents(plain.loops.size());
  VarMap values;
  std::vector<Stmt> loops;
  for (const Stmt& loop : plain.loops) {
    int64_t extent = loop->extent;
    for (size_t d = 0; d < plain.dims.size(); ++d)
      if (plain.dims[d] == loop->var) extent = region.extent[d];
    loops.push_back(make_for(loop->var, extent, loop->body, loop->axis, loop->loop));
    ranges.bind(loop->var, extent);
  }
  for (size_t d = 0; d < plain.dims.size(); ++d) {
    if (!plain.dims[d].has_value()) {
      indices.emplace_back(0);
      continue;
    }
    indices.emplace_back(*plain.dims[d]);
    values[*plain.dims[d]] = region.min[d] + *plain.dims[d];
  }
  const Expr value = simplify(substitute(store.value, values), ranges);
  for (size_t d = 0; d < plain.dims.size(); ++d) {
    if (!plain.dims[d].has_value()) continue;
    const Expr whole = values[*plain.dims[d]];
    const Expr below = simplify(whole < plain.stage.store().buffer->shape[d], ranges), above = simplify(whole >= 0, ranges);
    const Expr guard = above && below;
    if (guard->kind == ExprKind::kIntImm && guard->int_value != 0) continue;
    if (!reads_stay_inside(value, *plain.dims[d], ranges)) guards.push_back(guard);
  }
  Stmt moved = nest(loops, guards, make_reduce(tile, indices, store.reduce, store.init, value, store.first));
  return simplify(moved, ranges);
}

}  // namespace

void Schedule::compute_at(const Tensor& t, Axis axis) {
  if (refused()) return;
  const Buffer buffer = resolve(t);
  const std::string call =
      str("compute_at(", buffer == nullptr ? "(none)" : buffer->name, ", ", label(program_.body, axis.var), ")");
  apply(call, [&]() -> Status {
    if (buffer == nullptr) return invalid_config("the tensor handle is empty");
    if (axis.var == nullptr) return invalid_config("the axis handle is empty");
    if (buffer->role != BufferRole::kIntermediate)
      return invalid_config(buffer->name, " is an argument (", buffer_role_name(buffer->role), "), computed whole");
    ASSIGN_OR_RETURN(const PlainStage plain, plain_stage(program_.body, buffer));
    Path at = find_loop(program_.body, axis.var);
    if (at.empty()) return invalid_config("not an axis of the Program (split, fused or never there)");
    if (stores_to(at.back(), buffer) && std::find(plain.loops.begin(), plain.loops.end(), at.back()) != plain.loops.end())
      return invalid_config("this is an axis of ", buffer->name, " itself");
    if (!reads_from(at.back(), buffer)) return invalid_config("nothing under this axis reads ", buffer->name);
    if (!all_readers_below(program_.body, at.back(), buffer))
      return invalid_config("a reader of ", buffer->name, " stands outside this axis");

    // Out of its place first, so that what is left under the axis are the readers.
    Stmt root = replace_at(prefix(plain.stage.path, plain.top), nullptr);
    root = drop_allocation(root, buffer);
    at = find_loop(root, axis.var);
    while (at.back()->body->kind == StmtKind::kIf && at.back()->body->else_body == nullptr) at.push_back(at.back()->body);
    const Stmt readers = at.back()->body;
    Path inside = at;
    inside.push_back(readers);
    const RangeMap ranges = ranges_at(inside);
    const Region region = *region_read(readers, buffer, ranges);

    const Buffer tile = derived_buffer(buffer, buffer->name, region.extent, buffer->scope);
    const auto shifted = [&](const auto& self, const Expr& e) -> Expr {
      const Expr mapped = map_children(e, [&](const Expr& operand) { return self(self, operand); });
      if (e->kind != ExprKind::kLoad || e->buffer != buffer) return mapped;
      std::vector<Expr> indices;
      for (size_t d = 0; d < region.min.size(); ++d) indices.push_back(mapped->operands[d] - region.min[d]);
      return load(tile, std::move(indices));
    };
    const auto rewritten = [&](const auto& self, const Stmt& s) -> Stmt {
      return map_children(s, [&](const Expr& e) { return shifted(shifted, e); }, [&](const Stmt& child) { return self(self, child); });
    };
    Stmt body = make_seq({moved_stage(plain, region, tile, ranges), simplify(rewritten(rewritten, readers), ranges)});
    program_.body = replace_at(inside, make_allocate(tile, std::move(body)));
    moved(buffer, tile);
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner
