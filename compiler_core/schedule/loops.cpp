// split, fuse, skew, reorder: the loops of a stage.
#include <algorithm>
#include <array>

#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

Status not_an_axis(std::string_view name) {
  return invalid_config(name, " is not an axis of the Program (split, fused or never there)");
}

bool is_guard(const Stmt& s) { return s->kind == StmtKind::kIf && s->else_body == nullptr; }

// The loops of `axes` found on one path, outermost first, and the guards among and just below them.
struct Chain {
  Path path;                // down to the innermost of the axes
  size_t first = 0;         // on the path: the outermost of the axes
  std::vector<Stmt> loops;  // every loop from the outermost to the innermost axis
  std::vector<Expr> guards;
  Stmt body;  // inside loops and guards
};

Result<Chain> find_chain(const Stmt& root, std::span<const Axis> axes) {
  Chain chain;
  std::vector<size_t> depths;
  for (const Axis& axis : axes) {
    if (axis.var == nullptr) return invalid_config("an axis handle is empty");
    Path path = find_loop(root, axis.var);
    if (path.empty()) return not_an_axis(axis.var->name);
    if (path.size() > chain.path.size()) chain.path = std::move(path);
  }
  chain.first = chain.path.size();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (std::any_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const Axis& other) { return other.var == axes[i].var; }))
      return invalid_config(axes[i].var->name, " is given twice");
    const auto at = std::find_if(chain.path.begin(), chain.path.end(), [&](const Stmt& s) {
      return s->kind == StmtKind::kFor && s->var == axes[i].var;
    });
    if (at == chain.path.end())
      return invalid_config(label(root, axes[i].var), " and ", label(root, chain.path.back()->var),
                            " are not nested in each other");
    chain.first = std::min(chain.first, static_cast<size_t>(at - chain.path.begin()));
  }
  for (size_t i = chain.first; i < chain.path.size(); ++i) {
    const Stmt& s = chain.path[i];
    if (s->kind == StmtKind::kFor) {
      RETURN_IF_ERROR(check_no_step(s));
      chain.loops.push_back(s);
    } else if (is_guard(s)) {
      for (Expr& e : conjuncts(s->condition)) chain.guards.push_back(std::move(e));
    } else {
      return invalid_config("other statements stand between ", label(root, chain.path[chain.first]->var),
                            " and ", label(root, chain.path.back()->var));
    }
  }
  chain.body = chain.path.back()->body;
  while (is_guard(chain.body)) {
    for (Expr& e : conjuncts(chain.body->condition)) chain.guards.push_back(std::move(e));
    chain.body = chain.body->body;
  }
  return chain;
}

Status needs_serial(const Stmt& root, const Stmt& loop) {
  if (loop->loop == LoopKind::kSerial) return Status::ok();
  return invalid_config(label(root, loop->var), " is ", loop_kind_name(loop->loop), "; do this before");
}

}  // namespace

Status Schedule::split_loop(const Var& var, int64_t factor, SplitAxes* result) {
  const Path path = find_loop(program_.body, var);
  if (path.empty()) return not_an_axis(var == nullptr ? "(none)" : var->name);
  const Stmt& loop = path.back();
  RETURN_IF_ERROR(needs_serial(program_.body, loop));
  RETURN_IF_ERROR(check_no_step(loop));
  const Var outer = make_var(loop->var->name + ".outer"), inner = make_var(loop->var->name + ".inner");
  const int64_t outer_extent = blocks_of(loop->extent, factor);
  const int64_t inside = bounded_product(bounded_product(outer_extent, factor), nest_iterations(loop->body));
  if (bounded_product(iterations_around(path), inside) > kMostIterations)
    return invalid_config(label(program_.body, var), " has ", loop->extent, " iterations; in blocks of ",
                          factor, " its nest would have more than 2^60, which indices cannot count");
  const Expr whole = Expr(outer) * factor + inner;
  Stmt body = substitute(loop->body, {{loop->var, whole}});
  if (loop->extent % factor != 0) body = make_if(whole < loop->extent, std::move(body));
  RangeMap ranges = ranges_at(path);
  ranges.bind(outer, outer_extent);
  ranges.bind(inner, factor);
  body = simplify(body, ranges);
  body = make_for(outer, outer_extent, make_for(inner, factor, std::move(body), loop->axis), loop->axis);
  program_.body = replace_at(path, std::move(body));
  *result = {{outer}, {inner}};
  return Status::ok();
}

SplitAxes Schedule::split(Axis axis, int64_t factor) {
  SplitAxes result;
  if (refused()) return result;
  const std::string call = str("split(", label(program_.body, axis.var), ", ", factor, ")");
  apply(call, [&]() -> Status {
    if (factor < 1) return invalid_config("factor must be at least 1");
    RETURN_IF_ERROR(split_loop(axis.var, factor, &result));
    if (const Var* found = twin(axis.var); found != nullptr) {
      const Var other = *found;
      SplitAxes parts;
      if (!find_loop(program_.body, other).empty()) {
        RETURN_IF_ERROR(split_loop(other, factor, &parts));
        twins_.emplace_back(result.outer.var, parts.outer.var);
        twins_.emplace_back(result.inner.var, parts.inner.var);
      }
    }
    record(str(call, " -> ", result.outer.var->name, ", ", result.inner.var->name));
    return Status::ok();
  });
  return result;
}

Axis Schedule::fuse(std::span<const Axis> axes) {
  Axis result;
  if (refused()) return result;
  const std::string call = str("fuse({", labels(program_.body, axes), "})");
  apply(call, [&]() -> Status {
    if (axes.empty()) return invalid_config("needs at least one axis");
    ASSIGN_OR_RETURN(const Chain chain, find_chain(program_.body, axes));
    if (chain.loops.size() != axes.size())
      return invalid_config("the axes must be directly nested; other loops stand between them");
    int64_t extent = 1;
    std::string name;
    for (size_t i = 0; i < axes.size(); ++i) {
      const Stmt& loop = chain.loops[i];
      if (loop->var != axes[i].var)
        return invalid_config("the axes must be given outermost first: ", label(program_.body, loop->var),
                              " is outside ", label(program_.body, axes[i].var));
      RETURN_IF_ERROR(needs_serial(program_.body, loop));
      if (loop->axis != chain.loops[0]->axis)
        return invalid_config(label(program_.body, loop->var), " and ",
                              label(program_.body, chain.loops[0]->var),
                              " are not of one kind (spatial, reduce)");
      if (extent = bounded_product(extent, loop->extent); extent > kMostIterations)
        return invalid_config("with the ", loop->extent, " iterations of ", label(program_.body, loop->var),
                              " the fused axis would have more than 2^60, which indices cannot count");
      name += loop->var->name + ".";
    }
    result.var = make_var(name + "fused");
    VarMap values;
    int64_t stride = extent;
    for (size_t i = 0; i < axes.size(); ++i) {
      stride /= chain.loops[i]->extent;
      const Expr quotient = floor_div(result.var, stride);
      values[chain.loops[i]->var] = i == 0 ? quotient : floor_mod(quotient, chain.loops[i]->extent);
    }
    Stmt body = chain.body;
    if (!chain.guards.empty()) body = make_if(conjunction(chain.guards), body);
    const Path path = prefix(chain.path, chain.first);
    RangeMap ranges = ranges_at(path);
    ranges.bind(result.var, extent);
    body = simplify(substitute(body, values), ranges);
    program_.body = replace_at(path, make_for(result.var, extent, std::move(body), chain.loops[0]->axis));
    record(str(call, " -> ", result.var->name));
    return Status::ok();
  });
  return result;
}

Axis Schedule::skew(Axis tap, Axis out, int64_t stride, int64_t dilation) {
  Axis result;
  if (refused()) return result;
  const std::string call = str("skew(", label(program_.body, tap.var), ", ", label(program_.body, out.var),
                               ", ", stride, ", ", dilation, ")");
  apply(call, [&]() -> Status {
    if (stride < 1 || dilation < 1) return invalid_config("stride and dilation must be at least 1");
    ASSIGN_OR_RETURN(const Chain chain, find_chain(program_.body, std::array{tap, out}));
    if (chain.loops.size() != 2)
      return invalid_config("the axes must be directly nested; other loops stand between them");
    const Stmt &taps = chain.loops[0], &outs = chain.loops[1];
    if (taps->var != tap.var)
      return invalid_config(label(program_.body, tap.var), " must be around ", label(program_.body, out.var));
    RETURN_IF_ERROR(needs_serial(program_.body, taps));
    RETURN_IF_ERROR(needs_serial(program_.body, outs));
    if (taps->axis != AxisKind::kReduce || outs->axis != AxisKind::kSpatial)
      return invalid_config("needs a reduce axis around a spatial one");
    // Which term is a sum's first would depend on the order in which the new axis is run through.
    bool initialises = false;
    visit(chain.body,
          [&](const Stmt& s) { initialises |= s->kind == StmtKind::kStore && s->first.defined(); });
    if (initialises)
      return invalid_config("the first term also initialises a sum inside; decompose_reduction first");
    const int64_t reach = bounded_product(taps->extent - 1, dilation);
    const int64_t extent = bounded_product(outs->extent - 1, stride) + reach + 1;
    if (bounded_product(bounded_product(extent, outs->extent), nest_iterations(chain.body)) > kMostIterations)
      return invalid_config("its nest would have more than 2^60 iterations, which indices cannot count");
    result.var = make_var(str(taps->var->name, ".", outs->var->name, ".skewed"));
    const Expr at = Expr(result.var) - Expr(outs->var) * stride;
    std::vector<Expr> guards = {at >= 0, at <= reach};
    if (dilation > 1) guards.push_back(binary(BinaryOp::kEq, floor_mod(at, dilation), 0));
    for (const Expr& guard : chain.guards) guards.push_back(guard);
    const Path path = prefix(chain.path, chain.first);
    RangeMap ranges = ranges_at(path);
    ranges.bind(result.var, extent);
    ranges.bind(outs->var, outs->extent);
    Stmt body = make_if(conjunction(guards), chain.body);
    body = simplify(substitute(body, {{taps->var, floor_div(at, dilation)}}), ranges);
    body = make_for(outs->var, outs->extent, std::move(body), outs->axis);
    program_.body = replace_at(path, make_for(result.var, extent, std::move(body), taps->axis));
    record(str(call, " -> ", result.var->name));
    return Status::ok();
  });
  return result;
}

namespace {
// Outermost, innermost, or next to it: what was checked when it was annotated.
bool has_its_place(LoopKind kind) {
  return kind == LoopKind::kParallel || kind == LoopKind::kVectorized || kind == LoopKind::kVectorRows;
}
}  // namespace

void Schedule::reorder(std::span<const Axis> axes) {
  if (refused()) return;
  const std::string call = str("reorder({", labels(program_.body, axes), "})");
  apply(call, [&]() -> Status {
    if (axes.empty()) return invalid_config("needs at least one axis");
    ASSIGN_OR_RETURN(Chain chain, find_chain(program_.body, axes));
    std::vector<Stmt> wanted;
    for (const Axis& axis : axes)
      wanted.push_back(*std::find_if(chain.loops.begin(), chain.loops.end(),
                                     [&](const Stmt& loop) { return loop->var == axis.var; }));
    size_t next = 0;
    std::vector<Stmt> ordered;
    for (const Stmt& loop : chain.loops) {
      const bool moves = std::find(wanted.begin(), wanted.end(), loop) != wanted.end();
      const Stmt& placed = moves ? wanted[next++] : loop;
      for (const Stmt& moved : {placed, loop})
        if (placed != loop && has_its_place(moved->loop))
          return invalid_config(label(program_.body, moved->var), " is ", loop_kind_name(moved->loop),
                                "; reorder before");
      ordered.push_back(placed);
    }
    program_.body = replace_at(prefix(chain.path, chain.first), nest(ordered, chain.guards, chain.body));
    record(call);
    return Status::ok();
  });
}

Axis Schedule::rename(Axis axis, std::string_view name) {
  Axis result;
  if (refused()) return result;
  const std::string call = str("rename(", label(program_.body, axis.var), ", ", name, ")");
  apply(call, [&]() -> Status {
    const Path path = find_loop(program_.body, axis.var);
    if (path.empty()) return not_an_axis(axis.var == nullptr ? "(none)" : axis.var->name);
    if (name.empty() || name.find_first_of(" ,:(){}") != std::string_view::npos)
      return invalid_config("a name is a word without \" ,:(){}\"");
    const Stmt& loop = path.back();
    result.var = make_var(std::string(name));
    program_.body =
        replace_at(path, make_for(result.var, loop->extent, substitute(loop->body, {{loop->var, result.var}}),
                                  loop->axis, loop->loop));
    for (auto& [own, other] : twins_) {
      if (own == axis.var) own = result.var;
      if (other == axis.var) other = result.var;
    }
    record(call);
    return Status::ok();
  });
  return result;
}

}  // namespace tuner
