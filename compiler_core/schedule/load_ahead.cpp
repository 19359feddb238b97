// load_ahead: the fragments of the next step are loaded while the products of this one run.
#include <algorithm>

#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

// A pipelined loop whose iteration ends with the loop of its steps.
struct Steps {
  Path to_outer;             // to the pipelined loop
  Stmt wait, first_wait;     // the first statement of its body; with one more group under way
  std::vector<Stmt> copies;  // between the wait and the steps
  Stmt step;                 // the loop of steps
  std::vector<Stmt> loads, products;
};

Status check_step(const Stmt& step) {
  if (step->loop != LoopKind::kUnrolled)
    return invalid_config(step->var->name, " is ", loop_kind_name(step->loop), "; it must be unrolled");
  if (step->extent % 2 != 0)
    return invalid_config(step->var->name, " has ", step->extent,
                          " steps; two sets of fragments take turns, so it must be even");
  return Status::ok();
}

// The statements of a step: what loads the fragments, then what uses them.
Status sort_step(const std::vector<Buffer>& fragments, Steps& steps) {
  Stmt inside = steps.step->body;
  size_t allocated = 0;
  for (; inside->kind == StmtKind::kAllocate; inside = inside->body) {
    if (std::ranges::count(fragments, inside->buffer) == 0)
      return invalid_config(inside->buffer->name, " is computed in ", steps.step->var->name,
                            " too; only tensors that are loaded ahead may be");
    ++allocated;
  }
  if (allocated != fragments.size() || inside->kind != StmtKind::kSeq)
    return invalid_config("not all of the tensors are computed in ", steps.step->var->name,
                          "; compute_at first");
  for (const Stmt& s : inside->stmts) {
    const bool is_load = std::ranges::any_of(fragments, [&](const Buffer& b) { return stores_to(s, b); });
    if (is_load && !steps.products.empty())
      return invalid_config("a tensor is loaded behind what uses another one");
    (is_load ? steps.loads : steps.products).push_back(s);
  }
  return Status::ok();
}

Result<Steps> find_steps(const Stmt& root, const Axis& axis, const std::vector<Buffer>& fragments) {
  const Path to_step = find_loop(root, axis.var);
  if (to_step.empty()) return invalid_config("not an axis of the Program (split, fused or never there)");
  Steps steps{.step = to_step.back()};
  RETURN_IF_ERROR(check_step(steps.step));
  const auto is_pipelined = [](const Stmt& s) {
    return s->kind == StmtKind::kFor && s->body->kind == StmtKind::kSeq &&
           is_async(*s->body->stmts.front(), "wait");
  };
  const size_t depth = to_step.size();
  if (depth < 3 || !is_pipelined(to_step[depth - 3]) || to_step[depth - 3]->body->stmts.back() != steps.step)
    return invalid_config(axis.var->name,
                          " is not the end of a pipelined loop's iteration; pipeline() first");
  steps.to_outer = prefix(to_step, depth - 3);
  const std::vector<Stmt>& body = to_step[depth - 3]->body->stmts;
  steps.wait = body.front();
  int64_t in_flight = 0;
  if (!is_const_int(steps.wait->operands[0], &in_flight))
    return invalid_config("its wait is for no constant");
  steps.first_wait = make_async_wait(in_flight + 1);
  steps.copies.assign(body.begin() + 1, body.end() - 1);
  RETURN_IF_ERROR(sort_step(fragments, steps));
  return steps;
}

// `s` with loop variables of its own and `values` put in.
Stmt fresh(const Stmt& s, VarMap values) {
  visit(s, [&](const Stmt& child) {
    if (child->kind == StmtKind::kFor) values[child->var] = make_var(child->var->name);
  });
  const auto renamed = [&](const auto& self, const Stmt& child) -> Stmt {
    if (child->kind == StmtKind::kFor) {
      const Expr var = values.at(child->var);
      return make_for(var->var, child->extent, self(self, child->body), child->axis, child->loop);
    }
    return map_children(
        child, [&](const Expr& e) { return substitute(e, values); },
        [&](const Stmt& below) { return self(self, below); });
  };
  return renamed(renamed, s);
}

}  // namespace

void Schedule::load_ahead(std::span<const Tensor> tensors, const Axis& step) {
  if (refused()) return;
  std::vector<Buffer> fragments;
  std::string names;
  for (const Tensor& t : tensors) {
    fragments.push_back(resolve(t));
    names += str(names.empty() ? "" : ", ", fragments.back() == nullptr ? "(none)" : fragments.back()->name);
  }
  const std::string call = str("load_ahead({", names, "}, ", label(program_.body, step.var), ")");
  apply(call, [&]() -> Status {
    for (const Buffer& b : fragments)
      if (b == nullptr || b->scope != MemoryScope::kFragment)
        return invalid_config("only fragments are loaded ahead; cache_read(..., fragment) first");
    ASSIGN_OR_RETURN(const Steps steps, find_steps(program_.body, step, fragments));
    const Stmt& outer = steps.to_outer.back();
    std::vector<Buffer> twice;
    for (const Buffer& b : fragments) {
      std::vector<int64_t> shape = b->shape;
      shape.insert(shape.begin(), 2);
      twice.push_back(derived_buffer(b, b->name, std::move(shape), MemoryScope::kFragment));
    }
    // Statements of iteration `iteration`, step `k`, with the fragments of set `set`.
    const auto part = [&](const std::vector<Stmt>& stmts, const Expr& iteration, const Expr& k,
                          const Expr& set) {
      std::vector<Stmt> made;
      for (Stmt s : stmts) {
        for (size_t i = 0; i < twice.size(); ++i) s = with_leading_index(s, fragments[i], twice[i], set);
        made.push_back(fresh(s, {{outer->var, iteration}, {steps.step->var, k}}));
      }
      return make_seq(std::move(made));
    };
    const int64_t last = steps.step->extent - 1;
    const Expr now(outer->var), next = now + 1;
    std::vector<Stmt> body = {part(steps.loads, now, 1, 1), part(steps.products, now, 0, 0)};
    if (last > 1) {
      const Var k = make_var(steps.step->var->name);
      const Expr at = Expr(k) + 1;
      body.push_back(make_for(k, last - 1,
                              make_seq({part(steps.loads, now, at + 1, floor_mod(at + 1, 2)),
                                        part(steps.products, now, at, floor_mod(at, 2))}),
                              steps.step->axis, LoopKind::kUnrolled));
    }
    body.push_back(steps.wait);
    body.push_back(make_if(next < outer->extent, part(steps.loads, next, 0, 0)));
    // Behind that barrier the stage of this iteration is free: the copies into it go an iteration further
    // ahead.
    body.push_back(fresh(make_seq(steps.copies), {{outer->var, next}}));
    body.push_back(part(steps.products, now, last, 1));
    Stmt changed = make_seq({fresh(make_seq(steps.copies), {{outer->var, Expr(0)}}), steps.first_wait,
                             part(steps.loads, 0, 0, 0), with_body(outer, make_seq(std::move(body)))});
    for (const Buffer& b : twice) changed = make_allocate(b, std::move(changed));
    program_.body = replace_at(steps.to_outer, simplify(changed, ranges_at(steps.to_outer)));
    for (size_t i = 0; i < fragments.size(); ++i) moved(fragments[i], twice[i]);
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner
