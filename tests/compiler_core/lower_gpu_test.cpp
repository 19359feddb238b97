// lower_gpu: kernels as one thread sees them; where barriers stand; what is refused; what each pass does.
#include "compiler_core/lower/gpu.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "compiler_core/lower/gpu_passes.h"
#include "compiler_core/lower/lower.h"
#include "tests/compiler_core/gpu_schedules.h"
#include "tests/compiler_core/warp_tile_schedules.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::tiled_product;

std::string lowered(const Schedule& s) {
  const auto program = s.finish();
  if (!program) return program.message();
  const auto gpu = lower_gpu(*program);
  return gpu ? "\n" + to_text(*gpu) : gpu.message();
}

TEST(LowerGpu, TiledProductHasTwoBarriersAnIteration) {
  EXPECT_EQ(lowered(tiled_product(6, 8, 6)), R"(
kernel product(a, b, out) grid (1, 2, 1) block (8, 1, 1)
  shared a.packed float32[1, 1, 4, 4] at 0
  shared b.packed float32[1, 1, 4, 8] at 64
  allocate acc float32[2, 2] register
  unrolled i.init in 0..2
    unrolled j.init in 0..2
      acc[i.init, j.init] = 0
  reduce k.outer in 0..2
    for p0.p1.p2.p3.fused.outer in 0..2
      allocate a.ahead float32[] register
      a.ahead[] = select(by*4 + tx%4 < 6 && k.outer*2 + p0.p1.p2.p3.fused.outer < 3, a[by*4 + tx%4, k.outer*4 + p0.p1.p2.p3.fused.outer*2 + tx//4], 0)
      a.packed[0, 0, p0.p1.p2.p3.fused.outer*2 + tx//4, tx%4] = a.ahead[]
    for p0.p1.p2.p3.fused.outer in 0..4
      allocate b.ahead float32[] register
      b.ahead[] = select(k.outer*4 + p0.p1.p2.p3.fused.outer < 6, b[k.outer*4 + p0.p1.p2.p3.fused.outer, tx], 0)
      b.packed[0, 0, p0.p1.p2.p3.fused.outer, tx] = b.ahead[]
    barrier shared
    reduce k.inner in 0..4
      unrolled i in 0..2
        unrolled j in 0..2
          acc[i, j] = acc[i, j] + a.packed[0, 0, k.inner, tx//4*2 + i] * b.packed[0, 0, k.inner, tx%4*2 + j]
    barrier shared
  if by*2 + tx//4 < 3
    unrolled i.inner.inner in 0..2
      unrolled j.inner.inner.inner in 0..2
        out[by*4 + tx//4*2 + i.inner.inner, tx%4*2 + j.inner.inner.inner] = max(acc[i.inner.inner, j.inner.inner.inner], 0)
)");
}

TEST(LowerGpu, DoubleBufferNeedsOneBarrierAnIteration) {
  testing::TiledOptions o;
  o.double_buffer = true;
  EXPECT_EQ(lowered(tiled_product(8, 8, 8, o)), R"(
kernel product(a, b, out) grid (1, 2, 1) block (8, 1, 1)
  shared a.packed float32[2, 1, 1, 4, 4] at 0
  shared b.packed float32[2, 1, 1, 4, 8] at 128
  allocate acc float32[2, 2] register
  unrolled i.init in 0..2
    unrolled j.init in 0..2
      acc[i.init, j.init] = 0
  for p0.p1.p2.p3.fused.outer in 0..2
    a.packed[0, 0, 0, p0.p1.p2.p3.fused.outer*2 + tx//4, tx%4] = a[by*4 + tx%4, p0.p1.p2.p3.fused.outer*2 + tx//4]
  for p0.p1.p2.p3.fused.outer in 0..4
    b.packed[0, 0, 0, p0.p1.p2.p3.fused.outer, tx] = b[p0.p1.p2.p3.fused.outer, tx]
  barrier shared
  reduce k.outer in 0..2
    block
      allocate b.packed.staged float32[4, 1] register
      allocate a.packed.staged float32[2, 1] register
      if k.outer < 1
        unrolled p0.p1.p2.p3.fused.outer in 0..4
          b.packed.staged[p0.p1.p2.p3.fused.outer, 0] = b[k.outer*4 + p0.p1.p2.p3.fused.outer + 4, tx]
        unrolled p0.p1.p2.p3.fused.outer in 0..2
          a.packed.staged[p0.p1.p2.p3.fused.outer, 0] = a[by*4 + tx%4, k.outer*4 + p0.p1.p2.p3.fused.outer*2 + tx//4 + 4]
      reduce k.inner in 0..4
        unrolled i in 0..2
          unrolled j in 0..2
            acc[i, j] = acc[i, j] + a.packed[k.outer, 0, 0, k.inner, tx//4*2 + i] * b.packed[k.outer, 0, 0, k.inner, tx%4*2 + j]
      if k.outer < 1
        unrolled p0.p1.p2.p3.fused.outer in 0..2
          a.packed[k.outer + 1, 0, 0, p0.p1.p2.p3.fused.outer*2 + tx//4, tx%4] = a.packed.staged[p0.p1.p2.p3.fused.outer, 0]
        unrolled p0.p1.p2.p3.fused.outer in 0..4
          b.packed[k.outer + 1, 0, 0, p0.p1.p2.p3.fused.outer, tx] = b.packed.staged[p0.p1.p2.p3.fused.outer, 0]
    barrier shared
  unrolled i.inner.inner in 0..2
    unrolled j.inner.inner.inner in 0..2
      out[by*4 + tx//4*2 + i.inner.inner, tx%4*2 + j.inner.inner.inner] = max(acc[i.inner.inner, j.inner.inner.inner], 0)
)");
}

TEST(LowerGpu, VirtualThreadsMoveInsideAndCopiesAreDoneOnce) {
  testing::TiledOptions o;
  o.virtual_threads = true;
  EXPECT_EQ(lowered(tiled_product(8, 8, 8, o)), R"(
kernel product(a, b, out) grid (1, 2, 1) block (4, 1, 1)
  shared a.packed float32[1, 1, 4, 4] at 0
  shared b.packed float32[1, 1, 4, 8] at 64
  allocate acc float32[2, 2, 2] register
  unrolled j.inner.outer in 0..2
    unrolled i.init in 0..2
      unrolled j.init in 0..2
        acc[j.inner.outer, i.init, j.init] = 0
  reduce k.outer in 0..2
    for p0.p1.p2.p3.fused.outer in 0..4
      a.packed[0, 0, p0.p1.p2.p3.fused.outer, tx] = a[by*4 + tx, k.outer*4 + p0.p1.p2.p3.fused.outer]
    for p0.p1.p2.p3.fused.outer in 0..8
      b.packed[0, 0, p0.p1.p2.p3.fused.outer//2, p0.p1.p2.p3.fused.outer%2*4 + tx] = b[k.outer*4 + p0.p1.p2.p3.fused.outer//2, p0.p1.p2.p3.fused.outer%2*4 + tx]
    barrier shared
    reduce k.inner in 0..4
      unrolled j.inner.outer in 0..2
        unrolled i in 0..2
          unrolled j in 0..2
            acc[j.inner.outer, i, j] = acc[j.inner.outer, i, j] + a.packed[0, 0, k.inner, tx//2*2 + i] * b.packed[0, 0, k.inner, j.inner.outer*4 + tx%2*2 + j]
    barrier shared
  unrolled j.inner.outer in 0..2
    unrolled i.inner.inner in 0..2
      unrolled j.inner.inner.inner in 0..2
        out[by*4 + tx//2*2 + i.inner.inner, j.inner.outer*4 + tx%2*2 + j.inner.inner.inner] = max(acc[j.inner.outer, i.inner.inner, j.inner.inner.inner], 0)
)");
}

TEST(LowerGpu, CrossThreadReductionInAWarp) {
  EXPECT_EQ(lowered(testing::row_shares(5, 20, 16, 2)), R"(
kernel shares(x, out) grid (3, 1, 1) block (16, 2, 1)
  allocate total float32[1] register
  block
    allocate total.part float32[1] register
    total.part[0] = 0
    if bx*2 + ty < 5
      reduce c.outer in 0..2
        if c.outer*16 + tx < 20
          total.part[0] = total.part[0] + x[bx*2 + ty, c.outer*16 + tx]
    warp_allreduce.sum.16(total.part[0])
    if bx*2 + ty < 5
      total[0] = total.part[0]
  if bx*2 + ty < 5
    for col.outer in 0..2
      if col.outer*16 + tx < 20
        out[bx*2 + ty, col.outer*16 + tx] = x[bx*2 + ty, col.outer*16 + tx] / total[0]
)");
}

TEST(LowerGpu, CrossThreadReductionOverWarpsGoesThroughSharedMemory) {
  EXPECT_EQ(lowered(testing::row_shares(2, 128, 64, 1)), R"(
kernel shares(x, out) grid (2, 1, 1) block (64, 1, 1)
  shared total.warps float32[1, 2] at 0
  allocate total float32[1] register
  block
    allocate total.part float32[1] register
    total.part[0] = 0
    reduce c.outer in 0..2
      total.part[0] = total.part[0] + x[bx, c.outer*64 + tx]
    warp_allreduce.sum.32(total.part[0])
    if tx%32 == 0
      total.warps[0, tx//32] = total.part[0]
    barrier shared
    total.part[0] = total.warps[0, 0]
    total.part[0] = total.part[0] + total.warps[0, 1]
    total[0] = total.part[0]
  for col.outer in 0..2
    out[bx, col.outer*64 + tx] = x[bx, col.outer*64 + tx] / total[0]
)");
}

TEST(LowerGpu, SplitReductionIsTwoKernelsWithWorkspace) {
  Schedule s(testing::gpu_product(4, 4, 8));
  const Tensor acc = s.tensor("acc"), out = s.tensor("out");
  const auto [k] = s.reduce_axes<1>(acc);
  const Tensor partial = s.rfactor(acc, s.split(k, 4).outer);
  const auto bind_all = [&](const Tensor& t, const std::vector<LoopKind>& kinds) {
    const std::vector<Axis> axes = s.spatial_axes(t);
    for (size_t d = 0; d < kinds.size(); ++d) s.bind(axes[d], kinds[d]);
  };
  s.set_scope(acc, MemoryScope::kRegister);
  bind_all(out, {LoopKind::kBlockX, LoopKind::kThreadX});
  s.compute_at(acc, s.axes<2>(out)[1]);
  bind_all(partial, {LoopKind::kBlockY, LoopKind::kBlockX, LoopKind::kThreadX});
  EXPECT_EQ(lowered(s), R"(
workspace acc.partial 128 bytes
kernel product_acc_partial(a, b, acc.partial) grid (4, 2, 1) block (4, 1, 1)
  reduce k.inner in 0..4
    if k.inner == 0
      acc.partial[by, bx, tx] = 0
    acc.partial[by, bx, tx] = acc.partial[by, bx, tx] + a[bx, by*4 + k.inner] * b[by*4 + k.inner, tx]
kernel product_out(out, acc.partial) grid (4, 1, 1) block (4, 1, 1)
  allocate acc float32[1, 1] register
  reduce k.outer in 0..2
    if k.outer == 0
      acc[0, 0] = 0
    acc[0, 0] = acc[0, 0] + acc.partial[k.outer, bx, tx]
  out[bx, tx] = max(acc[0, 0], 0)
)");
}

// What was begun before the loop is not known in it: a thread's part begins with what changes nothing.
TEST(LowerGpu, PartsOfAReductionBeginWithItsIdentity) {
  const auto parts = [](ReduceOp op) {
    const Buffer x = make_buffer("x", DType::kFloat32, {64}), y = make_buffer("y", DType::kFloat32, {1});
    const Var t = make_var("t");
    const Result<Stmt> lowered = gpu::lower_cross_thread(make_for(
        t, 64, make_reduce(y, {0}, op, {}, load(x, {Expr(t)}), {}), AxisKind::kReduce, LoopKind::kThreadX));
    return lowered ? to_text(*lowered) : lowered.message();
  };
  EXPECT_THAT(parts(ReduceOp::kSum), ::testing::HasSubstr("y.part[0] = 0\n"));
  EXPECT_THAT(parts(ReduceOp::kMax), ::testing::HasSubstr("y.part[0] = -inf\n"));
  EXPECT_THAT(parts(ReduceOp::kMin), ::testing::HasSubstr("y.part[0] = inf\n"));
}

// 17 rows of 19: a block of 256 threads, and one of which the last 189 have nothing to do.
TEST(LowerGpu, PackingEndsWithTheLastElement) {
  Schedule s(testing::matmul(4, 19, 17));
  s.pack(s.tensor("B"), {{1}, {0}});
  const auto [i, j] = s.axes<2>(s.tensor("C"));
  s.bind(i, LoopKind::kBlockX);
  s.bind(j, LoopKind::kThreadX);
  const auto program = s.finish();
  ASSERT_TRUE(program.is_ok()) << program.message();
  const auto gpu = lower_gpu(*program);
  ASSERT_TRUE(gpu.is_ok()) << gpu.message();
  const std::string text = to_text(*gpu->packing);
  EXPECT_THAT(text, ::testing::HasSubstr("grid (2, 1, 1) block (256, 1, 1)"));
  EXPECT_THAT(text, ::testing::HasSubstr("if bx*256 + tx < 323\n"));
}

// A constant in blocks of 3 columns: its kernel runs once, a thread an element, zeros behind the last column.
TEST(LowerGpu, ConstantsArePackedByAKernelOfTheirOwn) {
  Schedule s(testing::matmul(4, 4, 4));
  s.pack(s.tensor("B"), {{1, 3}, {0}, {1, 3, true}});
  const auto [i, j] = s.axes<2>(s.tensor("C"));
  s.bind(i, LoopKind::kBlockX);
  s.bind(j, LoopKind::kThreadX);
  const auto program = s.finish();
  ASSERT_TRUE(program.is_ok()) << program.message();
  const auto gpu = lower_gpu(*program);
  ASSERT_TRUE(gpu.is_ok()) << gpu.message();
  ASSERT_NE(gpu->packing, nullptr);
  EXPECT_EQ("\n" + to_text(*gpu->packing), R"(
kernel matmul_pack(B, B.packed) grid (1, 1, 1) block (24, 1, 1)
  B.packed[tx//12, tx//3%4, tx%3] = select(tx//12*3 + tx%3 < 4, B[tx//3%4, tx//12*3 + tx%3], 0)
)");
  EXPECT_EQ(packed_source(*gpu->packing, gpu->args[1])->name, "B");
  EXPECT_EQ(packing_alone(*gpu->packing).args[1]->role, BufferRole::kOutput);
}

TEST(LowerGpu, Refuses) {
  EXPECT_EQ(lowered(Schedule(testing::gpu_product(4, 4, 4))),
            "the nest of acc is bound neither to blocks nor to threads");

  Schedule register_between(testing::gpu_product(4, 4, 4));
  register_between.set_scope(register_between.tensor("acc"), MemoryScope::kRegister);
  EXPECT_EQ(lowered(register_between),
            "acc is in register memory but lives between kernels; compute_at it inside one");

  // A sum over a constant, done ahead: more than moving elements.
  te::Builder b("sums");
  const Buffer x = b.input("x", {4}), weight = b.constant("weight", {4, 8});
  const Buffer sums =
      b.reduce("sums", {4}, {{"k", 8}}, ReduceOp::kSum, [&](const te::Indices& i, const te::Indices& r) {
        return load(weight, {i[0], r[0]});
      });
  b.compute(
      "y", {4}, [&](const te::Indices& i) { return load(x, {i[0]}) + load(sums, {i[0]}); },
      BufferRole::kOutput);
  Schedule summed(b.finish());
  summed.precompute(summed.tensor("sums"));
  summed.bind(summed.axes<1>(summed.tensor("y"))[0], LoopKind::kThreadX);
  EXPECT_THAT(lowered(summed), ::testing::HasSubstr("packing on a GPU takes loops around one store"));

  Schedule block_inside(testing::two_stages(8));
  const auto [i] = block_inside.axes<1>(block_inside.tensor("y"));
  block_inside.inline_compute(block_inside.tensor("t"));
  block_inside.bind(block_inside.split(i, 2).inner, LoopKind::kBlockX);
  EXPECT_EQ(lowered(block_inside),
            "block axis i.inner stands inside serial loop i.outer; reorder it outside");
}

// What a pass changes: a text that stands there before it, and one that stands there behind it.
struct Change {
  std::string_view pass;
  Schedule of;
  std::string before, behind;
};

// y[i] = x[i], or z[i] from the sixth element on; a thread has four.
Schedule either() {
  te::Builder b("either");
  const Buffer x = b.input("x", {8}), z = b.input("z", {8});
  b.compute(
      "y", {8}, [&](const te::Indices& i) { return select(i[0] < 5, load(x, i), load(z, i)); },
      BufferRole::kOutput);
  Schedule s(b.finish());
  const auto [thread, each] = s.split(s.axes<1>(s.tensor("y"))[0], 4);
  s.bind(thread, LoopKind::kThreadX);
  s.unroll(each);
  return s;
}

std::vector<Change> changes() {
  const Schedule tiled = tiled_product(6, 8, 6);
  const Schedule twice = tiled_product(8, 8, 8, {.virtual_threads = true});
  const Schedule ahead = tiled_product(6, 8, 6, {.double_buffer = true});
  const Schedule rows = testing::row_shares(2, 128, 64, 1), fetched = testing::fetched_product();
  return {
      {"fragments", testing::warp_product(testing::half_product(DType::kFloat16, 33, 32, 64, true), {}),
       "acc.fragment float32[32, 16] fragment\n", "acc.fragment float32[16] register\n"},
      {"single-iterations", tiled, "      vthread j.inner.outer in 0..1\n        threadIdx.x thread",
       "    blockIdx.x j.outer in 0..1\n      threadIdx.x thread"},
      {"cross-thread", rows, "threadIdx.x reduce c.inner", "warp_allreduce.sum.32(total.part[0])"},
      {"single-iterations-2", rows, "unrolled warp in 0..1", "total.part[0] += total.warps[row.inner, 1]"},
      {"register-loops", tiled, " for i in 0..2", " unrolled i in 0..2"},
      {"virtual-threads", twice, "vthread j.inner.outer", "acc float32[2, 2, 2] register"},
      {"axes", tiled, "threadIdx.x", "grid (1, 2, 1) block (8, 1, 1)"},
      {"thread-guards", testing::row_shares(5, 20, 16, 2),
       "(total.part[0])\n    total[0] = ", "(total.part[0])\n    if bx*2 + ty < 5\n"},
      {"registers", ahead, "b.packed.staged float32[4, 8] register",
       "b.packed.staged float32[4, 1] register"},
      {"reductions", tiled, "acc[i, j] += ", "acc[i, j] = acc[i, j] + "},
      {"hoist-shared", tiled, "allocate a.packed float32[1, 1, 4, 4] shared",
       "\n  shared a.packed float32[1, 1, 4, 4]\n"},
      {"simplify", rows, "total.warps[ty, tx//32]", "total.warps[0, tx//32]"},
      {"equal-guards", ahead, "tx], 0)\n    if k.outer < 1\n", "tx], 0)\n      unrolled p0"},
      {"copies", tiled, "a.packed[0, 0, p0.p1.p2.p3.fused.outer*2 + tx//4, tx%4] = select(",
       "a.packed[0, 0, p0.p1.p2.p3.fused.outer*2 + tx//4, tx%4] = a.ahead[]"},
      {"simplify-2", either(), "select(!(", " >= 5, z["},
      {"fetches", fetched, "for p2 in 0..4", "= map 0 of a at [0, by*4]"},
      {"place-shared", tiled, "b.packed float32[1, 1, 4, 8]\n", "b.packed float32[1, 1, 4, 8] at 64\n"},
      {"barriers", tiled, "tx] = b.ahead[]\n    reduce k.inner", "tx] = b.ahead[]\n    barrier shared\n"},
      {"drop-unused", fetched, "kernel product(a, b, out)", "kernel product(out)"},
  };
}

std::string lowered_until(const Schedule& s, std::string_view last) {
  const Result<Program> program = s.finish();
  if (!program) return program.message();
  const Result<GpuProgram> gpu = lower_gpu(*program, last);
  return gpu ? to_text(*gpu) : gpu.message();
}

TEST(GpuLoweringPasses, EachChangesTheKernelThatItIsFor) {
  const std::vector<Change> all = changes();
  std::string before;
  for (const GpuLoweringPass& pass : gpu_lowering_passes()) {
    SCOPED_TRACE(pass.name);
    const auto change = std::ranges::find(all, pass.name, &Change::pass);
    if (pass.name.starts_with("check-")) {
      EXPECT_EQ(lowered_until(all[0].of, pass.name), lowered_until(all[0].of, before));
    } else if (change == all.end()) {
      ADD_FAILURE() << "no kernel shows what it does";
    } else {
      const std::string earlier =
          before.empty() ? to_text(*change->of.finish()) : lowered_until(change->of, before);
      const std::string later = lowered_until(change->of, pass.name);
      EXPECT_THAT(earlier, AllOf(HasSubstr(change->before), Not(HasSubstr(change->behind))));
      EXPECT_THAT(later, AllOf(HasSubstr(change->behind), Not(HasSubstr(change->before))));
    }
    before = pass.name;
  }
  for (const Change& change : all)
    EXPECT_NE(std::ranges::find(gpu_lowering_passes(), change.pass, &GpuLoweringPass::name),
              gpu_lowering_passes().end())
        << change.pass << " does not run";
}

TEST(GpuLoweringPasses, BehindTheLastOneIsTheWhole) {
  for (const Change& change : changes())
    EXPECT_EQ("\n" + lowered_until(change.of, gpu_lowering_passes().back().name), lowered(change.of));
}

TEST(GpuLoweringPasses, EveryKernelAndThePackingStopAtTheSamePass) {
  Schedule s(testing::matmul(4, 19, 17));
  s.pack(s.tensor("B"), {{1}, {0}});
  const auto [i, j] = s.axes<2>(s.tensor("C"));
  s.bind(i, LoopKind::kBlockX);
  s.bind(j, LoopKind::kThreadX);
  const auto parts = [&](std::string_view last) {
    const std::string text = lowered_until(s, last);
    const size_t packing = text.find("once before:\n");
    return packing == std::string::npos ? std::pair(text, std::string())
                                        : std::pair(text.substr(0, packing), text.substr(packing));
  };
  const auto [kernel, packing] = parts("virtual-threads");
  EXPECT_THAT(kernel, HasSubstr("threadIdx.x n in 0..19"));
  EXPECT_THAT(packing, HasSubstr("threadIdx.x "));
  const auto [bound_kernel, bound_packing] = parts("axes");
  EXPECT_THAT(bound_kernel, AllOf(HasSubstr("C[bx, tx]"), Not(HasSubstr("threadIdx.x"))));
  EXPECT_THAT(bound_packing, AllOf(HasSubstr("bx*256 + tx"), Not(HasSubstr("threadIdx.x"))));
}

// The names in the first column of a table of a page, below the heading that begins so.
std::vector<std::string> first_column(const std::string& page, const std::string& heading) {
  std::ifstream in(std::string(TUNER_SOURCE_DIR) + "/" + page);
  std::vector<std::string> names;
  bool below = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) below = line.starts_with(heading);
    if (below && line.starts_with("| `")) names.push_back(line.substr(3, line.find('`', 3) - 3));
  }
  return names;
}

TEST(LoweringPasses, ThePageListsThoseThatRunInTheirOrder) {
  const auto names = [](const auto& passes) {
    std::vector<std::string> result;
    for (const auto& pass : passes) result.emplace_back(pass.name);
    return result;
  };
  const std::string page = "compiler_core/lower/README.md";
  EXPECT_EQ(first_column(page, "# lower"), names(lowering_passes()));
  EXPECT_EQ(first_column(page, "## For GPUs"), names(gpu_lowering_passes()));
}

TEST(LoweringPasses, NamesAreUnique) {
  std::set<std::string_view> cpu, gpu;
  for (const LoweringPass& pass : lowering_passes()) EXPECT_TRUE(cpu.insert(pass.name).second) << pass.name;
  for (const GpuLoweringPass& pass : gpu_lowering_passes())
    EXPECT_TRUE(gpu.insert(pass.name).second) << pass.name;
}

}  // namespace
}  // namespace tuner
