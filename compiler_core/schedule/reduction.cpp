// pad_reduction, rfactor: the reduce axes of a stage made longer, or made into a dimension.
#include <algorithm>

#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

// The store that computes `buffer`, here or ahead, when it is a plain one: the value of an element under its
// indices.
const StmtNode* definition(const Program& program, const Buffer& buffer) {
  const bool ahead = buffer->role == BufferRole::kPacked && program.packing != nullptr;
  const std::optional<Stage> stage = find_stage(ahead ? program.packing->body : program.body, buffer);
  return stage.has_value() && stage->store().reduce == ReduceOp::kNone ? stage->path.back().get() : nullptr;
}

// What `e`, a load of a tensor computed in this Program, holds where `ranges` say: its defining value.
Expr value_of_load(const Program& program, const Expr& e, const RangeMap& ranges) {
  const StmtNode* store = definition(program, e->buffer);
  if (store == nullptr) return e;
  VarMap values;
  for (size_t d = 0; d < store->indices.size(); ++d) {
    if (store->indices[d]->kind == ExprKind::kVar)
      values[store->indices[d]->var] = e->operands[d];
    else if (!is_const_int(store->indices[d]))
      return e;
  }
  return simplify(substitute(store->value, values), ranges);
}

// The value with every load beyond the padding replaced by what is proved of it. A product is 0 when both
// factors are: 0 * x is not 0 for every x. So are sums, differences and the first bits of zeros.
Expr proved(const Program& program, const Expr& e, const RangeMap& ranges) {
  if (e->kind == ExprKind::kLoad) {
    const Expr value = value_of_load(program, e, ranges);
    return value.same_as(e) ? e : proved(program, value, ranges);  // through copies of copies
  }
  const Expr mapped = map_children(e, [&](const Expr& operand) { return proved(program, operand, ranges); });
  const bool keeps_zero = (mapped->kind == ExprKind::kBinary &&
                           (mapped->binary_op == BinaryOp::kMul || mapped->binary_op == BinaryOp::kAdd ||
                            mapped->binary_op == BinaryOp::kSub)) ||
                          (mapped->kind == ExprKind::kUnary && mapped->unary_op == UnaryOp::kTf32);
  if (keeps_zero && std::ranges::all_of(mapped->operands, is_zero))
    return is_float(mapped->dtype) ? float_imm(0, mapped->dtype) : int_imm(0, mapped->dtype);
  return mapped;
}

// A load of e that could leave its buffer; none: undefined.
Expr load_out_of_bounds(const Expr& e, const RangeMap& ranges) {
  Expr found;
  visit(e, [&](const Expr& part) {
    if (part->kind != ExprKind::kLoad) return;
    for (size_t d = 0; d < part->operands.size(); ++d) {
      const auto bounds = const_bounds(simplify(part->operands[d], ranges), ranges);
      if (!bounds.has_value() || bounds->first < 0 || bounds->second >= part->buffer->shape[d]) found = part;
    }
  });
  return found;
}

RangeMap stage_ranges(const Stage& stage, const Var& except, int64_t begin, int64_t end) {
  RangeMap ranges;
  for (const Stmt& s : stage.path)
    if (s->kind == StmtKind::kFor) ranges.bind(s->var, s->extent);
  ranges.bind(except, begin, end);
  return ranges;
}

}  // namespace

void Schedule::pad_reduction(Axis axis, int64_t multiple) {
  if (refused()) return;
  const std::string call = str("pad_reduction(", label(program_.body, axis.var), ", ", multiple, ")");
  apply(call, [&]() -> Status {
    if (multiple < 1) return invalid_config("multiple must be at least 1");
    const Path path = find_loop(program_.body, axis.var);
    if (path.empty()) return invalid_config("not an axis of the Program (split, fused or never there)");
    const Stmt& loop = path.back();
    if (loop->axis != AxisKind::kReduce) return invalid_config("not a reduce axis");
    const int64_t padded = bounded_product(blocks_of(loop->extent, multiple), multiple);
    const int64_t inside = bounded_product(padded, nest_iterations(loop->body));
    if (bounded_product(iterations_around(path), inside) > kMostIterations)
      return invalid_config(label(program_.body, axis.var), " has ", loop->extent,
                            " iterations; in multiples of ", multiple,
                            " its nest would have more than 2^60, which indices cannot count");
    // A reduction of one term has lost its variable (its indices are 0): it stays, and a split is guarded.
    if (padded != loop->extent && loop->extent > 1) {
      const Stage stage = *find_stage(program_.body, owner(loop));
      const StmtNode& store = stage.store();
      if (store.reduce != ReduceOp::kSum) return invalid_config(store.buffer->name, " is not a sum");
      const RangeMap all = stage_ranges(stage, axis.var, 0, padded);
      if (const Expr load = load_out_of_bounds(store.value, all); load.defined())
        return invalid_config(to_text(load), " would be read out of bounds; pack ", load->buffer->name,
                              " in blocks of ", multiple, " first");
      const Expr beyond = proved(program_, store.value, stage_ranges(stage, axis.var, loop->extent, padded));
      if (!is_zero(simplify(beyond)))
        return invalid_config("the terms from ", loop->extent,
                              " on are not proved to be 0: ", to_text(beyond));
      program_.body = replace_at(path, make_for(loop->var, padded, loop->body, loop->axis, loop->loop));
    }
    record(call);
    return Status::ok();
  });
}

namespace {

// The nest of a reduction that is to be factored: loops and guards down to the store; spatial loops are the
// dimensions, one each.
struct FactoredNest {
  Stage stage;
  size_t top = 0;  // of its path: where the nest begins
  std::vector<Stmt> loops, spatial;
  std::vector<Expr> guards;
  int64_t extent = 0;  // of the axis

  const StmtNode& store() const { return stage.store(); }
};

Result<FactoredNest> nest_to_factor(const Program& program, const Buffer& buffer, const Axis& axis) {
  if (buffer == nullptr) return invalid_config("the tensor handle is empty");
  const std::optional<Stage> stage = find_stage(program.body, buffer);
  if (!stage.has_value()) return invalid_config(buffer->name, " is not computed in this Program");
  FactoredNest nest{.stage = *stage, .loops = stage->loops()};
  const StmtNode& store = nest.store();
  if (store.reduce == ReduceOp::kNone) return invalid_config(buffer->name, " is not a reduction");
  if (!store.first.defined())
    return invalid_config("the initialisation of ", buffer->name, " is already decomposed; do that later");
  nest.top = stage->own;
  while (stage->path[nest.top]->kind == StmtKind::kAllocate) ++nest.top;
  for (size_t i = nest.top; i + 1 < stage->path.size(); ++i) {
    const Stmt& s = stage->path[i];
    if (s->kind == StmtKind::kIf && s->else_body == nullptr)
      for (Expr& e : conjuncts(s->condition)) nest.guards.push_back(std::move(e));
    else if (s->kind != StmtKind::kFor)
      return invalid_config(buffer->name, " is computed together with other statements");
  }
  const auto factored = std::ranges::find(nest.loops, axis.var, [](const Stmt& loop) { return loop->var; });
  if (factored == nest.loops.end() || (*factored)->axis != AxisKind::kReduce)
    return invalid_config("not a reduce axis of ", buffer->name);
  nest.extent = (*factored)->extent;
  for (const Stmt& loop : nest.loops) {
    if (loop->loop != LoopKind::kSerial)
      return invalid_config("axis ", label(program.body, loop->var), " is ", loop_kind_name(loop->loop),
                            "; annotate it later");
    if (loop->axis == AxisKind::kSpatial) nest.spatial.push_back(loop);
  }
  for (size_t d = 0; d < store.indices.size(); ++d) {
    const bool is_dimension = std::ranges::any_of(nest.spatial, [&](const Stmt& loop) {
      return store.indices[d]->kind == ExprKind::kVar && store.indices[d]->var == loop->var;
    });
    if (!is_dimension && !is_const_int(store.indices[d]))
      return invalid_config("dimension ", d, " of ", buffer->name, " is indexed by ",
                            to_text(store.indices[d]), "; split its spatial axes later");
  }
  return nest;
}

// partial[axis, indices] sums over the other reduce axes, in the loops that were there.
Stmt partial_sums(const FactoredNest& n, const Axis& axis, const Buffer& partial) {
  const StmtNode& store = n.store();
  std::vector<Expr> indices = store.indices;
  indices.insert(indices.begin(), Expr(axis.var));
  Expr first = bool_imm(true);
  std::vector<Stmt> loops;
  for (const Stmt& loop : n.loops)
    if (loop->var == axis.var) loops.push_back(make_for(axis.var, n.extent, loop->body));
  for (const Stmt& loop : n.loops)
    if (loop->var != axis.var) loops.push_back(loop);
  for (const Stmt& loop : n.loops)
    if (loop->axis == AxisKind::kReduce && loop->var != axis.var)
      first = first && binary(BinaryOp::kEq, loop->var, 0);
  Stmt sums = make_reduce(partial, indices, store.reduce, store.init, store.value, first);
  // A share without a term of its own (an uneven split) still has its sum: guards would leave it unwritten,
  // so the terms beyond them count as the initial value.
  if (!n.guards.empty()) {
    auto guarded = std::make_shared<StmtNode>(*sums);
    guarded->value = select(conjunction(n.guards), store.value, store.init);
    sums = std::move(guarded);
  }
  return nest(loops, {}, std::move(sums));
}

// The tensor sums over that dimension, with variables of its own.
Stmt sum_of_partials(const FactoredNest& n, const Axis& axis, const Buffer& buffer, const Buffer& partial) {
  const StmtNode& store = n.store();
  VarMap fresh;
  std::vector<Stmt> loops;
  for (const Stmt& loop : n.spatial) {
    fresh[loop->var] = make_var(loop->var->name);
    loops.push_back(make_for(fresh[loop->var]->var, loop->extent, loop->body));
  }
  const Var share = make_var(axis.var->name);
  loops.push_back(make_for(share, n.extent, n.stage.path.back(), AxisKind::kReduce));
  std::vector<Expr> to, from{Expr(share)};
  for (const Expr& index : store.indices) {
    to.push_back(substitute(index, fresh));
    from.push_back(to.back());
  }
  return nest(loops, {},
              make_reduce(buffer, to, store.reduce, store.init, load(partial, from),
                          binary(BinaryOp::kEq, share, 0)));
}

}  // namespace

Tensor Schedule::rfactor(const Tensor& t, Axis axis) {
  Tensor result;
  if (refused()) return result;
  const Buffer buffer = resolve(t);
  const std::string call =
      str("rfactor(", buffer == nullptr ? "(none)" : buffer->name, ", ", label(program_.body, axis.var), ")");
  apply(call, [&]() -> Status {
    ASSIGN_OR_RETURN(const FactoredNest n, nest_to_factor(program_, buffer, axis));
    std::vector<int64_t> shape = buffer->shape;
    shape.insert(shape.begin(), n.extent);
    const Buffer partial = derived_buffer(buffer, free_name(program_, buffer->name + ".partial"),
                                          std::move(shape), MemoryScope::kGlobal);
    RETURN_IF_ERROR(check_size(partial));
    Stmt both = make_seq({partial_sums(n, axis, partial), sum_of_partials(n, axis, buffer, partial)});
    program_.body = allocate_at_root(replace_at(prefix(n.stage.path, n.top), std::move(both)), partial);
    result.buffer = partial;
    record(str(call, " -> ", partial->name));
    return Status::ok();
  });
  return result;
}

}  // namespace tuner
