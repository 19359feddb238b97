// The packing entry of a GPU schedule: its nests, which nobody scheduled, over the threads of a flat grid.
//
//   before   for p0 in 0..3: for p1 in 0..64                after   for block kBlockX, thread kThreadX in 0..256
//              b.packed[p0, p1] = select(.., b[..], 0)                if block*256 + thread < 192
//                                                                       b.packed[(block*256 + thread) / 64, ..] = ..
//
// Neighbouring threads store neighbours. It runs once for all calls, so nothing is made of the loads.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"

namespace tuner::gpu {
namespace {

constexpr int64_t kThreads = 256;

Result<Stmt> flat_nest(const Stmt& nest) {
  std::vector<Stmt> loops;
  Stmt inside = nest;
  int64_t elements = 1;
  for (; inside->kind == StmtKind::kFor; inside = inside->body) {
    loops.push_back(inside);
    if (__builtin_mul_overflow(elements, inside->extent, &elements) || elements > int64_t{1} << 38)
      return invalid_config("packing: loop ", inside->var->name, " makes more than 2^38 iterations");
  }
  if (inside->kind != StmtKind::kStore || inside->reduce != ReduceOp::kNone)
    return invalid_config("packing on a GPU takes loops around one store; ",
                          loops.empty() ? std::string("a nest") : loops.front()->var->name,
                          " holds something else: precompute it as a kernel of its own");
  const Var block = make_var("block"), thread = make_var("thread");
  const int64_t threads = std::min(kThreads, elements);
  const Expr flat = Expr(block) * threads + thread;
  VarMap places;
  int64_t stride = 1;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    const Expr index = floor_div(flat, stride);
    places[(*loop)->var] = loop + 1 == loops.rend() ? index : floor_mod(index, (*loop)->extent);
    stride *= (*loop)->extent;
  }
  Stmt body = substitute(inside, places);
  if (elements % threads != 0) body = make_if(flat < elements, std::move(body));
  body = make_for(thread, threads, std::move(body), AxisKind::kSpatial, LoopKind::kThreadX);
  return make_for(block, ceil_div(elements, threads), std::move(body), AxisKind::kSpatial, LoopKind::kBlockX);
}

}  // namespace

Result<Program> bind_packing(const Program& packing) {
  Program result = packing;
  std::vector<Stmt> nests = {packing.body};
  if (packing.body->kind == StmtKind::kSeq) nests = packing.body->stmts;
  for (Stmt& nest : nests) {
    ASSIGN_OR_RETURN(nest, flat_nest(nest));
  }
  result.body = make_seq(std::move(nests));
  return result;
}

}  // namespace tuner::gpu
