#include "compiler_core/codegen/reference.h"

#include <algorithm>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/thread_pool.h"
#include "compiler_core/te/te.h"

namespace tuner {
namespace {

constexpr int64_t kMostLanes = 32;  // doubles of one block: four registers of 512 bits, eight of 256

// A perfect nest around one store, taken apart. Null store: the statement is something else.
struct Nest {
  std::vector<const StmtNode*> spatial, reduce;
  const StmtNode* store = nullptr;
};

Nest take_apart(const Stmt& s) {
  Nest nest;
  const StmtNode* node = s.get();
  while (node->kind == StmtKind::kFor && node->loop == LoopKind::kSerial) {
    (node->axis == AxisKind::kSpatial ? nest.spatial : nest.reduce).push_back(node);
    node = node->body.get();
  }
  if (node->kind == StmtKind::kStore) nest.store = node;
  return nest;
}

Stmt vector_store(const Var& lane, int64_t lanes, const Expr& guard, Stmt store) {
  if (guard.defined()) store = make_if(guard, std::move(store));
  return make_for(lane, lanes, std::move(store), AxisKind::kSpatial, LoopKind::kVectorized);
}

//   for block: for other spatial axes:
//     acc[lanes] = init;  for reduce axes: acc[lanes] (op)= value;  store[lanes] = acc
Stmt block_nest(const Stmt& s) {
  const Nest nest = take_apart(s);
  if (nest.store == nullptr || nest.spatial.empty() || nest.store->indices.empty()) return s;
  const StmtNode& store = *nest.store;
  // Only along the contiguous axis, and only when a loop of this nest runs exactly along it.
  const Expr& last = store.indices.back();
  const auto axis = std::find_if(nest.spatial.begin(), nest.spatial.end(), [&](const StmtNode* loop) {
    return last->kind == ExprKind::kVar && last->var == loop->var;
  });
  if (axis == nest.spatial.end() || (*axis)->extent < 2) return s;
  const bool is_reduction = store.reduce != ReduceOp::kNone;
  if (is_reduction != !nest.reduce.empty() || (is_reduction && !store.first.defined())) return s;

  const int64_t extent = (*axis)->extent, lanes = std::min(extent, kMostLanes),
                blocks = ceil_div(extent, lanes);
  const Var block = make_var((*axis)->var->name + ".block");
  const auto in_block = [&](const Var& lane) { return Expr(block) * Expr(lanes) + Expr(lane); };
  const auto guard = [&](const Var& lane) {
    return extent % lanes == 0 ? Expr() : in_block(lane) < Expr(extent);
  };
  const auto at = [&](const Expr& e, const Var& lane) {
    return substitute(e, {{(*axis)->var, in_block(lane)}});
  };
  const auto indices_at = [&](const Var& lane) {
    std::vector<Expr> indices;
    for (const Expr& index : store.indices) indices.push_back(at(index, lane));
    return indices;
  };

  Stmt body;
  const Var lane = make_var((*axis)->var->name);
  if (!is_reduction) {
    body = vector_store(lane, lanes, guard(lane),
                        make_store(store.buffer, indices_at(lane), at(store.value, lane)));
  } else {
    const Buffer sums =
        make_buffer(store.buffer->name + ".sums", store.buffer->dtype, {lanes}, MemoryScope::kRegister);
    const Var first = make_var(lane->name), done = make_var(lane->name);
    Stmt init = vector_store(first, lanes, Expr(), make_store(sums, {Expr(first)}, at(store.init, first)));
    Stmt update =
        vector_store(lane, lanes, guard(lane),
                     make_reduce(sums, {Expr(lane)}, store.reduce, Expr(), at(store.value, lane), Expr()));
    for (auto loop = nest.reduce.rbegin(); loop != nest.reduce.rend(); ++loop)
      update = make_for((*loop)->var, (*loop)->extent, update, AxisKind::kReduce);
    Stmt copy = vector_store(done, lanes, guard(done),
                             make_store(store.buffer, indices_at(done), load(sums, {Expr(done)})));
    body = make_allocate(sums, make_seq({init, update, copy}));
  }
  // Blocks go outside: the part of the operands that one block reads stays in cache.
  for (auto loop = nest.spatial.rbegin(); loop != nest.spatial.rend(); ++loop)
    if (*loop != *axis) body = make_for((*loop)->var, (*loop)->extent, body);
  return make_for(block, blocks, body);
}

Stmt block_nests(const Stmt& s) {
  if (s == nullptr) return s;
  if (s->kind == StmtKind::kFor) return block_nest(s);
  return map_children(
      s, [](const Expr& e) { return e; }, block_nests);
}

}  // namespace

Program reference_program(const Program& unscheduled) {
  Program program = te::with_float_type(unscheduled, DType::kFloat64);
  program.body = block_nests(program.body);
  return program;
}

Status evaluate_compiled(const Program& unscheduled, std::vector<std::vector<double>>& args) {
  if (args.size() != unscheduled.args.size())
    return invalid_argument("reference of ", unscheduled.name, ": expected ", unscheduled.args.size(),
                            " arguments, found ", args.size());
  const Program program = reference_program(unscheduled);
  ASSIGN_OR_RETURN(const Artifact artifact, compile(program, host_target(1)));
  ASSIGN_OR_RETURN(const Kernel kernel, Kernel::load(artifact));
  std::vector<AlignedBuffer> memory;
  std::vector<void*> pointers;
  for (size_t i = 0; i < args.size(); ++i) {
    const Buffer& arg = program.args[i];
    memory.emplace_back(arg->bytes());
    pointers.push_back(memory.back().data());
    if (!is_given(arg->role)) continue;
    if (static_cast<int64_t>(args[i].size()) != arg->elements())
      return invalid_argument("reference of ", program.name, ": ", arg->name, ": expected ", arg->elements(),
                              " elements, found ", args[i].size());
    store_elements(args[i].data(), arg->elements(), arg->dtype, memory.back().data());
  }
  ThreadPool pool(1);
  const AlignedBuffer workspace(kernel.workspace_bytes(1));
  const tuner_runtime runtime = pool.runtime(workspace.data());
  RETURN_IF_ERROR(kernel.call(pointers.data(), runtime));
  for (size_t i = 0; i < args.size(); ++i) {
    const Buffer& arg = program.args[i];
    if (is_result(arg->role)) args[i] = load_elements(memory[i].data(), arg->elements(), arg->dtype);
  }
  return Status::ok();
}

Result<std::vector<std::vector<double>>> reference_answer(const Program& unscheduled,
                                                          const std::vector<std::vector<float>>& inputs) {
  std::vector<std::vector<double>> args;
  size_t next = 0;
  for (const Buffer& arg : unscheduled.args) {
    args.emplace_back();
    if (!is_given(arg->role)) continue;
    if (next >= inputs.size() || static_cast<int64_t>(inputs[next].size()) != arg->elements())
      return invalid_argument("reference of ", unscheduled.name, ": ", arg->name, ": expected ",
                              arg->elements(), " elements, found ",
                              next < inputs.size() ? str(inputs[next].size()) : std::string("no data"));
    args.back().assign(inputs[next].begin(), inputs[next].end());
    ++next;
  }
  if (next != inputs.size())
    return invalid_argument("reference of ", unscheduled.name, ": expected ", next, " inputs, found ",
                            inputs.size());
  RETURN_IF_ERROR(evaluate_compiled(unscheduled, args));
  std::vector<std::vector<double>> outputs;
  for (size_t i = 0; i < args.size(); ++i)
    if (is_result(unscheduled.args[i]->role)) outputs.push_back(std::move(args[i]));
  return outputs;
}

}  // namespace tuner
