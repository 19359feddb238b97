// Kernels built by hand for the tests of the emulator, whole and damaged: a matmul with double buffering and
// a swizzled tile, and a row softmax reduced by shuffles and shared memory.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::testing {

// for v in 0..extent: body(v)
template <class F>
Stmt for_each(const char* name, int64_t extent, const F& body) {
  const Var v = make_var(name);
  return make_for(v, extent, body(Expr(v)));
}

inline Buffer global(const char* name, std::vector<int64_t> shape, BufferRole role) {
  return make_buffer(name, DType::kFloat32, std::move(shape), MemoryScope::kGlobal, role);
}
inline Buffer registers(const char* name, std::vector<int64_t> shape) {
  return make_buffer(name, DType::kFloat32, std::move(shape), MemoryScope::kRegister);
}
inline Buffer shared(const char* name, std::vector<int64_t> shape, std::string layout = "") {
  auto node = std::make_shared<BufferNode>(BufferNode{
      .name = name, .dtype = DType::kFloat32, .shape = std::move(shape), .scope = MemoryScope::kShared});
  node->layout = std::move(layout);
  return node;
}
// A statement without operands but its register.
inline Stmt intrinsic(const std::string& name, const Expr& operand) {
  StmtNode node{.kind = StmtKind::kIntrinsic};
  node.name = name;
  node.operands = {operand};
  return std::make_shared<const StmtNode>(std::move(node));
}
inline Stmt barrier() { return make_barrier(MemoryScope::kShared); }

// Ways to damage a kernel that was right.
enum class Damage {
  kNone,
  kNoBarrierAfterFill,  // between the copy of the first tile and its use
  kNoBarrierInLoop,     // at the loop's back edge
  kWrongStageRead,      // the stage being filled is read
  kWrongStageWritten,   // the stage being read is filled
  kWrongStageModulo,    // one stage only
  kOneSidedSwizzle,     // stores go to plain addresses, loads through the swizzle
  kOffByOneStoreGuard,  // <= for <
  kOffByOneLoadGuard,   // <= for <
  kMissingStorePredicate,
  kMissingLoadPredicate,
  kSharedTooSmall,       // one row less than is copied
  kSharedBytesTooSmall,  // the launch asks for less than the buffers take
  kSharedOverlap,        // B's tile starts inside A's
  kThreadTilesOverlap,   // neighbouring threads store a common row
  kBlockTilesOverlap,    // two blocks compute the same tile
  kSwappedLoopBounds,    // rows and columns of the thread's tile
  kBarrierUnderThreadGuard,
  kAccumulatorNotZeroed,
  kShortCopy,             // the last part of a tile is never copied
  kShortStore,            // the last row of the thread's tile is never stored
  kNoShuffle,             // softmax: the reduction without its shuffles
  kNarrowShuffle,         // softmax: the last step of the shuffle is missing
  kNoBarrierBeforeReuse,  // softmax: the shared partial results are overwritten too early
  kDivergentShuffle,      // softmax: some lanes of a warp do not come by
  kReductionShort,        // softmax: only the first warp's partial result is used
};

struct MatmulShape {
  int64_t m = 48, n = 40, k = 36;
  int64_t block_m = 32, block_n = 32, block_k = 16, thread_m = 4, thread_n = 2;
};

//   C[m, n] = sum over k of A[m, k] * B[k, n]
//
//   copy tile 0 into stage 0; barrier
//   for ko
//     if (ko + 1 < tiles) copy tile ko + 1 into stage (ko + 1) % 2
//     acc += stage ko % 2
//     barrier
//   store acc
class MatmulKernel {
 public:
  explicit MatmulKernel(MatmulShape shape = {}, Damage damage = Damage::kNone) : s_(shape), damage_(damage) {}

  GpuProgram program() {
    const int64_t rows_too_few = is(Damage::kSharedTooSmall) ? 1 : 0;
    const int64_t stages = 2;
    As_ = shared("As", {stages, s_.block_m - rows_too_few, s_.block_k}, tuner::str("xor:4,", s_.block_k / 4));
    Bs_ = shared("Bs", {stages, s_.block_k, s_.block_n});
    const int64_t a_bytes = (storage_elements(*As_) * 4 + 15) / 16 * 16;
    GpuKernel k;
    k.name = "matmul";
    k.grid = {tiles(s_.n, s_.block_n), tiles(s_.m, s_.block_m), 1};
    k.block = {s_.block_n / s_.thread_n, s_.block_m / s_.thread_m, 1};
    k.block_vars = {bx_, by_, nullptr};
    k.thread_vars = {tx_, ty_, nullptr};
    k.params = {A_, B_, C_};
    k.shared = {As_, Bs_};
    k.shared_offsets = {0, is(Damage::kSharedOverlap) ? a_bytes - 64 : a_bytes};
    k.shared_bytes = a_bytes + storage_elements(*Bs_) * 4 - (is(Damage::kSharedBytesTooSmall) ? 4 : 0);
    k.body = make_allocate(acc_, body());
    return {.name = "matmul", .args = {A_, B_, C_}, .workspace = {}, .kernels = {k}};
  }

 private:
  static int64_t tiles(int64_t n, int64_t tile) { return (n + tile - 1) / tile; }
  bool is(Damage d) const { return damage_ == d; }
  int64_t threads() const { return s_.block_n / s_.thread_n * (s_.block_m / s_.thread_m); }
  Expr thread() const { return Expr(ty_) * Expr(s_.block_n / s_.thread_n) + Expr(tx_); }
  Expr guard(const Expr& index, int64_t extent) const {
    return is(Damage::kOffByOneLoadGuard) ? index <= Expr(extent) : index < Expr(extent);
  }
  // All threads share the elements of a rows x columns tile: element(row, column), zero outside `source`.
  Stmt copy(const Buffer& tile, const Buffer& source, const Expr& stage, int64_t rows, int64_t columns,
            const Expr& first_row, const Expr& first_column) const {
    const int64_t steps = rows * columns / threads() - (is(Damage::kShortCopy) ? 1 : 0);
    return for_each("i", steps, [&](const Expr& i) {
      const Expr flat = i * Expr(threads()) + thread();
      const Expr row = floor_div(flat, columns), column = floor_mod(flat, columns);
      const Expr y = first_row + row, x = first_column + column;
      Expr value = load(source, {y, x});
      if (!is(Damage::kMissingLoadPredicate))
        value = select(guard(y, source->shape[0]) && guard(x, source->shape[1]), value, 0);
      Expr place = column;
      // The swizzle is its own inverse: swizzled indices land at plain addresses.
      if (is(Damage::kOneSidedSwizzle) && tile == As_)
        place = bit_xor(floor_div(column, 4), floor_mod(stage * Expr(rows) + row, columns / 4)) * 4 +
                floor_mod(column, 4);
      return make_store(tile, {stage, row, place}, value);
    });
  }
  Stmt fill(const Expr& ko, const Expr& stage) const {
    return make_seq(
        {copy(As_, A_, stage, s_.block_m, s_.block_k, Expr(by_) * Expr(s_.block_m), ko * Expr(s_.block_k)),
         copy(Bs_, B_, stage, s_.block_k, s_.block_n, ko * Expr(s_.block_k), Expr(bx_) * Expr(s_.block_n))});
  }
  Stmt thread_tile(const std::function<Stmt(const Expr&, const Expr&)>& body) const {
    const bool swapped = is(Damage::kSwappedLoopBounds);
    return for_each("i", swapped ? s_.thread_n : s_.thread_m, [&](const Expr& i) {
      return for_each("j", swapped ? s_.thread_m : s_.thread_n, [&](const Expr& j) { return body(i, j); });
    });
  }
  Expr row(const Expr& i) const {
    return Expr(ty_) * Expr(s_.thread_m - (is(Damage::kThreadTilesOverlap) ? 1 : 0)) + i;
  }
  Expr column(const Expr& j) const { return Expr(tx_) * Expr(s_.thread_n) + j; }

  Stmt multiply(const Expr& stage) const {
    return for_each("k", s_.block_k, [&](const Expr& k) {
      return thread_tile([&](const Expr& i, const Expr& j) {
        return make_store(
            acc_, {i, j},
            load(acc_, {i, j}) + load(As_, {stage, row(i), k}) * load(Bs_, {stage, k, column(j)}));
      });
    });
  }
  Stmt main_loop() const {
    const int64_t k_tiles = tiles(s_.k, s_.block_k);
    return for_each("ko", k_tiles, [&](const Expr& ko) {
      const int64_t modulo = is(Damage::kWrongStageModulo) ? 1 : 2;
      const Expr next = floor_mod(ko + Expr(is(Damage::kWrongStageWritten) ? 0 : 1), modulo);
      const Expr now = floor_mod(ko + Expr(is(Damage::kWrongStageRead) ? 1 : 0), modulo);
      Stmt meet = barrier();
      if (is(Damage::kNoBarrierInLoop)) meet = nullptr;
      if (is(Damage::kBarrierUnderThreadGuard)) meet = make_if(Expr(ty_) < Expr(2), meet);
      return make_seq({make_if(ko + Expr(1) < Expr(k_tiles), fill(ko + Expr(1), next)), multiply(now), meet});
    });
  }
  Stmt body() const {
    Stmt zero = thread_tile([&](const Expr& i, const Expr& j) {
      return make_store(acc_, {i, j}, float_imm(0));
    });
    Stmt result = thread_tile([&](const Expr& i, const Expr& j) -> Stmt {
      const Expr by = is(Damage::kBlockTilesOverlap) ? floor_div(Expr(by_), 2) : Expr(by_);
      const Expr y = by * Expr(s_.block_m) + row(i), x = Expr(bx_) * Expr(s_.block_n) + column(j);
      Stmt store = make_store(C_, {y, x}, load(acc_, {i, j}));
      if (is(Damage::kShortStore)) store = make_if(i < Expr(s_.thread_m - 1), store);
      if (is(Damage::kMissingStorePredicate)) return store;
      return make_if(is(Damage::kOffByOneStoreGuard) ? y <= Expr(s_.m) && x <= Expr(s_.n)
                                                     : y < Expr(s_.m) && x < Expr(s_.n),
                     store);
    });
    return make_seq({is(Damage::kAccumulatorNotZeroed) ? nullptr : zero, fill(0, 0),
                     is(Damage::kNoBarrierAfterFill) ? nullptr : barrier(), main_loop(), result});
  }

  const MatmulShape s_;
  const Damage damage_;
  const Buffer A_ = global("A", {s_.m, s_.k}, BufferRole::kInput);
  const Buffer B_ = global("B", {s_.k, s_.n}, BufferRole::kInput);
  const Buffer C_ = global("C", {s_.m, s_.n}, BufferRole::kOutput);
  const Buffer acc_ = registers("acc", {s_.thread_m, s_.thread_n});
  Buffer As_, Bs_;
  const Var bx_ = make_var("bx"), by_ = make_var("by"), tx_ = make_var("tx"), ty_ = make_var("ty");
};

//   out[r, c] = exp(x[r, c] - max) / sum, one row a block of two warps
class SoftmaxKernel {
 public:
  explicit SoftmaxKernel(int64_t rows = 5, int64_t columns = 150, Damage damage = Damage::kNone)
      : rows_(rows), columns_(columns), damage_(damage) {}

  GpuProgram program() {
    GpuKernel k;
    k.name = "softmax";
    k.grid = {rows_, 1, 1};
    k.block = {kThreads, 1, 1};
    k.block_vars = {row_, nullptr, nullptr};
    k.thread_vars = {tx_, nullptr, nullptr};
    k.params = {x_, out_};
    k.shared = {partial_};
    k.shared_offsets = {0};
    k.shared_bytes = 16;
    k.body = make_allocate(most_, make_allocate(sum_, body()));
    return {.name = "softmax", .args = {x_, out_}, .workspace = {}, .kernels = {k}};
  }

 private:
  static constexpr int64_t kThreads = 64, kWarps = 2;
  bool is(Damage d) const { return damage_ == d; }

  Stmt each_column(const std::function<Stmt(const Expr&)>& body) const {
    const int64_t steps = (columns_ + kThreads - 1) / kThreads;
    return for_each("c", steps, [&](const Expr& c) -> Stmt {
      const Expr column = c * Expr(kThreads) + Expr(tx_);
      if (is(Damage::kMissingLoadPredicate)) return body(column);
      return make_if(is(Damage::kOffByOneLoadGuard) ? column <= Expr(columns_) : column < Expr(columns_),
                     body(column));
    });
  }
  // Every thread's `value` becomes the result over the block.
  Stmt reduce(const Buffer& value, ReduceOp op) const {
    const Expr own = load(value, {Expr(0)});
    Stmt shuffle = intrinsic(warp_allreduce_name(op, is(Damage::kNarrowShuffle) ? 16 : 32), own);
    if (is(Damage::kDivergentShuffle)) shuffle = make_if(Expr(tx_) < Expr(40), shuffle);
    if (is(Damage::kNoShuffle)) shuffle = nullptr;
    Stmt publish = make_if(binary(BinaryOp::kEq, floor_mod(Expr(tx_), 32), 0),
                           make_store(partial_, {floor_div(Expr(tx_), 32)}, own));
    const Expr a = load(partial_, {Expr(0)}), b = load(partial_, {Expr(1)});
    Expr all = op == ReduceOp::kSum ? a + b : max(a, b);
    if (is(Damage::kReductionShort)) all = a;
    Stmt collect = make_store(value, {Expr(0)}, all);
    return make_seq({shuffle, publish, is(Damage::kNoBarrierAfterFill) ? nullptr : barrier(), collect});
  }
  Stmt body() const {
    const Expr most = load(most_, {Expr(0)}), sum = load(sum_, {Expr(0)});
    const auto x = [&](const Expr& column) { return load(x_, {Expr(row_), column}); };
    return make_seq(
        {make_store(most_, {Expr(0)}, float_imm(-std::numeric_limits<double>::infinity())),
         each_column([&](const Expr& c) { return make_store(most_, {Expr(0)}, max(most, x(c))); }),
         reduce(most_, ReduceOp::kMax), is(Damage::kNoBarrierBeforeReuse) ? nullptr : barrier(),
         make_store(sum_, {Expr(0)}, float_imm(0)), each_column([&](const Expr& c) {
           return make_store(sum_, {Expr(0)}, sum + unary(UnaryOp::kExp, x(c) - most));
         }),
         reduce(sum_, ReduceOp::kSum), each_column([&](const Expr& c) {
           return make_store(out_, {Expr(row_), c}, unary(UnaryOp::kExp, x(c) - most) / sum);
         })});
  }

  const int64_t rows_, columns_;
  const Damage damage_;
  const Buffer x_ = global("x", {rows_, columns_}, BufferRole::kInput);
  const Buffer out_ = global("out", {rows_, columns_}, BufferRole::kOutput);
  const Buffer most_ = registers("most", {1}), sum_ = registers("sum", {1});
  const Buffer partial_ = shared("partial", {kWarps});
  const Var row_ = make_var("row"), tx_ = make_var("tx");
};

// Multiples of 2^-7 in [-1, 1).
inline std::vector<float> random_values(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 256) - 128) / 128.0f;
  return values;
}
inline std::vector<std::vector<float>> random_inputs(const GpuProgram& program, uint32_t seed = 1) {
  std::vector<std::vector<float>> inputs;
  for (const Buffer& b : program.args)
    if (b->role != BufferRole::kOutput) inputs.push_back(random_values(b->elements(), seed++));
  return inputs;
}

inline std::vector<float> matmul_answer(const MatmulShape& s, const std::vector<std::vector<float>>& in) {
  std::vector<float> c(static_cast<size_t>(s.m * s.n));
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < s.k; ++k)
        sum += static_cast<double>(in[0][static_cast<size_t>(i * s.k + k)]) *
               static_cast<double>(in[1][static_cast<size_t>(k * s.n + j)]);
      c[static_cast<size_t>(i * s.n + j)] = static_cast<float>(sum);
    }
  return c;
}
inline std::vector<float> softmax_answer(int64_t rows, int64_t columns, const std::vector<float>& x) {
  std::vector<float> out(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    double most = -1e30, sum = 0;
    const auto at = [&](int64_t c) { return static_cast<size_t>(r * columns + c); };
    for (int64_t c = 0; c < columns; ++c) most = std::max(most, static_cast<double>(x[at(c)]));
    for (int64_t c = 0; c < columns; ++c) sum += std::exp(static_cast<double>(x[at(c)]) - most);
    for (int64_t c = 0; c < columns; ++c)
      out[at(c)] = static_cast<float>(std::exp(static_cast<double>(x[at(c)]) - most) / sum);
  }
  return out;
}

// Elements that differ by more than float32 rounding; NaN counts.
inline int64_t wrong_elements(const std::vector<float>& found, const std::vector<float>& expected) {
  int64_t wrong = found.size() == expected.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i)
    if (!(std::fabs(found[i] - expected[i]) <= 1e-4f * (1 + std::fabs(expected[i])))) ++wrong;
  return wrong;
}

}  // namespace tuner::testing
