// CUDA text: names, vectors, guards, barriers, arithmetic, as a reader meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/codegen_cuda/describe.h"
#include "compiler_core/codegen_cuda/names.h"
#include "tests/compiler_core/gpu_kernels.h"

namespace tuner::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Target target() { return *parse_target("cuda -arch=sm_90a"); }
std::string text_of(const GpuProgram& p) { return print_cuda(p, target()); }

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// One kernel of 32 threads: y[...] = value.
GpuProgram one_store(const Buffer& x, const Buffer& y, const Var& thread, Stmt body) {
  GpuKernel k{.name = "kernel"};
  k.block = {32, 1, 1}, k.thread_vars[0] = thread;
  k.params = {x, y};
  k.body = std::move(body);
  return program_of(std::move(k));
}

TEST(CodegenCudaPrint, ElementwiseKernelIsVectorsUnderOneGuard) {
  // 4 divides 1000: the lanes of a vector are inside or outside together.
  EXPECT_EQ(text_of(elementwise(1000)),
            R"(// relu for cuda -arch=sm_90a. Arguments, row-major, aligned to 16 bytes:
//   x: input, float32 [1000], 4000 bytes
//   y: output, float32 [1000], 4000 bytes

// Maximum and minimum of IEEE 754: a NaN stays one, which fmaxf and fminf would drop.
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ float ieee_max(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
static __device__ __forceinline__ float ieee_min(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
#else
static __device__ __forceinline__ float ieee_max(float a, float b) { return a > b || a != a ? a : b; }
static __device__ __forceinline__ float ieee_min(float a, float b) { return a < b || a != a ? a : b; }
#endif
static __device__ __forceinline__ double ieee_max(double a, double b) { return a > b || a != a ? a : b; }
static __device__ __forceinline__ double ieee_min(double a, double b) { return a < b || a != a ? a : b; }

// relu: 1 x 1 x 1 blocks of 256 x 1 x 1 = 256 threads
//   a block computes y[0..999]
extern "C" __global__ void __launch_bounds__(256)
relu(const float* __restrict__ x, float* __restrict__ y) {
  const int i_inner = threadIdx.x;  // 0..255
  // write y from x: 4 elements a thread
  if (i_inner < 250) {  // dimension 0 of y ends at 1000
    const float4 x_lanes = *(const float4*)&x[i_inner * 4];
    *(float4*)&y[i_inner * 4] = make_float4(ieee_max(x_lanes.x, 0.0f), ieee_max(x_lanes.y, 0.0f),
        ieee_max(x_lanes.z, 0.0f), ieee_max(x_lanes.w, 0.0f));
  }
}
)");
}

TEST(CodegenCudaPrint, WrappedCommentsStayComments) {
  // Registers of every number and length of names: somewhere the wrapped list fills its line to the last
  // column.
  const Buffer y = make_buffer("y", DType::kFloat32, {32}, MemoryScope::kGlobal, BufferRole::kOutput);
  for (size_t length = 1; length <= 24; ++length) {
    const Var thread = make_var("tx");
    Stmt body = make_store(y, {Expr(thread)}, float_imm(0));
    for (int i = 0; i < 24; ++i) {
      const Buffer b = make_buffer(std::string(length, static_cast<char>('a' + i)), DType::kFloat32, {1},
                                   MemoryScope::kRegister);
      body = make_allocate(b, std::move(body));
    }
    std::istringstream text(text_of(one_store(y, y, thread, body)));
    for (std::string line; std::getline(text, line) && line.find("extern") == std::string::npos;)
      EXPECT_TRUE(line.empty() || line.rfind("//", 0) == 0) << length << ": " << line;
  }
}

TEST(CodegenCudaPrint, BorderInsideAVectorFallsBackToScalars) {
  const std::string text = text_of(elementwise(1002));
  EXPECT_THAT(text, Not(HasSubstr("float4")));
  EXPECT_THAT(text, HasSubstr("#pragma unroll\n"));
  EXPECT_THAT(text, HasSubstr("if (i_inner * 4 + lane < 1002) {"));
}

TEST(CodegenCudaPrint, SizeThatThreadsCoverNeedsNoGuard) {
  const std::string text = text_of(elementwise(2048));
  EXPECT_THAT(text, Not(HasSubstr("if (")));
  EXPECT_THAT(text, HasSubstr("*(float4*)&y["));
}

TEST(CodegenCudaPrint, HeadTellsBlocksOutputAndMemory) {
  const std::string text =
      text_of(tiled_matmul({.m = 256, .n = 512, .k = 64, .tile = 8, .b_layout = "pad:4"}));
  EXPECT_THAT(text, HasSubstr("// matmul: 4 x 2 x 1 blocks of 16 x 16 x 1 = 256 threads\n"));
  EXPECT_THAT(text, HasSubstr("//   a block computes out[m_outer*128 + 0..127, n_outer*128 + 0..127]\n"));
  EXPECT_THAT(text, HasSubstr("//   shared memory: a_tile [1, 16, 128] of float32, 8192 bytes at 0\n"));
  EXPECT_THAT(text, HasSubstr("b_tile [1, 16, 128] of float32, layout pad:4, 8448 bytes at 8192\n"));
  EXPECT_THAT(text, HasSubstr("//   registers of a thread for: acc 64\n"));
}

TEST(CodegenCudaPrint, BarriersSayWhatTheyKeepApart) {
  const std::string once = text_of(tiled_matmul({}));
  EXPECT_THAT(
      once,
      HasSubstr("__syncthreads();  // a_tile and b_tile are written by all threads: reads may begin\n"));
  EXPECT_THAT(
      once, HasSubstr("__syncthreads();  // a_tile and b_tile are read by all threads: writes may begin\n"));
  const std::string twice = text_of(tiled_matmul({.double_buffer = true}));
  EXPECT_EQ(count(twice, "__syncthreads();"), 2);
}

TEST(CodegenCudaPrint, SharedMemoryIsDynamicWithTypedViews) {
  const std::string text = text_of(tiled_matmul({}));
  EXPECT_THAT(text, HasSubstr("extern __shared__ __align__(16) unsigned char shared_memory[];\n"));
  EXPECT_THAT(text, HasSubstr("float* const a_tile = (float*)shared_memory;"));
  EXPECT_THAT(text, HasSubstr("float* const b_tile = (float*)(shared_memory + 4096);"));
}

TEST(CodegenCudaPrint, SwizzledTilesKeepVectorsAndStay32Bit) {
  const std::string text = text_of(tiled_matmul({.tile = 8, .b_layout = "xor:4,8"}));
  EXPECT_THAT(text, HasSubstr("*(float4*)&b_tile["));
  EXPECT_THAT(text, HasSubstr(" ^ "));
  EXPECT_THAT(text, Not(HasSubstr("long long")));
}

TEST(CodegenCudaPrint, StagesAreNamedAndLoopsKeepTheirNames) {
  const std::string text = text_of(tiled_matmul({.tile = 8}));
  EXPECT_THAT(text, HasSubstr("// copy part of b into shared memory (b_tile): 8 elements a thread\n"));
  EXPECT_THAT(text,
              HasSubstr("// add the products of a_tile and b_tile to acc: 1024 multiply-adds a thread\n"));
  EXPECT_THAT(text, HasSubstr("#pragma unroll 1\n  for (int k_outer = 0; k_outer < 32; ++k_outer) {\n"));
  EXPECT_THAT(text, HasSubstr("acc[i * 8 + j] += "));
}

TEST(CodegenCudaPrint, IntrinsicIsItsRegisteredText) {
  const std::string text = text_of(row_sum(8, 64));
  EXPECT_THAT(text,
              HasSubstr("for (int d = 16; d > 0; d /= 2) sum = sum + __shfl_xor_sync(0xffffffffu, sum, d);"));
  EXPECT_THAT(text, HasSubstr("if (c_inner == 0) {  // only some of the threads take part\n"));
}

TEST(CodegenCudaPrint, NamesThatAreNoIdentifiersOrTaken) {
  // A tensor named like a keyword, one like CUDA's own, loops all called alike.
  const Buffer x = input("float", {32, 2}), y = output("threadIdx", {32, 2});
  const Var t = make_var("d.0"), a = make_var("d.0");
  const std::string text = text_of(one_store(x, y, t, loop(a, 2, make_store(y, {t, a}, load(x, {t, a})))));
  EXPECT_THAT(text, HasSubstr("const float* __restrict__ float_1, float* __restrict__ threadIdx_1"));
  EXPECT_THAT(text, HasSubstr("for (int d_0_1 = 0;"));
  EXPECT_THAT(text, HasSubstr("threadIdx_1[d_0 * 2 + d_0_1] = float_1[d_0 * 2 + d_0_1];"));
}

TEST(CodegenCudaPrint, RegistersAndVectorsSideBySideHaveNamesOfTheirOwn) {
  // Two allocations after one another, each filled by a vector load: one scope in the text.
  const Buffer x = input("x", {64, 4}), y = output("y", {64, 4});
  const Var t = make_var("t");
  std::vector<Stmt> parts;
  for (int n = 0; n < 2; ++n) {
    const Buffer r = registers("r", {4});
    const Var i = make_var("i"), j = make_var("j");
    const Expr row = Expr(t) + n * 32;
    parts.push_back(make_allocate(
        r, make_seq({loop(i, 4, make_store(r, {i}, load(x, {row, i})), LoopKind::kVectorized),
                     loop(j, 4, make_store(y, {row, j}, load(r, {j})), LoopKind::kVectorized)})));
  }
  const std::string text = text_of(one_store(x, y, t, make_seq(std::move(parts))));
  EXPECT_EQ(count(text, "float r[4];"), 1);
  EXPECT_EQ(count(text, "float r_1[4];"), 1);
  EXPECT_EQ(count(text, "const float4 x_lanes ="), 1);
  EXPECT_EQ(count(text, "const float4 x_lanes_1 ="), 1);
}

TEST(CodegenCudaPrint, DivisionOfWhatMayBeNegativeRoundsDown) {
  const Buffer x = input("x", {32}), y = output("y", {32});
  const Var t = make_var("t");
  const std::string negative =
      text_of(one_store(x, y, t, make_store(y, {t}, load(x, {floor_div(Expr(5) - t, 7) + 4}))));
  EXPECT_THAT(negative, HasSubstr("x[index_div(5 - t, 7) + 4]"));
  EXPECT_THAT(negative, HasSubstr("index_div(int a, int b)"));
  const std::string positive =
      text_of(one_store(x, y, t, make_store(y, {t}, load(x, {floor_mod(Expr(t) + 5, 32)}))));
  EXPECT_THAT(positive, HasSubstr("x[(t + 5) % 32]"));
  EXPECT_THAT(positive, Not(HasSubstr("index_mod")));
}

TEST(CodegenCudaPrint, IndicesBeyond31BitsAre64Bit) {
  const int64_t n = int64_t{1} << 32;
  const Buffer x = input("x", {n}), y = output("y", {n});
  const Var b = make_var("b"), t = make_var("t");
  GpuKernel k{.name = "large"};
  k.grid = {n / 1024, 1, 1}, k.block = {1024, 1, 1};
  k.block_vars[0] = b, k.thread_vars[0] = t;
  k.params = {x, y};
  k.body = make_store(y, {Expr(b) * 1024 + t}, load(x, {Expr(b) * 1024 + t}));
  EXPECT_THAT(text_of(program_of(std::move(k))),
              HasSubstr("const long long x_i0 = (long long)b * 1024ll + (long long)t;"));
}

TEST(CodegenCudaPrint, PaddedLoadTouchesNoMemoryOutside) {
  const Buffer x = input("x", {30, 8}), y = output("y", {32, 8});
  const Var t = make_var("t"), lane = make_var("lane");
  const auto copy = [&](const Expr& inside) {
    const Expr value = select(inside, load(x, {Expr(t) - 1, lane}), float_imm(0));
    return text_of(one_store(x, y, t, loop(lane, 8, make_store(y, {t, lane}, value), LoopKind::kVectorized)));
  };
  // The same for all lanes: one conditional vector load.
  EXPECT_THAT(copy(Expr(t) >= Expr(1) && Expr(t) < Expr(31)),
              HasSubstr("load_if((t >= 1) & (t < 31), (const float4*)&x[(t - 1) * 8"));
  // Different between lanes: scalars.
  EXPECT_THAT(copy(Expr(lane) < Expr(3)), Not(HasSubstr("float4*)&x")));
}

TEST(CodegenCudaPrint, StoresOfACopyUnderAGuardHaveNoBranch) {
  const Buffer x = input("x", {32}), y = output("y", {32});
  const Buffer part = make_buffer("part", DType::kFloat32, {1}, MemoryScope::kRegister);
  const Buffer tile = make_buffer("tile", DType::kFloat32, {20}, MemoryScope::kShared);
  const Var t = make_var("t");
  const auto copy = [&](int64_t nowhere) {
    const Expr guard = Expr(t) < Expr(20);
    GpuProgram p = one_store(
        x, y, t,
        make_seq(
            {make_allocate(part, make_seq({make_store(part, {Expr(0)}, load(x, {t})),
                                           make_if(guard, make_store(tile, {t}, load(part, {Expr(0)})))})),
             make_barrier(MemoryScope::kShared), make_store(y, {t}, load(tile, {min(Expr(t), Expr(19))}))}));
    GpuKernel& k = p.kernels.front();
    k.shared = {tile}, k.shared_offsets = {0}, k.shared_nowhere = nowhere;
    k.shared_bytes = std::max<int64_t>(nowhere, 80) + 16;
    return text_of(p);
  };
  EXPECT_THAT(copy(80), HasSubstr("unsigned char* const nowhere = shared_memory + 80;"));
  EXPECT_THAT(copy(80), HasSubstr("const bool inside = t < 20;  // dimension 0 of tile ends at 20\n"
                                  "  store_if(inside, &tile[t], part, nowhere);"));
  EXPECT_THAT(copy(80), Not(HasSubstr("if (t < 20)")));
  EXPECT_THAT(copy(-1), HasSubstr("if (t < 20) {  // dimension 0 of tile ends at 20\n    tile[t] = part;"));
  EXPECT_THAT(copy(-1), Not(HasSubstr("store_if")));
}

TEST(CodegenCudaPrint, LoadsOfWhatNobodyStoresHaveNoBranch) {
  const Buffer x = input("x", {30}), y = output("y", {32});
  const Var t = make_var("t");
  const Expr inside = Expr(t) >= Expr(1) && Expr(t) < Expr(31);
  const std::string text =
      text_of(one_store(x, y, t, make_store(y, {t}, select(inside, load(x, {Expr(t) - 1}), float_imm(0)))));
  EXPECT_THAT(text, HasSubstr("y[t] = load_if((t >= 1) & (t < 31), &x[t - 1], 0.0f);"));
  EXPECT_THAT(text, HasSubstr("T load_if(bool inside, const T* from, decltype(T()) otherwise) {"));
  // The kernel stores y itself: no memory that is constant meanwhile.
  const std::string own =
      text_of(one_store(x, y, t, make_store(y, {t}, select(inside, load(y, {Expr(t) - 1}), float_imm(0)))));
  EXPECT_THAT(own, HasSubstr("(t >= 1 && t < 31) ? y[t - 1] : 0.0f"));
  EXPECT_THAT(own, Not(HasSubstr("load_if")));
  // The place would overflow where it does not count.
  const Buffer far = input("far", {int64_t{1} << 30});
  const Expr place = Expr(t) * (int64_t{1} << 29);
  const std::string wide = text_of(
      one_store(far, y, t, make_store(y, {t}, select(Expr(t) < Expr(2), load(far, {place}), float_imm(0)))));
  EXPECT_THAT(wide, Not(HasSubstr("load_if")));
}

TEST(CodegenCudaPrint, RegisterIndexedByASerialLoopIsUnrolled) {
  const Buffer x = input("x", {32, 4}), y = output("y", {32, 4}), r = registers("r", {4});
  const Var t = make_var("t"), i = make_var("i"), j = make_var("j");
  const Stmt body = make_allocate(r, make_seq({loop(i, 4, make_store(r, {i}, load(x, {t, i}))),
                                               loop(j, 4, make_store(y, {t, j}, load(r, {j})))}));
  EXPECT_EQ(count(text_of(one_store(x, y, t, body)), "#pragma unroll\n"), 2);
}

TEST(CodegenCudaPrint, VectorsOfOneBlockHaveNamesOfTheirOwn) {
  const Buffer x = input("x", {32, 4}), y = output("y", {32, 4});
  const Var t = make_var("t");
  // Allocations have no braces in C: what stands under the first is still seen under the second.
  const auto copy_through = [&](const Buffer& r) {
    const Var i = make_var("i"), j = make_var("j");
    return make_allocate(r,
                         make_seq({loop(i, 4, make_store(r, {i}, load(x, {t, i})), LoopKind::kVectorized),
                                   loop(j, 4, make_store(y, {t, j}, load(r, {j})), LoopKind::kVectorized)}));
  };
  const Stmt body = make_seq({copy_through(registers("r", {4})), copy_through(registers("r", {4}))});
  const std::string text = text_of(one_store(x, y, t, body));
  EXPECT_EQ(count(text, "const float4 x_lanes = "), 1) << text;
  EXPECT_EQ(count(text, "const float4 x_lanes_1 = "), 1) << text;
  EXPECT_EQ(count(text, "float r[4];"), 1) << text;
  EXPECT_EQ(count(text, "float r_1[4];"), 1) << text;
}

TEST(CodegenCudaPrint, SameProgramSameText) {
  EXPECT_EQ(text_of(tiled_matmul({.double_buffer = true})), text_of(tiled_matmul({.double_buffer = true})));
}

TEST(CodegenCudaPrint, LinesFitTheColumns) {
  for (const bool twice : {false, true})
    for (const char* layout : {"", "pad:4", "xor:4,8"}) {
      std::istringstream in(text_of(tiled_matmul({.tile = 8, .double_buffer = twice, .b_layout = layout})));
      for (std::string line; std::getline(in, line);) EXPECT_LE(line.size(), 112u) << line;
    }
}

TEST(CodegenCudaPrint, RefusesWhatItCannotWrite) {
  const Buffer x = make_buffer("x", DType::kFloat16, {32}), y = output("y", {32});
  const Var t = make_var("t");
  // Moved and cast it may be, added not.
  const Expr of_x = load(x, {t});
  GpuProgram half = one_store(x, y, t, make_store(y, {t}, cast(DType::kFloat32, of_x)));
  EXPECT_TRUE(cuda::check_printable(half));
  EXPECT_EQ(
      cuda::check_printable(one_store(x, y, t, make_store(y, {t}, cast(DType::kFloat32, of_x + of_x))))
          .message(),
      "kernel kernel: x[t] + x[t]: arithmetic in float16 is not supported on GPUs; cast to float32 first");
  auto unknown = std::make_shared<StmtNode>();
  unknown->kind = StmtKind::kIntrinsic;
  unknown->name = "no_such";
  half.kernels[0].body = unknown;
  EXPECT_EQ(cuda::check_printable(half).message(), "kernel kernel: intrinsic no_such is not one of GPUs");
}

// "a name beginning with an underscore is reserved": the C++ standard, of names at file scope; keywords and
// helpers are taken.
TEST(CodegenCudaPrint, NamesAreIdentifiersThatNobodyElseHas) {
  EXPECT_EQ(cuda::identifier("a.b:c"), "a_b_c");
  EXPECT_EQ(cuda::identifier("_x"), "v_x");
  EXPECT_EQ(cuda::identifier("7x"), "v7x");
  EXPECT_EQ(cuda::identifier(""), "v");
  cuda::Names names;
  EXPECT_EQ(names.declare("float"), "float_1");
  EXPECT_EQ(names.declare("float16_bits"), "float16_bits_1");
  EXPECT_EQ(names.declare("dot_int8_uint8"), "dot_int8_uint8_1");
  EXPECT_EQ(names.declare("sum"), "sum");
  EXPECT_EQ(names.declare("sum"), "sum_1");
}

TEST(CodegenCudaPrint, CommentsSayWhichExtremeItIs) {
  const Buffer x = input("x", {8}), most = registers("most", {1});
  const Var r = make_var("r");
  const auto said = [&](BinaryOp op) {
    return cuda::describe_nest(
        make_for(r, 8, make_store(most, {0}, binary(op, load(most, {0}), load(x, {Expr(r)})))));
  };
  EXPECT_THAT(said(BinaryOp::kMax),
              HasSubstr("most becomes the largest of itself and x: 8 comparisons a thread"));
  EXPECT_THAT(said(BinaryOp::kMin),
              HasSubstr("most becomes the smallest of itself and x: 8 comparisons a thread"));
}

}  // namespace
}  // namespace tuner::testing
