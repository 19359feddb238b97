// wgmma: which lane holds which sum and where operands lie, against the words of the PTX manual; what is
// refused because tensor cores would read other elements than the loops do, which no emulator sees; where the
// fence of the asynchronous proxy stands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu.h"
#include "compiler_core/lower/gpu_passes.h"
#include "tests/compiler_core/warp_tile_schedules.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

std::vector<int64_t> at(const IntrinsicOperand& o, int64_t lane, int64_t reg) {
  std::vector<int64_t> place;
  for (const Expr& index : o.layout(Expr(lane), Expr(reg))) {
    EXPECT_TRUE(is_const_int(simplify(index), &place.emplace_back()));
  }
  return place;
}

// "WGMMA .m64nNk16 register fragment layout for accumulator matrix D": d[i] of a thread is at row 16 *
// (%warpid % 4) + %laneid / 4, and 8 further down for every second pair; at column 8 * (i / 4) + (%laneid %
// 4) * 2 + i % 2.
TEST(Wgmma, SumsLieAsTheManualSays) {
  for (const int64_t n : {64, 128, 192, 256}) {
    const IntrinsicOperand& sums = find_intrinsic(str("wgmma.bfloat16.", n, ".mk.kn"))->operands[0];
    EXPECT_EQ(sums.registers, n / 2);
    for (int64_t thread = 0; thread < 128; thread += 3)
      for (int64_t i = 0; i < sums.registers; ++i) {
        const int64_t warp = thread / 32, lane = thread % 32;
        const int64_t row = 16 * warp + (lane >> 2) + ((i & 2) != 0 ? 8 : 0);
        const int64_t column = 8 * (i >> 2) + (lane & 3) * 2 + (i & 1);
        EXPECT_EQ(at(sums, thread, i), (std::vector<int64_t>{row, column}))
            << "d" << i << " of thread " << thread;
      }
  }
}

// "Strides": in units of 128 bits, T is one of them. With 128-byte swizzle the canonical layouts are, of (MN,
// K),
//   K-major    Swizzle<3,4,3> o ((8,m),(T,2k)) : ((8T,SBO),(1,T))
//   MN-major   Swizzle<3,4,3> o ((T,8,m),(8,k)) : ((1,T,LBO),(8T,SBO))
// Swizzle<3,4,3>: bits 4 to 6 of a byte's address exclusive or its bits 7 to 9.
int64_t canonical(bool k_major, int64_t mn, int64_t k, int64_t leading, int64_t stride) {
  constexpr int64_t kT = 8;  // elements of 16 bits in 128
  const int64_t byte =
      k_major ? 2 * (mn % 8 * 8 * kT + k % kT + k / kT * kT) + mn / 8 * stride
              : 2 * (mn % kT + mn / kT % 8 * kT + k % 8 * 8 * kT) + mn / (8 * kT) * leading + k / 8 * stride;
  return byte ^ ((byte >> 7 & 7) << 4);
}

TEST(Wgmma, OperandsAreExpectedWhereTheirDescriptorsSay) {
  constexpr int64_t kLeading = 8192, kStride = 1024;
  for (const bool a_k_major : {true, false})
    for (const bool b_k_major : {true, false}) {
      const Intrinsic& i =
          *find_intrinsic(str("wgmma.float16.192.", a_k_major ? "mk" : "km", ".", b_k_major ? "nk" : "kn"));
      for (int64_t k = 0; k < 64; ++k) {
        for (int64_t m = 0; m < 64; ++m)
          ASSERT_EQ(
              i.operands[1].unit_place(a_k_major ? std::vector<int64_t>{m, k} : std::vector<int64_t>{k, m}),
              canonical(a_k_major, m, k, kLeading, kStride))
              << m << " " << k;
        for (int64_t n = 0; n < 192; ++n) {
          const int64_t piece = n / 64, column = n % 64;
          ASSERT_EQ(i.operands[2].unit_place(b_k_major ? std::vector<int64_t>{piece, column, k}
                                                       : std::vector<int64_t>{piece, k, column}),
                    canonical(b_k_major, n, k, kLeading, kStride))
              << n << " " << k;
        }
      }
      EXPECT_THAT(i.cuda_shared_helper,
                  HasSubstr(str(kLeading / 16, "ull << 16 | ", kStride / 16, "ull << 32 | 1ull << 62")));
      // 16 terms further: within the row, or two atoms.
      EXPECT_THAT(i.cuda_helper,
                  HasSubstr(str(", 1, 1, 1, ", a_k_major ? 0 : 1, ", ", b_k_major ? 0 : 1, ";\"")));
      EXPECT_THAT(i.cuda_helper, HasSubstr(str("\"l\"(a + ", 3 * (a_k_major ? 2 : 128), "), \"l\"(b + ",
                                               3 * (b_k_major ? 2 : 128), ")")));
    }
}

// Each element of an operand is some lane's share, once: nothing is left out where lanes must be told apart.
TEST(Wgmma, LanesShareOperandsOut) {
  for (const size_t o : {1, 2}) {
    const IntrinsicOperand& operand = find_intrinsic("wgmma.bfloat16.128.mk.kn")->operands[o];
    std::set<std::vector<int64_t>> seen;
    for (int64_t lane = 0; lane < 128; ++lane)
      for (int64_t reg = 0; reg < operand.registers; ++reg) seen.insert(at(operand, lane, reg));
    int64_t all = 1;
    for (size_t d = 0; d < operand.shape.size(); ++d) {
      all *= operand.shape[d];
      for (const auto& place : seen) ASSERT_TRUE(place[d] >= 0 && place[d] < operand.shape[d]);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), all);
  }
}

struct Options {
  int64_t k = 128;
  std::string layout = "xor:8,8";
  int64_t lanes = 128;
  int64_t stages = 1;  // above 1: of asynchronous copies, while products go on
};

// A product of one warpgroup: out = max(a b, 0), 64 x 128 of it a block.
Schedule group_product(const Options& o) {
  Schedule s(testing::half_product(DType::kBFloat16, 64, 128, o.k, /*k_first=*/true));
  const Tensor out = s.tensor("out"), acc = s.tensor("acc");
  const Tensor a = s.pack(s.tensor("a"), {{1, 64}, {0, 64}, {0, 64, true}, {1, 64, true}});
  const Tensor b = s.pack(s.tensor("b"), {{0, 64}, {1, 64, false, 2}, {0, 64, true}, {1, 64, true}});
  for (const Tensor& t : {a, b, acc}) s.set_scope(t, MemoryScope::kShared);
  const auto [i, j] = s.axes<2>(out);
  const auto [block, row] = s.split(i, 64);
  s.bind(block, LoopKind::kBlockX);
  s.compute_at(acc, block);
  s.bind(s.split(s.fuse({row, j}), o.lanes).inner, LoopKind::kThreadX);
  const Tensor sums = s.cache_write(acc, MemoryScope::kFragment);
  const auto [acc_i, acc_j] = s.inner_axes<2>(acc);
  const auto [group, group_row] = s.split(acc_i, 64);
  const auto [across, column] = s.split(acc_j, 8);
  s.reorder({group, across, group_row, column});
  s.bind(group, LoopKind::kThreadY);
  s.compute_at(sums, group);
  s.unroll(across);
  s.tensorize(group_row, "wgmma.store");
  const auto [k] = s.reduce_axes<1>(sums);
  const auto [sum_i, sum_j] = s.inner_axes<2>(sums);
  const auto [k_outer, k_inner] = s.split(k, 64);
  const auto [piece, sum_column] = s.split(sum_j, 64);
  s.reorder({k_outer, sum_i, piece, sum_column, k_inner});
  s.decompose_reduction(sums, k_outer);
  s.compute_at(a, k_outer);
  s.compute_at(b, k_outer);
  s.tensorize(sum_i, "wgmma.bfloat16.128.mk.kn");
  for (const Tensor& t : {a, b}) {
    const auto [vectors, vector] = s.split(s.fuse(s.axes(t)), 8);
    s.vectorize(vector);
    s.bind(s.split(vectors, o.lanes).inner, LoopKind::kThreadX);
  }
  const Tensor both[] = {a, b};
  if (o.stages > 1) s.pipeline_products(both, k_outer, o.stages);
  for (const Tensor& t : {a, b})
    if (!o.layout.empty()) s.set_layout(t, o.layout);
  return s;
}

Result<GpuProgram> lowered(const Options& o) {
  const Schedule s = group_product(o);
  ASSIGN_OR_RETURN(const Program scheduled, s.finish());
  return lower_gpu(scheduled);
}

TEST(Wgmma, TilesLieAtMultiplesOfAnAtomAndBehindAFence) {
  const Result<GpuProgram> gpu = lowered({});
  ASSERT_TRUE(gpu) << gpu.message();
  for (size_t i = 0; i < gpu->kernels[0].shared.size(); ++i)
    if (gpu->kernels[0].shared[i]->layout == "xor:8,8") {
      EXPECT_EQ(gpu->kernels[0].shared_offsets[i] % 1024, 0);
    }
  const std::string text = print_cuda(*gpu, *parse_target("cuda -arch=sm_90a"));
  EXPECT_THAT(text, HasSubstr("extern __shared__ __align__(1024) unsigned char shared_memory[];"));
  // Every barrier that a product may be behind of.
  for (size_t barrier = text.find("__syncthreads"); barrier != std::string::npos;
       barrier = text.find("__syncthreads", barrier + 1)) {
    const size_t line = text.rfind('\n', barrier);
    EXPECT_THAT(text.substr(line - 140, 140), HasSubstr("fence.proxy.async.shared::cta;"));
  }
  EXPECT_THAT(
      text, ::testing::ContainsRegex(
                "begin_products\\(\\);\n *// wgmma.bfloat16.128.mk.kn of .*\n *multiply_bfloat16_128_mk_kn"));
  EXPECT_THAT(text, HasSubstr("finish_products();"));
}

// The emulator sees elements, not descriptors: a tile that lies in another way would be right there and wrong
// on a device.
TEST(Wgmma, RefusesTilesThatLieInAnotherWay) {
  for (const char* layout : {"", "pad:8", "xor:8,4", "xor:8,8,2"}) {
    const Result<GpuProgram> gpu = lowered({.layout = layout});
    ASSERT_FALSE(gpu.is_ok()) << layout;
    EXPECT_THAT(gpu.message(),
                HasSubstr(str("wgmma.bfloat16.128.mk.kn fetches A by itself, and a.packed with layout \"",
                              layout, "\"")));
  }
}

TEST(Wgmma, RefusesThreadsThatAreNoWarpgroup) {
  const Result<GpuProgram> gpu = lowered({.lanes = 64});
  ASSERT_FALSE(gpu.is_ok());
  EXPECT_THAT(
      gpu.message(),
      HasSubstr(
          "tiles of a warpgroup need threadIdx.x to be its lanes; found 64 threads along x, expected 128"));
}

// Copies of two iterations less than there are stages are on their way; what the last products read is read
// until they have landed.
TEST(Wgmma, ProductsGoOnOverTheEndOfAnIteration) {
  const Result<GpuProgram> gpu = lowered({.k = 384, .stages = 4});
  ASSERT_TRUE(gpu) << gpu.message();
  std::string text = to_text(*gpu);
  for (const char* copies : {"async copy", "a.packed[(k.outer + 2)%4, 0, 0, "})
    EXPECT_THAT(text, HasSubstr(copies));
  std::string loop = text.substr(text.find("    reduce k.outer in 0..6\n"));
  const size_t begin = loop.find("        async copy"), end = loop.find("      async commit");
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << loop;
  loop.erase(begin, end - begin);
  EXPECT_EQ("\n" + loop.substr(0, loop.find("    barrier shared\n    unrolled")), R"(
    reduce k.outer in 0..6
      async wait 1
      barrier shared
      wgmma.start.bfloat16.128.mk.kn(acc.fragment[0], a.packed[k.outer%4, 0, 0, 0, 0], b.packed[k.outer%4, 0, 0, 0, 0])
      if k.outer > 0
        wgmma.landed_before.bfloat16.128.mk.kn(acc.fragment[0], a.packed[(k.outer + 3)%4, 0, 0, 0, 0], b.packed[(k.outer + 3)%4, 0, 0, 0, 0])
      if k.outer < 4
      async commit
    wgmma.landed.bfloat16.128.mk.kn(acc.fragment[0], a.packed[1, 0, 0, 0, 0], b.packed[1, 0, 0, 0, 0])
)");
  // A wait costs nothing where nothing is under way, and under a guard the compiler would not rely on it.
  EXPECT_THAT(print_cuda(*gpu, *parse_target("cuda -arch=sm_90a")),
              ::testing::ContainsRegex(
                  "commit_products\\(\\);\n *// wgmma_landed_before[^;]*\n *await_earlier_products\\(\\);"));
}

TEST(Wgmma, PipelinesOfProductsNeedAStageMoreAndProductsThatGoOn) {
  EXPECT_THAT(group_product({.k = 256, .stages = 2}).finish().message(),
              HasSubstr("stages must be in 3..16, found 2"));
  EXPECT_THAT(group_product({.k = 64, .stages = 4}).finish().message(),
              HasSubstr("has 1 iterations; 4 stages need at least 2"));
  Schedule s(testing::half_product(DType::kBFloat16, 64, 64, 256, true));
  const Tensor acc = s.tensor("acc"), a = s.cache_read(s.tensor("a"), MemoryScope::kShared, acc);
  const auto [k_outer, k_inner] = s.split(s.reduce_axes<1>(acc)[0], 64);
  const auto [i, j] = s.axes<2>(acc);
  s.reorder({k_outer, i, j, k_inner});
  s.compute_at(a, k_outer);
  const Tensor one[] = {a};
  s.pipeline_products(one, k_outer, 3);
  EXPECT_THAT(s.finish().message(),
              HasSubstr("more than products of a unit that works by itself stands in it"));
}

Stmt without(const Stmt& s, const std::string& intrinsic) {
  if (s == nullptr || (s->kind == StmtKind::kIntrinsic && s->name.starts_with(intrinsic))) return nullptr;
  return map_children(
      s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return without(child, intrinsic); });
}

TEST(Wgmma, SumsAreNobodysBeforeTheyHaveLanded) {
  const Result<Program> whole = group_product({.k = 256, .stages = 3}).finish();
  ASSERT_TRUE(whole) << whole.message();
  Program broken = *whole;
  broken.body = without(whole->body, "wgmma.landed.");
  EXPECT_THAT(lower_gpu(broken).status().message(),
              HasSubstr("acc.fragment is touched before its products have landed: wgmma.store("));
  broken.body = without(broken.body, "wgmma.store");
  EXPECT_THAT(lower_gpu(broken).status().message(),
              HasSubstr("products of acc.fragment are started and never land"));
}

// What stands before the start in one iteration stands behind it in the next one.
TEST(Wgmma, SumsUnderWayAreMetByTheNextIteration) {
  const Result<Program> whole = group_product({.k = 256, .stages = 3}).finish();
  ASSERT_TRUE(whole) << whole.message();
  Stmt start, landed;
  visit(whole->body, [&](const Stmt& s) {
    if (s->name.starts_with("wgmma.start.")) start = s;
    if (s->name.starts_with("wgmma.landed.")) landed = s;
  });
  ASSERT_TRUE(start != nullptr && landed != nullptr);
  const Buffer sums = start->operands[0]->buffer;
  const Stmt clear = make_store(sums, std::vector<Expr>(sums->shape.size(), Expr(0)), float_imm(0));
  const auto repeated = [&](int64_t iterations) {
    const Stmt body = make_for(make_var("step"), iterations, make_seq({clear, start}));
    return gpu::check_units(make_seq({body, landed}), GpuKernel{.name = "steps"}).message();
  };
  EXPECT_EQ(repeated(1), "");
  EXPECT_THAT(repeated(2),
              HasSubstr("kernel steps: acc.fragment is touched before its products have landed"));
}

// "Matrix Descriptor Format": bits 0 to 13 the address, 16 to 29 the leading dimension's offset, 32 to 45 the
// stride's, all over 16 bytes; 62 and 63 the swizzle, 1 for 128 bytes. And how many groups may be under way
// behind each wait.
TEST(Wgmma, DescriptorsAreThoseOfTheManual) {
  const Intrinsic& whole = *find_intrinsic("wgmma.bfloat16.128.mk.kn");
  EXPECT_THAT(whole.cuda_shared_helper, HasSubstr(str("(at >> 4 & 0x3fff) | ", 64 * 128 / 16, "ull << 16 | ",
                                                      8 * 128 / 16, "ull << 32 | 1ull << 62;")));
  EXPECT_THAT(whole.cuda_shared_helper,
              HasSubstr("void await_products() { asm volatile(\"wgmma.wait_group.sync.aligned 0;\""));
  EXPECT_THAT(whole.cuda_shared_helper,
              HasSubstr("void await_earlier_products() { asm volatile(\"wgmma.wait_group.sync.aligned 1;\""));
  EXPECT_EQ(find_intrinsic("wgmma.landed.bfloat16.128.mk.kn")->cuda, "await_products();");
  EXPECT_EQ(find_intrinsic("wgmma.landed_before.bfloat16.128.mk.kn")->cuda, "await_earlier_products();");
}

TEST(Wgmma, IsOfOneArchitecture) {
  const Result<GpuProgram> gpu = lowered({});
  ASSERT_TRUE(gpu) << gpu.message();
  for (const char* arch : {"sm_80", "sm_90", "sm_100a"}) {
    const Result<Artifact> artifact =
        cuda::compile_kernels(*gpu, *parse_target(str("cuda -arch=", arch)), {});
    ASSERT_FALSE(artifact.is_ok());
    EXPECT_THAT(artifact.message(), HasSubstr(str("needs sm_90a, found ", arch)));
  }
}

// A compiler that cannot keep products under way says so in one line, before or behind the kernel's
// paragraph.
TEST(Wgmma, TheCompilersLogTellsOfProductsThatWaitForEachOther) {
  const std::string paragraph =
      "ptxas info    : Compiling entry function 'one' for 'sm_90a'\nptxas info    : Used 90 registers, used "
      "1 barriers\n"
      "ptxas info    : Compiling entry function 'two' for 'sm_90a'\nptxas info    : Used 168 registers, used "
      "1 barriers\n";
  const std::string remark =
      "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due "
      "to insufficient register "
      "resources for the wgmma pipeline in the function 'two'\n";
  for (const std::string& log : {paragraph + remark, remark + paragraph}) {
    const std::vector<CompilerReport> reports = parse_compiler_log(log);
    ASSERT_EQ(reports.size(), 2u);
    EXPECT_FALSE(reports[0].serialized);
    EXPECT_TRUE(reports[1].serialized);
    EXPECT_THAT(reports[1].losses,
                ::testing::ElementsAre(::testing::StartsWith("C7511 Potential Performance Loss: ")));
  }
  // Another number is another reason for the same, or one for less.
  const std::vector<CompilerReport> others =
      parse_compiler_log(paragraph +
                         "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions "
                         "are serialized due to ill "
                         "formed pipeline stage in the function 'one'\n"
                         "ptxas info    : (C7519) warpgroup.arrive is injected in around line 7 by compiler "
                         "to allow use of registers "
                         "in wgmma in the function 'two'\n");
  EXPECT_TRUE(others[0].serialized);
  EXPECT_FALSE(others[1].serialized);
  EXPECT_EQ(others[1].losses.size(), 1u);
}

}  // namespace
}  // namespace tuner
