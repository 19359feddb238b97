// Where the shared buffers of a kernel lie: on each other where they are not needed at the same time.
#include <gtest/gtest.h>

#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"

namespace tuner {
namespace {

Buffer shared(const char* name, int64_t bytes) {
  return make_buffer(name, DType::kFloat32, {bytes / 4}, MemoryScope::kShared, BufferRole::kIntermediate);
}
Stmt write(const Buffer& b) { return make_store(b, {Expr(0)}, float_imm(1)); }
Stmt read(const Buffer& b) {
  static const Buffer out =
      make_buffer("out", DType::kFloat32, {1}, MemoryScope::kGlobal, BufferRole::kOutput);
  return make_store(out, {Expr(0)}, load(b, {Expr(0)}));
}
Stmt loop(int64_t extent, const Stmt& body) { return make_for(make_var("i"), extent, body); }

struct Placed {
  std::vector<int64_t> offsets;
  int64_t bytes;
};
Placed placed(const std::vector<Buffer>& buffers, const Stmt& body) {
  GpuKernel kernel;
  kernel.shared = buffers;
  gpu::place_shared(body, kernel);
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const bool apart = kernel.shared_offsets[i] >= kernel.shared_offsets[j] + buffers[j]->bytes() ||
                         kernel.shared_offsets[j] >= kernel.shared_offsets[i] + buffers[i]->bytes();
      EXPECT_EQ(lie_on_each_other(kernel, buffers[i], buffers[j]), !apart) << i << ", " << j;
    }
  return {kernel.shared_offsets, kernel.shared_bytes};
}
using Offsets = std::vector<int64_t>;

TEST(GpuShared, OneAfterTheOtherLieOnEachOther) {
  const Buffer a = shared("a", 8192), b = shared("b", 4096);
  const Placed p = placed({a, b}, make_seq({write(a), read(a), write(b), read(b)}));
  EXPECT_EQ(p.offsets, (Offsets{0, 0}));
  EXPECT_EQ(p.bytes, 8192);
}

TEST(GpuShared, NeededAtTheSameTimeLieSideBySide) {
  const Buffer a = shared("a", 8192), b = shared("b", 4096);
  const Placed p = placed({a, b}, make_seq({write(a), write(b), read(a), read(b)}));
  EXPECT_EQ(p.offsets, (Offsets{0, 8192}));
  EXPECT_EQ(p.bytes, 12288);
}

// What one iteration writes last, the next one may read first.
TEST(GpuShared, OfALoopAllIterationsCount) {
  const Buffer a = shared("a", 8192), b = shared("b", 4096);
  const Stmt turn = make_seq({read(a), write(a), write(b), read(b)});
  EXPECT_EQ(placed({a, b}, loop(2, turn)).bytes, 12288);
  EXPECT_EQ(placed({a, b}, loop(1, turn)).bytes, 8192) << "a loop of one iteration is none";
  EXPECT_EQ(placed({a, b}, make_seq({loop(2, make_seq({write(a), read(a)})), write(b), read(b)})).bytes,
            8192);
  EXPECT_EQ(placed({a, b}, make_seq({loop(2, write(a)), write(b), read(b), read(a)})).bytes, 12288);
}

// Some threads are in one branch while others are in the other.
TEST(GpuShared, BranchesRunAtTheSameTime) {
  const Buffer a = shared("a", 8192), b = shared("b", 4096);
  const Expr condition = Expr(make_var("t")) < 3;
  EXPECT_EQ(
      placed({a, b}, make_if(condition, make_seq({write(a), read(a)}), make_seq({write(b), read(b)}))).bytes,
      12288);
  EXPECT_EQ(placed({a, b}, make_seq({make_if(condition, make_seq({write(a), read(a)})),
                                     make_if(condition, make_seq({write(b), read(b)}))}))
                .bytes,
            8192);
}

// Sharing costs a barrier, which a small buffer is not worth.
TEST(GpuShared, SmallBuffersHaveBytesOfTheirOwn) {
  const Buffer a = shared("a", 8192), b = shared("b", 4080);
  EXPECT_EQ(placed({a, b}, make_seq({write(a), read(a), write(b), read(b)})).offsets, (Offsets{0, 8192}));
}

// The first gap that is large enough: here where `a` was, under `b` which is needed still.
TEST(GpuShared, AThirdOneTakesTheFirstPlaceThatIsFree) {
  const Buffer a = shared("a", 8192), b = shared("b", 4096), c = shared("c", 8192), d = shared("d", 16384);
  const Stmt body = make_seq({write(a), write(b), read(a), write(c), read(c), write(d), read(d), read(b)});
  const Placed p = placed({a, b, c, d}, body);
  EXPECT_EQ(p.offsets, (Offsets{0, 8192, 0, 12288}));
  EXPECT_EQ(p.bytes, 12288 + 16384);
}

TEST(GpuShared, PlacesAreMultiplesOf16Bytes) {
  const Buffer a = shared("a", 20), b = shared("b", 4);
  const Placed p = placed({a, b}, make_seq({write(a), write(b), read(a), read(b)}));
  EXPECT_EQ(p.offsets, (Offsets{0, 32}));
  EXPECT_EQ(p.bytes, 48);
}

// Where a copy's store under a guard of the thread goes that does not count: bytes that are nobody's.
TEST(GpuShared, GuardedCopiesHaveANowhere) {
  const Buffer tile = shared("tile", 20), other = shared("other", 4);
  const Buffer part =
      make_buffer("part", DType::kFloat32, {1}, MemoryScope::kRegister, BufferRole::kIntermediate);
  const Var thread = make_var("tx"), block = make_var("bx");
  const Stmt copy = make_store(tile, {Expr(thread)}, load(part, {Expr(0)}));
  const auto kernel_of = [&](const Stmt& body) {
    GpuKernel kernel;
    kernel.thread_vars[0] = thread;
    kernel.shared = {tile, other};
    gpu::place_shared(make_seq({body, write(other), read(tile), read(other)}), kernel);
    return kernel;
  };
  const GpuKernel guarded = kernel_of(make_if(Expr(thread) < 5, copy));
  EXPECT_EQ(guarded.shared_offsets, (Offsets{0, 32}));
  EXPECT_EQ(guarded.shared_nowhere, 48);
  EXPECT_EQ(guarded.shared_bytes, 64);
  for (const Stmt& body : {copy, make_if(Expr(block) < 5, copy), make_if(Expr(thread) < 5, write(tile))}) {
    const GpuKernel none = kernel_of(body);
    EXPECT_EQ(none.shared_nowhere, -1);
    EXPECT_EQ(none.shared_bytes, 48);
  }
}

TEST(GpuShared, WhatNobodyTouchesIsPlacedToo) {
  const Buffer a = shared("a", 8192), b = shared("b", 8192);
  EXPECT_EQ(placed({a, b}, make_seq({write(a), read(a)})).offsets, (Offsets{0, 0}));
}

// Barriers of a kernel of 64 threads with one shared buffer.
struct Block {
  explicit Block(std::vector<int64_t> shape)
      : tile(make_buffer("tile", DType::kFloat32, std::move(shape), MemoryScope::kShared)) {
    kernel.name = "block";
    kernel.block = {64, 1, 1};
    kernel.thread_vars[0] = thread;
    kernel.shared = {tile};
    kernel.shared_offsets = {0};
    kernel.shared_bytes = tile->bytes();
  }
  Stmt out(const Expr& value) const {
    static const Buffer y =
        make_buffer("y", DType::kFloat32, {64}, MemoryScope::kGlobal, BufferRole::kOutput);
    return make_store(y, {t()}, value);
  }
  Expr t() const { return Expr(thread); }
  int64_t barriers(const Stmt& body) const {
    const Result<Stmt> inserted = gpu::insert_barriers(body, kernel);
    EXPECT_TRUE(inserted.is_ok()) << inserted.message();
    int64_t count = 0;
    if (inserted) visit(*inserted, [&](const Stmt& s) { count += s->kind == StmtKind::kBarrier ? 1 : 0; });
    return count;
  }

  Var thread = make_var("tx");
  Buffer tile;
  GpuKernel kernel;
};

// Of four stages one is stored and the one two further on is read: iterations meet first when two apart.
TEST(GpuBarriers, StagesThatComeRoundAgainNeedABarrier) {
  const Block b({4, 64});
  const auto rounds = [&](int64_t iterations) {
    const Var k = make_var("k");
    const Stmt body = make_seq({make_store(b.tile, {floor_mod(k, 4), b.t()}, float_imm(1)),
                                b.out(load(b.tile, {floor_mod(Expr(k) + 2, 4), Expr(63) - b.t()}))});
    return b.barriers(make_for(k, iterations, body));
  };
  EXPECT_EQ(rounds(2), 0) << "neighbours are different stages";
  EXPECT_EQ(rounds(3), 1);
  EXPECT_EQ(rounds(8), 1);
}

// Four elements belong to each thread; the fifth is the next one's.
TEST(GpuBarriers, APartBelongsToAThreadUpToTheNextOnes) {
  const Block b({320});
  const auto parts = [&](int64_t elements) {
    const Var r = make_var("r");
    const Expr element = b.t() * 4 + r;
    return b.barriers(
        make_for(r, elements,
                 make_seq({make_store(b.tile, {element}, float_imm(1)), b.out(load(b.tile, {element}))})));
  };
  EXPECT_EQ(parts(4), 0);
  EXPECT_EQ(parts(5), 2) << "before the load and before the next store";
}

// Of a guarded copy and a store all threads make the copy: what others see is stored under the guard still, a
// constant, too.
TEST(GpuGuards, StoresThatOthersSeeStayUnderTheirGuard) {
  const Block b({64});
  const Buffer x = make_buffer("x", DType::kFloat32, {64}), y = make_buffer("y", DType::kFloat32, {4}),
               own = make_buffer("own", DType::kFloat32, {1}, MemoryScope::kRegister);
  const auto sunk = [&](const Stmt& other) {
    const Stmt copy = make_store(b.tile, {b.t()}, load(x, {b.t()}));
    return to_text(gpu::sink_thread_guards(make_if(b.t() < 4, make_seq({copy, other})), b.kernel));
  };
  EXPECT_EQ(sunk(make_store(y, {b.t()}, float_imm(0))), "tile[tx] = x[tx]\nif tx < 4\n  y[tx] = 0\n");
  EXPECT_EQ(sunk(make_store(own, {0}, float_imm(0))), "tile[tx] = x[tx]\nown[0] = 0\n");
}

TEST(GpuGuards, GuardsThatReadMemoryAreAskedAgain) {
  const Buffer x = make_buffer("x", DType::kFloat32, {1}), y = make_buffer("y", DType::kFloat32, {1});
  const auto both = [&](const Expr& guard) {
    return to_text(gpu::merge_equal_guards(make_seq({make_if(guard, make_store(x, {0}, float_imm(2))),
                                                     make_if(guard, make_store(y, {0}, float_imm(1)))})));
  };
  EXPECT_EQ(both(load(x, {0}) < float_imm(1)), "if x[0] < 1\n  x[0] = 2\nif x[0] < 1\n  y[0] = 1\n");
  EXPECT_EQ(both(Expr(make_var("t")) < 4), "if t < 4\n  x[0] = 2\n  y[0] = 1\n");
}

}  // namespace
}  // namespace tuner
