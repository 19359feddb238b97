// decompose_reduction: the initialisation of a reduction becomes a nest of its own.
#include <algorithm>

#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

void Schedule::decompose_reduction(const Tensor& t, Axis axis) {
  if (refused()) return;
  const Buffer buffer = resolve(t);
  const std::string call = str("decompose_reduction(", buffer == nullptr ? "(none)" : buffer->name, ", ",
                               label(program_.body, axis.var), ")");
  apply(call, [&]() -> Status {
    if (buffer == nullptr) return invalid_config("the tensor handle is empty");
    const std::optional<Stage> stage = find_stage(program_.body, buffer);
    if (!stage.has_value()) return invalid_config(buffer->name, " is not computed in this Program");
    const StmtNode& store = stage->store();
    if (store.reduce == ReduceOp::kNone) return invalid_config(buffer->name, " is not a reduction");
    if (!store.first.defined())
      return invalid_config("the initialisation of ", buffer->name, " is already decomposed");
    const auto at = std::find_if(stage->path.begin(), stage->path.end(), [&](const Stmt& s) {
      return s->kind == StmtKind::kFor && s->var == axis.var;
    });
    if (at == stage->path.end() || at < stage->path.begin() + static_cast<std::ptrdiff_t>(stage->own))
      return invalid_config("not an axis of the stage of ", buffer->name);
    for (auto above = stage->path.begin(); above != at; ++above)
      if ((*above)->kind == StmtKind::kFor && (*above)->axis == AxisKind::kReduce && owner(*above) == buffer)
        return invalid_config("reduce axis ", label(program_.body, (*above)->var),
                              " is outside; its later iterations would start over");

    std::vector<Stmt> loops;
    std::vector<Expr> guards;
    std::vector<Var> reduced;
    VarMap fresh;
    for (auto s = at; s != stage->path.end(); ++s) {
      if ((*s)->kind == StmtKind::kIf)
        for (Expr& e : conjuncts((*s)->condition)) guards.push_back(std::move(e));
      if ((*s)->kind != StmtKind::kFor) continue;
      if ((*s)->axis == AxisKind::kReduce) {
        reduced.push_back((*s)->var);
        continue;
      }
      const Var copy = make_var((*s)->var->name + ".init");
      fresh[(*s)->var] = copy;
      twins_.emplace_back((*s)->var, copy);
      loops.push_back(make_for(copy, (*s)->extent, (*s)->body, (*s)->axis, (*s)->loop));
    }
    std::erase_if(guards, [&](const Expr& guard) {
      return std::any_of(reduced.begin(), reduced.end(),
                         [&](const Var& var) { return uses_var(guard, var); });
    });
    for (Expr& guard : guards) guard = substitute(guard, fresh);
    Stmt init = nest(loops, guards, substitute(make_store(buffer, store.indices, store.init), fresh));

    auto update = std::make_shared<StmtNode>(store);
    update->init = update->first = {};
    const Path from_axis(at, stage->path.end());
    Stmt updating = replace_at(from_axis, update);
    const Path to_axis(stage->path.begin(), at + 1);
    program_.body = replace_at(to_axis, make_seq({std::move(init), std::move(updating)}));
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner
