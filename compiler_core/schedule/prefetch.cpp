// prefetch: what a loop reads some iterations later is asked for now.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/prefetch.h"
#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

// What tells the elements of a load apart below a loop.
struct Wanted {
  Expr load;
  std::vector<Stmt> loops;  // outermost first; of vectors and dot products none: one element stands for all
  VarMap firsts;            // those left out, at their first iteration
};

// The different loads of `buffer` in the statement that `path` leads to.
std::vector<Wanted> loads_below(const Path& path, size_t loop, const Buffer& buffer) {
  std::vector<Expr> loads;
  visit_exprs(path.back(), [&](const Expr& e) {
    const bool known =
        std::any_of(loads.begin(), loads.end(), [&](const Expr& other) { return equal(e, other); });
    if (e->kind == ExprKind::kLoad && e->buffer == buffer && !known) loads.push_back(e);
  });
  std::vector<Wanted> found;
  for (const Expr& load : loads) {
    Wanted wanted{load, {}, {}};
    for (size_t i = loop + 1; i < path.size(); ++i) {
      if (path[i]->kind != StmtKind::kFor || !uses_var(load, path[i]->var)) continue;
      if (path[i]->loop == LoopKind::kVectorized || path[i]->loop == LoopKind::kDot)
        wanted.firsts[path[i]->var] = 0;
      else
        wanted.loops.push_back(path[i]);
    }
    found.push_back(std::move(wanted));
  }
  return found;
}

// For each load of `buffer` below `loop`: its element `ahead` iterations later, in fresh copies of the loops
// that tell its elements apart.
std::vector<Stmt> requests(const Path& path, size_t loop, const Buffer& buffer, int64_t ahead) {
  std::vector<Stmt> found;
  for (const Wanted& wanted : loads_below(path, loop, buffer)) {
    VarMap values = wanted.firsts;
    values[path[loop]->var] = Expr(path[loop]->var) + ahead;
    std::vector<Stmt> loops;
    for (const Stmt& inner : wanted.loops) {
      const Var copy = make_var(inner->var->name + ".ahead");
      values[inner->var] = Expr(copy);
      loops.push_back(make_for(copy, inner->extent, inner->body, AxisKind::kSpatial, inner->loop));
    }
    found.push_back(nest(loops, {}, make_prefetch(substitute(wanted.load, values))));
  }
  return found;
}

// What one request brings, on every CPU here.
constexpr int64_t kLineBytes = 64;

// How far apart in memory, in bytes, a load reads in neighbouring iterations of a loop.
int64_t stride_of(const Expr& load, const Var& loop) {
  int64_t stride = dtype_bytes(load->buffer->dtype), bytes = 0;
  for (size_t d = load->operands.size(); d-- > 0;) {
    VarMap first, second;
    visit(load->operands[d], [&](const Expr& e) {
      if (e->kind == ExprKind::kVar) first[e->var] = second[e->var] = 0;
    });
    second[loop] = 1;
    const Expr at_first = simplify(substitute(load->operands[d], first)),
               at_second = simplify(substitute(load->operands[d], second));
    if (at_first->kind == ExprKind::kIntImm && at_second->kind == ExprKind::kIntImm)
      bytes += stride * (at_second->int_value - at_first->int_value);
    stride *= load->buffer->shape[d];
  }
  return bytes;
}

// Leaves out the loops whose elements lie in one line.
void stand_for_lines(Wanted& wanted) {
  int64_t bytes = dtype_bytes(wanted.load->buffer->dtype);
  for (bool found = true; found;) {
    const auto inner = std::find_if(wanted.loops.begin(), wanted.loops.end(), [&](const Stmt& loop) {
      return stride_of(wanted.load, loop->var) == bytes && bytes * loop->extent <= kLineBytes;
    });
    found = inner != wanted.loops.end();
    if (!found) continue;
    bytes *= (*inner)->extent;
    wanted.firsts[(*inner)->var] = 0;
    wanted.loops.erase(inner);
  }
}

// For each load of `buffer` below the loop at `place`: its elements in the next iteration of `axis`, shared
// out over the iterations of `share`.
std::vector<Stmt> shared_requests(const Path& path, size_t place, const Buffer& buffer, const Stmt& axis,
                                  const Stmt& share) {
  std::vector<Stmt> found;
  for (Wanted wanted : loads_below(path, place, buffer)) {
    stand_for_lines(wanted);
    int64_t elements = 1;
    for (const Stmt& inner : wanted.loops) elements *= inner->extent;
    const int64_t each = ceil_div(elements, share->extent);
    const Var part = make_var(share->var->name + ".ahead");
    VarMap values = wanted.firsts;
    values[axis->var] = Expr(axis->var) + 1;
    Expr element = floor_mod(Expr(share->var) * each + (each > 1 ? Expr(part) : Expr(0)), elements);
    for (size_t i = wanted.loops.size(); i-- > 0;) {
      const Stmt& inner = wanted.loops[i];
      values[inner->var] = i == 0 ? element : floor_mod(element, inner->extent);
      element = floor_div(element, inner->extent);
    }
    const Stmt asked = make_prefetch(substitute(wanted.load, values), PrefetchInto::kL2);
    found.push_back(each == 1 ? asked : make_for(part, each, asked, AxisKind::kSpatial, LoopKind::kUnrolled));
  }
  return found;
}

std::string named(const Buffer& buffer) { return buffer == nullptr ? "(none)" : buffer->name; }

// The path to the statement that computes `into`, which may ask the caches for `buffer`.
Result<Path> path_to_reader(const Stmt& root, const Buffer& buffer, const Buffer& into) {
  if (buffer == nullptr || into == nullptr) return invalid_config("a tensor handle is empty");
  if (buffer->scope != MemoryScope::kGlobal)
    return invalid_config(buffer->name, " is in ", memory_scope_name(buffer->scope), " memory");
  const std::optional<Stage> stage = find_stage(root, into);
  if (!stage.has_value()) return invalid_config(into->name, " is not computed in this Program");
  return stage->path;
}

// The place of a loop on a path.
Result<size_t> loop_on(const Path& path, const Axis& axis, const Buffer& into) {
  const auto at = std::find_if(path.begin(), path.end(), [&](const Stmt& s) {
    return s->kind == StmtKind::kFor && s->var == axis.var;
  });
  if (at == path.end()) return invalid_config("not an axis around ", into->name);
  return static_cast<size_t>(at - path.begin());
}
Result<size_t> serial_loop_on(const Path& path, const Axis& axis, const Buffer& into) {
  ASSIGN_OR_RETURN(const size_t at, loop_on(path, axis, into));
  if (path[at]->loop != LoopKind::kSerial)
    return invalid_config("the axis is ", loop_kind_name(path[at]->loop),
                          "; only a serial one has a next iteration");
  return at;
}

// Puts the requests in front of the body of the loop at `place`.
Stmt with_requests(const Path& path, size_t place, std::vector<Stmt> requests) {
  requests.push_back(path[place]->body);
  return replace_at(prefix(path, place), with_body(path[place], make_seq(std::move(requests))));
}

}  // namespace

void Schedule::prefetch(const Tensor& t, const Tensor& reader, Axis axis, int64_t ahead) {
  if (refused()) return;
  const Buffer buffer = resolve(t), into = resolve(reader);
  const std::string call = str("prefetch(", named(buffer), ", ", named(into), ", ",
                               label(program_.body, axis.var), ", ", ahead, ")");
  apply(call, [&]() -> Status {
    if (ahead < 1) return invalid_config("must ask at least 1 iteration ahead");
    ASSIGN_OR_RETURN(const Path path, path_to_reader(program_.body, buffer, into));
    ASSIGN_OR_RETURN(const size_t at, serial_loop_on(path, axis, into));
    std::vector<Stmt> body = requests(path, at, buffer, ahead);
    if (body.empty()) return invalid_config(into->name, " does not read ", buffer->name);
    program_.body = with_requests(path, at, std::move(body));
    record(call);
    return Status::ok();
  });
}

void Schedule::prefetch_next(const Tensor& t, const Tensor& reader, Axis axis, Axis share, Axis at) {
  if (refused()) return;
  const Buffer buffer = resolve(t), into = resolve(reader);
  const auto call_at = [&](const Axis& place) {
    std::vector<Axis> axes{axis, share};
    if (place.var != nullptr) axes.push_back(place);
    return str("prefetch_next(", named(buffer), ", ", named(into), ", ", labels(program_.body, axes), ")");
  };
  apply(call_at(at), [&]() -> Status {
    ASSIGN_OR_RETURN(const Path path, path_to_reader(program_.body, buffer, into));
    ASSIGN_OR_RETURN(const size_t next, serial_loop_on(path, axis, into));
    ASSIGN_OR_RETURN(const size_t shared, loop_on(path, share, into));
    if (shared <= next) return invalid_config(share.var->name, " is not inside ", axis.var->name);
    size_t place = path.size() - 1;
    if (at.var != nullptr) {
      ASSIGN_OR_RETURN(place, loop_on(path, at, into));
      if (path[place]->loop != LoopKind::kSerial)
        return invalid_config(at.var->name, " is ", loop_kind_name(path[place]->loop), ", not serial");
    } else {
      while (place > shared &&
             !(path[place]->kind == StmtKind::kFor && path[place]->loop == LoopKind::kSerial))
        --place;
    }
    if (place <= shared) return invalid_config("no serial loop is inside ", share.var->name);
    for (const Wanted& wanted : loads_below(path, next, buffer)) {
      if (uses_var(wanted.load, share.var))
        return invalid_config(into->name, " reads other elements of ", buffer->name, " in each iteration of ",
                              share.var->name);
      if (!uses_var(wanted.load, axis.var))
        return invalid_config(into->name, " reads the same elements of ", buffer->name,
                              " in each iteration of ", axis.var->name);
    }
    std::vector<Stmt> body = shared_requests(path, place, buffer, path[next], path[shared]);
    if (body.empty()) return invalid_config(into->name, " does not read ", buffer->name);
    const std::string traced = call_at(Axis{path[place]->var});
    program_.body = with_requests(path, place, std::move(body));
    record(traced);
    return Status::ok();
  });
}

}  // namespace tuner
