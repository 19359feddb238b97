// Scheduled Programs for the tests of GPU primitives, lowering and what comes after.
#pragma once

#include "tests/compiler_core/programs.h"

namespace tuner::testing {

// acc and out of a product whose operands are inputs; out = max(acc, 0).
inline Program gpu_product(int64_t m, int64_t n, int64_t k) {
  te::Builder b("product");
  const Buffer A = b.input("a", {m, k}), B = b.input("b", {k, n});
  const Buffer acc = b.reduce("acc", {m, n}, {{"k", k}}, ReduceOp::kSum,
                              [&](const te::Indices& i, const te::Indices& r) {
                                return load(A, {i[0], r[0]}) * load(B, {r[0], i[1]});
                              },
                              BufferRole::kIntermediate, {"i", "j"});
  b.compute("out", {m, n}, [&](const te::Indices& i) { return max(load(acc, i), float_imm(0)); },
            BufferRole::kOutput, {"i", "j"});
  return b.finish();
}

struct TiledOptions {
  int64_t bm = 4, bn = 8, bk = 4, tm = 2, tn = 2;
  bool virtual_threads = false, double_buffer = false, in_registers = true;
  int64_t stages = 1;  // above 1: of asynchronous copies, in place of a double buffer
  std::string layout_a;
};

// The tiled product of every GPU text book: tiles of a (transposed) and b in shared memory, filled by all
// threads of a block; a register tile a thread.
inline Schedule tiled_product(int64_t m, int64_t n, int64_t k, const TiledOptions& o = {}) {
  Schedule s(gpu_product(m, n, k));
  const Tensor out = s.tensor("out"), acc = s.tensor("acc");
  const Tensor a = s.pack(s.tensor("a"), {{1, o.bk}, {0, o.bm}, {1, o.bk, true}, {0, o.bm, true}});
  const Tensor b = s.pack(s.tensor("b"), {{0, o.bk}, {1, o.bn}, {0, o.bk, true}, {1, o.bn, true}});
  s.set_scope(a, MemoryScope::kShared);
  s.set_scope(b, MemoryScope::kShared);
  s.set_scope(acc, MemoryScope::kRegister);
  const auto [sum] = s.reduce_axes<1>(acc);
  s.pad_reduction(sum, o.bk);

  const auto [i, j] = s.axes<2>(out);
  const auto [by, row] = s.split(i, o.bm);
  const auto [bx, column] = s.split(j, o.bn);
  const auto [ty, ii] = s.split(row, o.tm);
  const int64_t part = o.virtual_threads ? o.bn / 2 : o.bn;
  const auto [virtual_x, column_part] = s.split(column, part);
  const auto [tx, jj] = s.split(column_part, o.tn);
  s.reorder({by, bx, virtual_x, ty, tx, ii, jj});
  s.bind(by, LoopKind::kBlockY);
  s.bind(bx, LoopKind::kBlockX);
  const Axis thread = s.rename(s.fuse({ty, tx}), "thread");
  s.bind(virtual_x, LoopKind::kVirtualThread);
  s.bind(thread, LoopKind::kThreadX);
  s.compute_at(acc, thread);

  const auto [acc_i, acc_j] = s.inner_axes<2>(acc);
  const auto [k_outer, k_inner] = s.split(sum, o.bk);
  s.reorder({k_outer, k_inner, acc_i, acc_j});
  s.decompose_reduction(acc, k_outer);
  const int64_t threads = (o.bm / o.tm) * (part / o.tn);
  for (const Tensor& tile : {a, b}) {
    s.compute_at(tile, k_outer);
    const auto [each, lane] = s.split(s.fuse(s.axes(tile)), threads);
    s.bind(s.rename(lane, tile.buffer == a.buffer ? "copy_a" : "copy_b"), LoopKind::kThreadX);
  }
  if (o.double_buffer) {
    s.double_buffer(a, k_outer, o.in_registers);
    s.double_buffer(b, k_outer, o.in_registers);
  }
  if (o.stages > 1) s.pipeline({a, b}, k_outer, o.stages);
  if (!o.layout_a.empty()) s.set_layout(a, o.layout_a);
  return s;
}

struct FetchedOptions {
  int64_t m = 9, n = 8, k = 20;
  int64_t stages = 3;  // 0: no pipeline
  bool tma_a = true, tma_b = true;
  std::string layout_a;
};

// A product in blocks of 4 x 8, a thread an element; tiles of 4 x 8 of a and 8 x 8 of b, in steps of 8;
// copied by TMA.
inline Schedule fetched_product(const FetchedOptions& o = {}) {
  Schedule s(gpu_product(o.m, o.n, o.k));
  const Tensor out = s.tensor("out"), acc = s.tensor("acc");
  const Tensor a = s.pack(s.tensor("a"), {{0, 4}, {1, 8}, {0, 4, true}, {1, 8, true}});
  const Tensor b = s.pack(s.tensor("b"), {{0, 8}, {1, 8}, {0, 8, true}, {1, 8, true}});
  s.set_scope(a, MemoryScope::kShared);
  s.set_scope(b, MemoryScope::kShared);
  s.set_scope(acc, MemoryScope::kRegister);
  const auto [sum] = s.reduce_axes<1>(acc);
  s.pad_reduction(sum, 8);
  const auto [i, j] = s.axes<2>(out);
  const auto [by, row] = s.split(i, 4);
  const auto [bx, column] = s.split(j, 8);
  s.reorder({by, bx, row, column});
  s.bind(by, LoopKind::kBlockY);
  s.bind(bx, LoopKind::kBlockX);
  s.bind(row, LoopKind::kThreadY);
  s.bind(column, LoopKind::kThreadX);
  s.compute_at(acc, column);
  const auto [acc_i, acc_j] = s.inner_axes<2>(acc);
  const auto [k_outer, k_inner] = s.split(sum, 8);
  s.reorder({k_outer, k_inner, acc_i, acc_j});
  s.decompose_reduction(acc, k_outer);
  for (const Tensor& tile : {a, b}) s.compute_at(tile, k_outer);
  if (o.tma_a) s.copy_by_tma(a);
  if (o.tma_b) s.copy_by_tma(b);
  if (o.stages > 0) s.pipeline({a, b}, k_outer, o.stages);
  if (!o.layout_a.empty()) s.set_layout(a, o.layout_a);
  return s;
}

// out[r, c] = x[r, c] / sum over c of x[r, c]; a row by `threads` threads, `rows` of them a block.
inline Schedule row_shares(int64_t rows, int64_t columns, int64_t threads, int64_t rows_of_block) {
  te::Builder b("shares");
  const Buffer x = b.input("x", {rows, columns});
  const Buffer total = b.reduce("total", {rows}, {{"c", columns}}, ReduceOp::kSum,
                                [&](const te::Indices& i, const te::Indices& r) {
                                  return load(x, {i[0], r[0]});
                                },
                                BufferRole::kIntermediate, {"row"});
  b.compute("out", {rows, columns}, [&](const te::Indices& i) { return load(x, i) / load(total, {i[0]}); },
            BufferRole::kOutput, {"row", "col"});
  Schedule s(b.finish());
  const Tensor out = s.tensor("out"), sum = s.tensor("total");
  s.set_scope(sum, MemoryScope::kRegister);
  const auto [row, col] = s.axes<2>(out);
  const auto [block, row_of_block] = s.split(row, rows_of_block);
  s.bind(block, LoopKind::kBlockX);
  s.bind(row_of_block, LoopKind::kThreadY);
  s.compute_at(sum, row_of_block);
  const auto [c] = s.reduce_axes<1>(sum);
  const auto [c_each, c_thread] = s.split(c, threads);
  s.reorder({c_thread, c_each});
  s.bind(c_thread, LoopKind::kThreadX);
  const auto [each, thread] = s.split(col, threads);
  s.bind(thread, LoopKind::kThreadX);
  return s;
}

}  // namespace tuner::testing
