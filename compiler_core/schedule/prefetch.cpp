// prefetch: what a loop reads some iterations later is asked for now.
#include <algorithm>

#include "compiler_core/ir/prefetch.h"
#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

// For each load of `buffer` below `loop`: its element `ahead` iterations later, in fresh copies of the loops
// that tell its elements apart. The first lane stands for a vector, the first element for those of a dot
// product.
std::vector<Stmt> requests(const Path& path, size_t loop, const Buffer& buffer, int64_t ahead) {
  std::vector<Expr> loads;
  visit_exprs(path.back(), [&](const Expr& e) {
    const bool known =
        std::any_of(loads.begin(), loads.end(), [&](const Expr& other) { return equal(e, other); });
    if (e->kind == ExprKind::kLoad && e->buffer == buffer && !known) loads.push_back(e);
  });
  std::vector<Stmt> found;
  for (const Expr& wanted : loads) {
    VarMap values{{path[loop]->var, Expr(path[loop]->var) + ahead}};
    std::vector<Stmt> loops;
    for (size_t i = loop + 1; i < path.size(); ++i) {
      if (path[i]->kind != StmtKind::kFor || !uses_var(wanted, path[i]->var)) continue;
      if (path[i]->loop == LoopKind::kVectorized || path[i]->loop == LoopKind::kDot) {
        values[path[i]->var] = 0;
        continue;
      }
      const Var copy = make_var(path[i]->var->name + ".ahead");
      values[path[i]->var] = Expr(copy);
      loops.push_back(make_for(copy, path[i]->extent, path[i]->body, AxisKind::kSpatial, path[i]->loop));
    }
    found.push_back(nest(loops, {}, make_prefetch(substitute(wanted, values))));
  }
  return found;
}

}  // namespace

void Schedule::prefetch(const Tensor& t, const Tensor& reader, Axis axis, int64_t ahead) {
  if (refused()) return;
  const Buffer buffer = resolve(t), into = resolve(reader);
  const std::string call =
      str("prefetch(", buffer == nullptr ? "(none)" : buffer->name, ", ",
          into == nullptr ? "(none)" : into->name, ", ", label(program_.body, axis.var), ", ", ahead, ")");
  apply(call, [&]() -> Status {
    if (buffer == nullptr || into == nullptr) return invalid_config("a tensor handle is empty");
    if (ahead < 1) return invalid_config("must ask at least 1 iteration ahead");
    if (buffer->scope != MemoryScope::kGlobal)
      return invalid_config(buffer->name, " is in ", memory_scope_name(buffer->scope), " memory");
    const std::optional<Stage> stage = find_stage(program_.body, into);
    if (!stage.has_value()) return invalid_config(into->name, " is not computed in this Program");
    const Path& path = stage->path;
    const auto at = std::find_if(path.begin(), path.end(), [&](const Stmt& s) {
      return s->kind == StmtKind::kFor && s->var == axis.var;
    });
    if (at == path.end()) return invalid_config("not an axis around ", into->name);
    if ((*at)->loop != LoopKind::kSerial)
      return invalid_config("the axis is ", loop_kind_name((*at)->loop),
                            "; only a serial one has a next iteration");
    std::vector<Stmt> body = requests(path, static_cast<size_t>(at - path.begin()), buffer, ahead);
    if (body.empty()) return invalid_config(into->name, " does not read ", buffer->name);
    body.push_back((*at)->body);
    const Path place = prefix(path, static_cast<size_t>(at - path.begin()));
    program_.body = replace_at(place, with_body(*at, make_seq(std::move(body))));
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner
