// compute_at: a stage moves into a loop of its consumer and shrinks to what is read there.
#include <algorithm>

#include "compiler_core/analysis/regions.h"
#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

// True when every index below e that uses `var` stays inside its buffer without any guard on the moved stage.
// A load in a select counts under the select's condition.
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

// Moves a plain stage to where `region` of its buffer is read.
class Mover {
 public:
  Mover(const PlainStage& plain, const Region& region, const RangeMap& ranges)
      : plain_(plain),
        region_(region),
        ranges_(ranges),
        extents_(plain.stage.store().reduce == ReduceOp::kNone ? region.extent : region.reached) {
    const Buffer& buffer = plain.stage.store().buffer;
    const Buffer whole = derived_buffer(buffer, buffer->name, extents_, buffer->scope);
    const Buffer cut = derived_buffer(buffer, buffer->name, region.extent, buffer->scope);
    if (mostly_padding(whole, cut)) extents_ = region.extent;
  }

  // Loops over the region, stored from 0 into tile(). In a reduction a dimension cut at the end of the buffer
  // keeps the whole tile if that needs no guard: register tiles stay full vectors where the operands are
  // padded. Not where that is padding and little else.
  Stmt moved() {
    Stmt result = build();
    for (size_t d = 0; d < extents_.size(); ++d)
      if (guarded_[d]) extents_[d] = region_.extent[d];
    if (std::find(guarded_.begin(), guarded_.end(), true) != guarded_.end()) result = build();
    return result;
  }
  const Buffer& tile() const { return tile_; }

 private:
  Stmt build() {
    const StmtNode& store = plain_.stage.store();
    tile_ = derived_buffer(store.buffer, store.buffer->name, extents_, store.buffer->scope);
    guarded_.assign(extents_.size(), false);
    RangeMap ranges = ranges_;
    std::vector<Stmt> loops;
    for (const Stmt& loop : plain_.loops) {
      const auto d = std::find(plain_.dims.begin(), plain_.dims.end(), loop->var);
      const int64_t extent =
          d == plain_.dims.end() ? loop->extent : extents_[static_cast<size_t>(d - plain_.dims.begin())];
      loops.push_back(make_for(loop->var, extent, loop->body, loop->axis, loop->loop));
      ranges.bind(loop->var, extent);
    }
    std::vector<Expr> indices;
    VarMap whole;
    for (size_t d = 0; d < plain_.dims.size(); ++d) {
      indices.push_back(plain_.dims[d].has_value() ? Expr(*plain_.dims[d]) : Expr(0));
      if (plain_.dims[d].has_value()) whole[*plain_.dims[d]] = region_.min[d] + *plain_.dims[d];
    }
    const Expr value = substitute(store.value, whole);  // not simplified: that would hide an axis of extent 1
    std::vector<Expr> guards;
    for (size_t d = 0; d < plain_.dims.size(); ++d) {
      if (!plain_.dims[d].has_value()) continue;
      const Expr& index = whole[*plain_.dims[d]];
      const Expr guard = simplify(index >= 0, ranges) && simplify(index < store.buffer->shape[d], ranges);
      if (guard->kind == ExprKind::kIntImm && guard->int_value != 0) continue;
      if (reads_stay_inside(value, *plain_.dims[d], ranges)) continue;
      guarded_[d] = true;
      guards.push_back(guard);
    }
    return simplify(
        nest(loops, guards, make_reduce(tile_, indices, store.reduce, store.init, value, store.first)),
        ranges);
  }

  const PlainStage& plain_;
  const Region& region_;
  const RangeMap& ranges_;
  std::vector<int64_t> extents_;
  std::vector<bool> guarded_;
  Buffer tile_;
};

// The loops around the stage must be around its new place too: its expression uses their variables.
Status check_loops_around(const Path& place, const Path& at) {
  for (size_t i = 0; i + 1 < place.size(); ++i)
    if (place[i]->kind == StmtKind::kFor && std::find(at.begin(), at.end(), place[i]) == at.end())
      return invalid_config("it is computed inside loop ", place[i]->var->name,
                            " already and can only move further in");
  return Status::ok();
}

bool is_thread_loop(const Stmt& s) {
  return s->kind == StmtKind::kFor && s->loop >= LoopKind::kThreadX && s->loop <= LoopKind::kVirtualThread;
}

bool uses_thread(const Expr& condition, const Path& path) {
  return std::any_of(path.begin(), path.end(),
                     [&](const Stmt& s) { return is_thread_loop(s) && uses_var(condition, s->var); });
}

// What holds at path.back() for all threads of the block: as ranges_at, without thread and virtual thread
// loops.
RangeMap block_ranges_at(const Path& path) {
  RangeMap ranges;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    if (path[i]->kind == StmtKind::kFor && !is_thread_loop(path[i]))
      ranges.bind(path[i]->var, path[i]->extent);
    if (path[i]->kind == StmtKind::kIf && path[i]->body == path[i + 1] &&
        !uses_thread(path[i]->condition, path))
      ranges.assume(path[i]->condition);
  }
  return ranges;
}

// `block` run by all threads of the GPU block: inside the thread loops of `path`.
Stmt for_all_threads(const Path& path, Stmt block) {
  for (auto s = path.rbegin(); s != path.rend(); ++s)
    if (is_thread_loop(*s)) block = with_body(*s, std::move(block));
  return block;
}

// From the loop path.back() down to the block of its first reader of `buffer`. Guards are entered: where they
// fail nothing is read. Not those that ask for the thread: what is shared must be computed by all of them.
Path block_of_readers(Path path, const Buffer& buffer) {
  path.push_back(path.back()->body);
  for (;;) {
    const Stmt s = path.back();
    const Stmt& only = s->kind == StmtKind::kSeq ? s->stmts.back() : s;
    if (s->kind == StmtKind::kSeq &&
        std::any_of(s->stmts.begin(), s->stmts.end() - 1,
                    [&](const Stmt& child) { return reads_from(child, buffer); }))
      return path;
    const bool guard =
        only->kind == StmtKind::kIf && only->else_body == nullptr && !uses_thread(only->condition, path);
    if (only->kind != StmtKind::kAllocate && !guard) return path;
    if (s->kind == StmtKind::kSeq) path.push_back(only);
    path.push_back(path.back()->body);
  }
}

// What the stage reads must not be computed after its new place.
Status check_inputs(const Stmt& store, const std::vector<Stmt>& after) {
  Status status;
  visit_exprs(store, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad &&
        std::any_of(after.begin(), after.end(), [&](const Stmt& s) { return stores_to(s, e->buffer); }))
      status = invalid_config("it reads ", e->buffer->name, ", which is computed later there");
  });
  return status;
}

}  // namespace

void Schedule::compute_at(const Tensor& t, Axis axis) {
  if (refused()) return;
  const Buffer buffer = resolve(t);
  const std::string call = str("compute_at(", buffer == nullptr ? "(none)" : buffer->name, ", ",
                               label(program_.body, axis.var), ")");
  apply(call, [&]() -> Status {
    if (buffer == nullptr) return invalid_config("the tensor handle is empty");
    if (axis.var == nullptr) return invalid_config("the axis handle is empty");
    if (buffer->role != BufferRole::kIntermediate)
      return invalid_config(buffer->name, " is an argument (", buffer_role_name(buffer->role),
                            "), computed whole");
    ASSIGN_OR_RETURN(const PlainStage plain, plain_stage(program_.body, buffer));
    RETURN_IF_ERROR(check_not_carried(plain.stage));
    Path at = find_loop(program_.body, axis.var);
    if (at.empty()) return invalid_config("not an axis of the Program (split, fused or never there)");
    if (stores_to(at.back(), buffer) &&
        std::find(plain.loops.begin(), plain.loops.end(), at.back()) != plain.loops.end())
      return invalid_config("this is an axis of ", buffer->name, " itself");
    if (!reads_from(at.back(), buffer)) return invalid_config("nothing under this axis reads ", buffer->name);
    if (!all_readers_below(program_.body, at.back(), buffer))
      return invalid_config("a reader of ", buffer->name, " stands outside this axis");

    const Path place = prefix(plain.stage.path, plain.top);
    RETURN_IF_ERROR(check_loops_around(place, at));

    // Out of its place first, so that what is left under the axis are the readers.
    Stmt root = drop_allocation(replace_at(place, nullptr), buffer);
    const Path inside = block_of_readers(find_loop(root, axis.var), buffer);
    const Stmt& block = inside.back();
    std::vector<Stmt> before, readers;
    for (const Stmt& s : block->kind == StmtKind::kSeq ? block->stmts : std::vector<Stmt>{block})
      (readers.empty() && !reads_from(s, buffer) ? before : readers).push_back(s);
    RETURN_IF_ERROR(check_inputs(plain.stage.path.back(), readers));
    const RangeMap ranges = ranges_at(inside);
    const bool shared = buffer->scope == MemoryScope::kShared;
    const RangeMap stage_ranges = shared ? block_ranges_at(inside) : ranges;
    const Region region = *region_read(shared ? for_all_threads(inside, block) : block, buffer, stage_ranges);

    Mover mover(plain, region, stage_ranges);
    Stmt moved_stage = mover.moved();
    const Buffer tile = mover.tile();
    const auto shifted = [&](const auto& self, const Expr& e) -> Expr {
      const Expr mapped = map_children(e, [&](const Expr& operand) { return self(self, operand); });
      if (e->kind != ExprKind::kLoad || e->buffer != buffer) return mapped;
      std::vector<Expr> indices;
      for (size_t d = 0; d < region.min.size(); ++d) indices.push_back(mapped->operands[d] - region.min[d]);
      return load(tile, std::move(indices));
    };
    const auto rewritten = [&](const auto& self, const Stmt& s) -> Stmt {
      return map_children(
          s, [&](const Expr& e) { return shifted(shifted, e); },
          [&](const Stmt& child) { return self(self, child); });
    };
    std::vector<Stmt> body = std::move(before);
    body.push_back(std::move(moved_stage));
    for (const Stmt& s : readers) body.push_back(simplify(rewritten(rewritten, s), ranges));
    Stmt changed = replace_at(inside, make_allocate(tile, make_seq(std::move(body))));
    RETURN_IF_ERROR(check_allocated(program_, changed));
    program_.body = std::move(changed);
    moved(buffer, tile);
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner
