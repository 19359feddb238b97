// Lowered GPU kernels written by hand: what the CUDA printer and the static filter are tested with.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::testing {

inline Buffer input(const std::string& name, std::vector<int64_t> shape) {
  return make_buffer(name, DType::kFloat32, std::move(shape), MemoryScope::kGlobal, BufferRole::kInput);
}
inline Buffer output(const std::string& name, std::vector<int64_t> shape) {
  return make_buffer(name, DType::kFloat32, std::move(shape), MemoryScope::kGlobal, BufferRole::kOutput);
}
inline Buffer registers(const std::string& name, std::vector<int64_t> shape) {
  return make_buffer(name, DType::kFloat32, std::move(shape), MemoryScope::kRegister);
}
inline Stmt loop(const Var& var, int64_t extent, Stmt body, LoopKind kind = LoopKind::kSerial) {
  return make_for(var, extent, std::move(body), AxisKind::kSpatial, kind);
}
inline Stmt reduce_loop(const Var& var, int64_t extent, Stmt body, LoopKind kind = LoopKind::kSerial) {
  return make_for(var, extent, std::move(body), AxisKind::kReduce, kind);
}
// A Program of one kernel: arguments are its parameters.
inline GpuProgram program_of(GpuKernel kernel) {
  GpuProgram p{.name = kernel.name, .args = kernel.params};
  p.kernels.push_back(std::move(kernel));
  return p;
}

// y[i] = max(x[i], 0) for n elements, `lanes` a thread; guarded where a block reaches past n.
inline GpuProgram elementwise(int64_t n, int64_t lanes = 4, int64_t threads = 256) {
  const Buffer x = input("x", {n}), y = output("y", {n});
  const Var bx = make_var("i.outer"), tx = make_var("i.inner"), lane = make_var("lane");
  const Expr i = (Expr(bx) * threads + tx) * lanes + lane;
  Stmt body = make_if(i < Expr(n), make_store(y, {i}, max(load(x, {i}), 0)));
  body = loop(lane, lanes, std::move(body), LoopKind::kVectorized);
  GpuKernel k{.name = "relu"};
  k.grid = {(n + threads * lanes - 1) / (threads * lanes), 1, 1}, k.block = {threads, 1, 1};
  k.block_vars[0] = bx, k.thread_vars[0] = tx;
  k.params = {x, y};
  k.body = std::move(body);
  return program_of(std::move(k));
}

// out[m, n] = sum over k of a[m, k] * b[k, n]: tiles in shared memory, a register tile, 16 x 16 threads.
struct MatmulTile {
  int64_t m = 512, n = 512, k = 512;
  int64_t block_k = 16;  // block_k * 16 * tile: a multiple of 1024, for whole rounds of copies
  int64_t tile = 4;      // of a thread, both ways: a block computes 16*tile x 16*tile
  bool double_buffer = false;
  std::string b_layout;  // of the shared tile of b
};

inline GpuProgram tiled_matmul(const MatmulTile& p) {
  const int64_t block = 16 * p.tile, stages = p.double_buffer ? 2 : 1, steps = p.k / p.block_k;
  const Buffer a = input("a", {p.m, p.k}), b = input("b", {p.k, p.n}), out = output("out", {p.m, p.n});
  // a is transposed on its way, so that a thread reads its rows side by side.
  const Buffer a_tile =
      make_buffer("a_tile", DType::kFloat32, {stages, p.block_k, block}, MemoryScope::kShared);
  Buffer b_tile = make_buffer("b_tile", DType::kFloat32, {stages, p.block_k, block}, MemoryScope::kShared);
  if (!p.b_layout.empty()) {
    auto node = std::make_shared<BufferNode>(*b_tile);
    node->layout = p.b_layout;
    b_tile = std::move(node);
  }
  const Buffer acc = registers("acc", {p.tile, p.tile});
  const Var by = make_var("m.outer"), bx = make_var("n.outer"), ty = make_var("m.inner"),
            tx = make_var("n.inner");
  const Expr thread = Expr(ty) * 16 + tx;

  // Copies the tiles of step `step` into `stage`: each thread 4 elements at a time.
  const int64_t rounds = int64_t{p.block_k} * block / (256 * 4);
  const auto copies = [&](const Expr& step, const Expr& stage) {
    const Var ra = make_var("a.round"), la = make_var("a.lane"), rb = make_var("b.round"),
              lb = make_var("b.lane");
    const Expr ea = (Expr(ra) * 256 + thread) * 4 + la, eb = (Expr(rb) * 256 + thread) * 4 + lb;
    const Expr row = floor_div(ea, p.block_k), ka = floor_mod(ea, p.block_k);
    const Expr kb = floor_div(eb, block), column = floor_mod(eb, block);
    Stmt copy_a =
        make_store(a_tile, {stage, ka, row}, load(a, {Expr(by) * block + row, step * p.block_k + ka}));
    Stmt copy_b =
        make_store(b_tile, {stage, kb, column}, load(b, {step * p.block_k + kb, Expr(bx) * block + column}));
    return make_seq(
        {loop(ra, rounds, loop(la, 4, std::move(copy_a), LoopKind::kVectorized), LoopKind::kUnrolled),
         loop(rb, rounds, loop(lb, 4, std::move(copy_b), LoopKind::kVectorized), LoopKind::kUnrolled)});
  };

  const Var ko = make_var("k.outer"), ki = make_var("k.inner"), i = make_var("i"), j = make_var("j");
  const Expr stage = p.double_buffer ? floor_mod(Expr(ko), 2) : Expr(0);
  Stmt update = make_store(acc, {i, j},
                           load(acc, {i, j}) + load(a_tile, {stage, ki, Expr(ty) * p.tile + i}) *
                                                   load(b_tile, {stage, ki, Expr(tx) * p.tile + j}));
  update = loop(i, p.tile, loop(j, p.tile, std::move(update), LoopKind::kUnrolled), LoopKind::kUnrolled);
  update = reduce_loop(ki, p.block_k, std::move(update), LoopKind::kUnrolled);
  const Stmt barrier = make_barrier(MemoryScope::kShared);
  Stmt steps_loop;
  if (p.double_buffer) {
    Stmt next = make_if(Expr(ko) < Expr(steps - 1), copies(Expr(ko) + 1, floor_mod(Expr(ko) + 1, 2)));
    steps_loop = make_seq({copies(0, 0), barrier,
                           reduce_loop(ko, steps, make_seq({std::move(next), std::move(update), barrier}))});
  } else {
    steps_loop = reduce_loop(ko, steps, make_seq({copies(ko, 0), barrier, std::move(update), barrier}));
  }
  const Var zi = make_var("i"), zj = make_var("j"), oi = make_var("i"), oj = make_var("j");
  Stmt zero = loop(zi, p.tile, loop(zj, p.tile, make_store(acc, {zi, zj}, float_imm(0)), LoopKind::kUnrolled),
                   LoopKind::kUnrolled);
  Stmt write =
      make_store(out, {Expr(by) * block + Expr(ty) * p.tile + oi, Expr(bx) * block + Expr(tx) * p.tile + oj},
                 load(acc, {oi, oj}));
  write = loop(oi, p.tile, loop(oj, p.tile, std::move(write), LoopKind::kVectorized), LoopKind::kUnrolled);

  GpuKernel k{.name = "matmul"};
  k.grid = {p.n / block, p.m / block, 1}, k.block = {16, 16, 1};
  k.block_vars = {bx, by, nullptr}, k.thread_vars = {tx, ty, nullptr};
  k.params = {a, b, out};
  k.shared = {a_tile, b_tile};
  const int64_t a_bytes = (storage_elements(*a_tile) * 4 + 15) / 16 * 16;
  k.shared_offsets = {0, a_bytes};
  k.shared_bytes = a_bytes + (storage_elements(*b_tile) * 4 + 15) / 16 * 16;
  k.body = make_allocate(acc, make_seq({std::move(zero), std::move(steps_loop), std::move(write)}));
  return program_of(std::move(k));
}

// total[r] = sum over c of x[r, c]: one warp a row, `columns` a multiple of 32.
inline GpuProgram row_sum(int64_t rows, int64_t columns) {
  const Buffer x = input("x", {rows, columns}), total = output("total", {rows});
  const Buffer sum = registers("sum", {1});
  const Var row = make_var("r"), lane = make_var("c.inner"), step = make_var("c.outer");
  auto combine = std::make_shared<StmtNode>();
  combine->kind = StmtKind::kIntrinsic;
  combine->name = warp_allreduce_name(ReduceOp::kSum, 32);
  combine->operands = {load(sum, {0})};
  Stmt body =
      make_seq({make_store(sum, {0}, float_imm(0)),
                reduce_loop(step, columns / 32,
                            make_store(sum, {0}, load(sum, {0}) + load(x, {row, Expr(step) * 32 + lane}))),
                combine, make_if(binary(BinaryOp::kEq, lane, 0), make_store(total, {row}, load(sum, {0})))});
  GpuKernel k{.name = "row_sum"};
  k.grid = {rows, 1, 1}, k.block = {32, 1, 1};
  k.block_vars[0] = row, k.thread_vars[0] = lane;
  k.params = {x, total};
  k.body = make_allocate(sum, std::move(body));
  return program_of(std::move(k));
}

}  // namespace tuner::testing
