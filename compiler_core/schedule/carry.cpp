// carry_sums: a partial sum begins with the sum that it is a part of.
#include <algorithm>

#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

// The statements of `path` from the last sequence on: the nest of one store and nothing else.
Path own_nest(const Path& path) {
  size_t from = path.size() - 1;
  while (from > 0 && path[from - 1]->kind != StmtKind::kSeq && path[from - 1]->kind != StmtKind::kAllocate)
    --from;
  return {path.begin() + static_cast<std::ptrdiff_t>(from), path.end()};
}

// sum[...] += part[...]: the nest that does it once for each element of part.
struct Adding {
  Path path;
  std::vector<Stmt> loops;
  const StmtNode& store() const { return *path.back(); }
  const std::vector<Expr>& of_part() const { return store().value->operands; }
};

Result<Adding> adding(const Program& program, const Buffer& part, const Buffer& sum) {
  const std::optional<Stage> stage = find_stage(program.body, sum);
  if (!stage.has_value()) return invalid_config(sum->name, " is not computed in this Program");
  Adding found{.path = stage->path, .loops = {}};
  const StmtNode& store = found.store();
  if (store.reduce != ReduceOp::kSum || store.value->kind != ExprKind::kLoad || store.value->buffer != part)
    return invalid_config(sum->name, " is not a sum of elements of ", part->name);
  if (!store.first.defined())
    return invalid_config("the initialisation of ", sum->name,
                          " is already decomposed; carry_sums needs its start");
  for (const Stmt& s : own_nest(found.path)) {
    if (s->kind == StmtKind::kStore) break;
    if (s->kind != StmtKind::kFor || s->axis != AxisKind::kSpatial || s->loop != LoopKind::kSerial)
      return invalid_config("more than serial spatial loops stand around the sum of ", sum->name,
                            "; do that later");
    found.loops.push_back(s);
  }
  std::vector<Stmt> unused = found.loops;  // each is a dimension of part, or of one iteration
  for (size_t d = 0; d < part->shape.size(); ++d) {
    const Expr& index = found.of_part()[d];
    if (part->shape[d] == 1 && is_const_int(index)) continue;
    const auto loop = std::ranges::find_if(unused, [&](const Stmt& l) {
      return index->kind == ExprKind::kVar && index->var == l->var && l->extent == part->shape[d];
    });
    if (loop == unused.end())
      return invalid_config("dimension ", d, " of ", part->name, " is read by ", to_text(index),
                            ", not by a loop over all of it; split it later");
    unused.erase(loop);
  }
  if (std::ranges::any_of(unused, [](const Stmt& l) { return l->extent > 1; }))
    return invalid_config(sum->name, " adds elements of ", part->name, " more than once");
  return found;
}

// The nest that sets part to 0, and nothing else: all of it, once before `adds`.
Result<Path> initialisation(const Program& program, const Buffer& part, const Adding& adds) {
  const std::optional<Stage> stage = find_stage(program.body, part);
  if (!stage.has_value()) return invalid_config(part->name, " is not computed in this Program");
  if (stage->store().reduce != ReduceOp::kSum || stage->store().first.defined())
    return invalid_config(part->name, " is not a sum with an initialisation; decompose_reduction first");
  Path path = find_path(program.body, [&](const StmtNode& s) {
    return s.kind == StmtKind::kStore && s.buffer == part && s.reduce == ReduceOp::kNone;
  });
  const size_t top = path.size() - own_nest(path).size();
  for (size_t i = 0; i < top; ++i)
    if (path[i]->kind == StmtKind::kFor && path[i]->extent > 1 &&
        (i >= adds.path.size() || path[i] != adds.path[i]))
      return invalid_config(part->name, " is initialised inside loop ", path[i]->var->name,
                            ", a part at a time; decompose_reduction at its outermost loop");
  return path;
}

}  // namespace

std::vector<Axis> Schedule::carry_sums(const Tensor& part, const Tensor& sum) {
  std::vector<Axis> result;
  if (refused()) return result;
  const Buffer from = resolve(part), into = resolve(sum);
  const auto name = [](const Buffer& b) { return b == nullptr ? std::string("(none)") : b->name; };
  const std::string call = str("carry_sums(", name(from), ", ", name(into), ")");
  apply(call, [&]() -> Status {
    if (from == nullptr || into == nullptr) return invalid_config("a tensor handle is empty");
    if (from->dtype != into->dtype)
      return invalid_config(from->name, " is ", from->dtype, " and ", into->name, " ", into->dtype);
    ASSIGN_OR_RETURN(const Adding adds, adding(program_, from, into));
    ASSIGN_OR_RETURN(const Path zeros, initialisation(program_, from, adds));
    VarMap fresh;
    std::vector<Stmt> loops;
    for (const Stmt& loop : adds.loops) {
      fresh[loop->var] = make_var(loop->var->name + ".carried");
      loops.push_back(make_for(fresh[loop->var]->var, loop->extent, loop->body));
      result.push_back({fresh[loop->var]->var});
    }
    const StmtNode& store = adds.store();
    const Stmt carried =
        nest(loops, {}, substitute(make_store(from, adds.of_part(), load(into, store.indices)), fresh));
    // First what stands later: the path to the other stays as it is.
    program_.body = replace_at(adds.path, make_store(into, store.indices, store.value));
    const Path now = find_statement(program_.body, zeros.back().get());
    const Path to_zeros = prefix(now, now.size() - own_nest(now).size());
    program_.body = replace_at(to_zeros, make_if(store.first, to_zeros.back(), carried));
    RETURN_IF_ERROR(check_allocated(program_, program_.body));
    record(call);
    return Status::ok();
  });
  return result;
}

}  // namespace tuner
