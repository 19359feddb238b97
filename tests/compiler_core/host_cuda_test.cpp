// CUDA sources on this host: right kernels compute what they say and nothing is found; each kind of fault is
// found, at its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compiler_core/foreign/compilers.h"
#include "compiler_core/foreign/confined_program.h"
#include "compiler_core/host_cuda/host_build.h"
#include "compiler_core/host_cuda/host_cuda.h"
#include "compiler_core/host_cuda/kernel_text.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Kind = HostCudaFinding::Kind;

std::string bytes_of(const std::vector<float>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)};
}
std::vector<float> floats_of(const std::string& bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

class HostCudaRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status able = can_confine(); !able) GTEST_SKIP() << able.message();
    if (const Result<Compiler> compiler = find_compiler("c++"); !compiler) GTEST_SKIP() << compiler.message();
  }
};

// A kernel of 64 threads, in -> out of 64 floats each, of two blocks' numbers where `blocks` is 2.
HostCudaKernel small(const std::string& text, int64_t blocks = 1, int64_t shared_bytes = 0) {
  return {.files = {{"k.cu", text}},
          .source = "k.cu",
          .function = "k",
          .grid = {blocks, 1, 1},
          .block = {64, 1, 1},
          .shared_bytes = shared_bytes,
          .arguments = {{"in", "const float*", 64, 4, BufferRole::kInput, ""},
                        {"out", "float*", 64, 4, BufferRole::kOutput, ""}}};
}
std::string kernel_of(const std::string& body) {
  return "__global__ void k(const float* in, float* out) {\n  const int i = threadIdx.x;\n" + body + "\n}\n";
}
std::vector<float> ramp() {
  std::vector<float> in(64);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i + 1);
  return in;
}
HostCudaRun run(const HostCudaKernel& kernel) {
  Result<HostCudaRun> made = run_host_cuda(kernel, {bytes_of(ramp())});
  EXPECT_TRUE(made.is_ok()) << made.message();
  return made.is_ok() ? *made : HostCudaRun{};
}
// The numbers that a right kernel writes; nothing may be found.
std::vector<float> right(const HostCudaKernel& kernel) {
  const HostCudaRun made = run(kernel);
  for (const HostCudaFinding& f : made.findings) ADD_FAILURE() << f.text;
  if (!made.outputs.empty()) return floats_of(made.outputs[0]);
  ADD_FAILURE() << "nothing was written";
  return std::vector<float>(64);
}
// What is found of one kind, and that nothing else is.
std::string only(Kind kind, const HostCudaKernel& kernel) {
  std::string text;
  for (const HostCudaFinding& f : run(kernel).findings) {
    EXPECT_EQ(f.kind, kind) << f.text;
    text += f.text + "\n";
  }
  return text;
}

TEST_F(HostCudaRuns, StaticSharedMemoryAndABarrier) {
  const std::vector<float> out = right(small(
      kernel_of("  __shared__ float s[64];\n  s[i] = in[i];\n  __syncthreads();\n  out[i] = s[63 - i];")));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], 64 - i);
}

TEST_F(HostCudaRuns, DynamicSharedMemoryInATemplate) {
  HostCudaKernel kernel = small(
      "namespace mine {\ntemplate <int N>\n__global__ void k(const float* in, float* out) {\n"
      "  extern __shared__ __align__(16) float s[];\n  static __shared__ int extra[N];\n"
      "  s[threadIdx.x] = in[threadIdx.x];\n  extra[threadIdx.x] = N;\n  __syncthreads();\n"
      "  out[threadIdx.x] = s[(threadIdx.x + 1) % N] + extra[(threadIdx.x + 2) % N];\n}\n}\n",
      1, 256);
  kernel.function = "mine::k<64>";
  const std::vector<float> out = right(kernel);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], (i + 1) % 64 + 1 + 64);
}

TEST_F(HostCudaRuns, ShufflesVotesAndCounts) {
  const std::vector<float> out = right(small(kernel_of(R"(
  const unsigned all = 0xffffffffu;
  float sum = in[i];
  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(all, sum, by);
  const float before = __shfl_up_sync(all, in[i], 1), part = __shfl_sync(all, in[i], 3, 8);
  const unsigned even = __ballot_sync(all, i % 2 == 0);
  const int many = __syncthreads_count(i < 5);
  float half = 0;
  if (i % 32 < 16) half = __shfl_down_sync(0xffffu, in[i], 2, 16);
  __syncwarp();
  out[i] = i == 0 ? sum : i == 1 ? before : i == 2 ? part : i == 12 ? part : i == 3 ? even % 1000 : i == 4 ? many :
           i == 5 ? half : i == 15 ? half : i == 32 ? sum : i == 33 ? __popc(__activemask() & 3) : 0;)")));
  EXPECT_EQ(out[0], 528);    // 1 + ... + 32
  EXPECT_EQ(out[32], 1552);  // 33 + ... + 64
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[2], 4);
  EXPECT_EQ(out[12], 12);  // lane 3 of the second eight
  EXPECT_EQ(out[3], 0x55555555u % 1000);
  EXPECT_EQ(out[4], 5);
  EXPECT_EQ(out[5], 8);
  EXPECT_EQ(out[15], 16);  // beyond its sixteen: its own
}

// 2049 = 2048 + 1 has 12 bits: float16 rounds it to 2048, bfloat16 1 + 2^-8 to 1.
TEST_F(HostCudaRuns, NumbersOf16Bits) {
  const std::vector<float> out =
      right(small("#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + kernel_of(R"(
  const __half x = __float2half(in[i]), big = __half(2048);
  const __half2 pair = __hfma2(make_half2(x, big), __float2half2_rn(2), __float2half2_rn(1));
  const __nv_bfloat16 b = __float2bfloat16(1 + in[0] / 256);
  out[i] = i == 0 ? __half2float(big + x) : i == 1 ? (float)b : i == 2 ? __low2float(pair) : i == 3 ? __high2float(pair) :
           i == 4 ? (float)(x * x - x) : i == 5 ? __hlt(x, big) : i == 6 ? __half2float(__float2half(70000.0f)) : 0;)")));
  EXPECT_EQ(out[0], 2048);
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[2], 7);
  EXPECT_EQ(out[3], 4096);  // 4097 has 13 bits
  EXPECT_EQ(out[4], 20);
  EXPECT_EQ(out[5], 1);
  EXPECT_TRUE(std::isinf(out[6]));
}

TEST_F(HostCudaRuns, AtomicsOfBlocks) {
  HostCudaKernel kernel = small(
      kernel_of(
          "  __shared__ int n;\n  if (i == 0) n = 0;\n  __syncthreads();\n  atomicAdd(&n, 1);\n"
          "  __syncthreads();\n  atomicAdd(out + i, in[i] * n);\n  if (i == 1) atomicMax(out, 1000.0f);"),
      2);
  kernel.arguments[1].role = BufferRole::kInOut;
  const Result<HostCudaRun> made =
      run_host_cuda(kernel, {bytes_of(ramp()), bytes_of(std::vector<float>(64))});
  ASSERT_TRUE(made.is_ok()) << made.message();
  EXPECT_EQ(made->fault(), "");
  const std::vector<float> out = floats_of(made->outputs.at(0));
  EXPECT_GE(out[0], 1000);
  for (int i = 1; i < 64; ++i) EXPECT_EQ(out[i], 2 * 64 * (i + 1));
}

TEST_F(HostCudaRuns, AMissingBarrierIsARaceWithBothLines) {
  const std::string text = only(
      Kind::kRace, small(kernel_of("  __shared__ float s[64];\n  s[i] = in[i];\n  out[i] = s[63 - i];")));
  EXPECT_THAT(text, HasSubstr("a race on s (shared memory)"));
  EXPECT_THAT(text, HasSubstr("k.cu:4"));
  EXPECT_THAT(text, HasSubstr("k.cu:5"));
  EXPECT_THAT(text, HasSubstr("with no barrier between"));
}

TEST_F(HostCudaRuns, WritesAfterReadsRaceToo) {
  EXPECT_THAT(
      only(Kind::kRace, small(kernel_of("  __shared__ float s[64];\n  s[i] = in[i];\n  __syncthreads();\n"
                                        "  const float x = s[63 - i];\n  s[i] = x;\n  out[i] = x;"))),
      HasSubstr("a race on s"));
  // Warps that read after each other hide none of each other's reads.
  EXPECT_THAT(only(Kind::kRace,
                   small(kernel_of("  __shared__ float s;\n  if (i == 0) s = in[0];\n  __syncthreads();\n"
                                   "  out[i] = s;\n  if (i == 0) s = 2;"))),
              HasSubstr("reads it"));
}

TEST_F(HostCudaRuns, AWarpIsOrderedBySyncwarpAndNotByShuffles) {
  const std::string before = "  __shared__ float s[64];\n  s[i] = in[i];\n", after = "  out[i] = s[i ^ 1];\n";
  right(small(kernel_of(before + "  __syncwarp();\n" + after)));
  EXPECT_THAT(only(Kind::kRace, small(kernel_of(before + "  __shfl_sync(0xffffffffu, i, 0);\n" + after))),
              HasSubstr("a race on s"));
  EXPECT_THAT(only(Kind::kRace, small(kernel_of(before + "  __syncwarp();\n  out[i] = s[63 - i];\n"))),
              HasSubstr("a race on s"));
}

TEST_F(HostCudaRuns, EqualWritesAreNoRace) {
  const std::vector<float> out =
      right(small(kernel_of("  __shared__ int any;\n  any = 0;\n  __syncthreads();\n  if (in[i] > 60) any = "
                            "1;\n  __syncthreads();\n"
                            "  out[i] = any;")));
  EXPECT_EQ(out[0], 1);
  EXPECT_THAT(only(Kind::kRace, small(kernel_of("  __shared__ int last;\n  last = i;\n  __syncthreads();\n"
                                                "  out[i] = last;"))),
              HasSubstr("writes it"));
}

// Whoever touches a part of a word meets those who touched all of it; neighbouring bytes are apart.
TEST_F(HostCudaRuns, PartsOfWords) {
  const std::vector<float> out =
      right(small(kernel_of("  __shared__ unsigned char s[64];\n  s[i] = i;\n  __syncthreads();\n"
                            "  out[i] = s[63 - i];")));
  EXPECT_EQ(out[0], 63);
  EXPECT_THAT(only(Kind::kRace,
                   small(kernel_of("  __shared__ unsigned s[64];\n  s[i] = i;\n"
                                   "  ((unsigned char*)s)[(i + 1) % 64 * 4 + 2] = 7;\n  out[i] = in[i];"))),
              HasSubstr("a race on s (shared memory)"));
  EXPECT_THAT(
      only(Kind::kRace, small(kernel_of("  __shared__ __align__(4) unsigned char s[64];\n  s[i] = i;\n"
                                        "  if (i < 16) out[i] = ((unsigned*)s)[i];"))),
      HasSubstr("reads it"));
}

TEST_F(HostCudaRuns, BlocksAreNotOrdered) {
  EXPECT_THAT(only(Kind::kRace, small(kernel_of("  out[i] = in[i] + blockIdx.x;"), 2)),
              HasSubstr("nothing orders blocks"));
}

TEST_F(HostCudaRuns, WhatLiesOutsideIsFound) {
  const std::string shared =
      only(Kind::kBounds, small(kernel_of("  __shared__ float s[64];\n  s[i + 1] = in[i];\n"
                                          "  __syncthreads();\n  out[i] = s[i];")));
  EXPECT_THAT(shared, HasSubstr("outside of s (shared memory), which has 256: 256 bytes behind its begin"));
  EXPECT_THAT(shared, HasSubstr("k.cu:4"));
  EXPECT_THAT(shared, HasSubstr("thread (63, 0, 0) of block (0, 0, 0) writes 4 bytes"));
  EXPECT_THAT(only(Kind::kBounds, small("__global__ void k(const float* in, float* out) {\n"
                                        "  extern __shared__ float s[];\n  s[threadIdx.x] = 1;\n"
                                        "  out[threadIdx.x] = s[threadIdx.x];\n}\n",
                                        1, 252)),
              HasSubstr("outside of the dynamic array (shared memory), which has 252"));
  EXPECT_THAT(only(Kind::kBounds, small(kernel_of("  out[i] = in[i - 1];"))),
              HasSubstr("outside of in, which has 256: 4 bytes before its begin"));
  EXPECT_THAT(only(Kind::kBounds, small(kernel_of("  out[i + 1] = in[i];"))), HasSubstr("outside of out"));
  EXPECT_THAT(only(Kind::kBounds, small(kernel_of("  out[i] = ((const float*)nullptr)[i];"))),
              HasSubstr("which is in no buffer"));
  EXPECT_THAT(only(Kind::kAligned, small(kernel_of("  const double v = *(const double*)(in + i / 2 * 2 + "
                                                   "(i == 3 ? -1 : 0));\n  out[i] = (float)v;"))),
              HasSubstr("not a multiple of 8"));
}

// Whatever lies there: another buffer that may be written, notes of the watch, stacks, the thread's own too.
TEST_F(HostCudaRuns, WhatLiesFarOutsideIsFoundAtEveryDistance) {
  constexpr int64_t kElements = 1 << 14;
  HostCudaKernel kernel = small(
      "__global__ void k(float* in, float* out) {\n  const int i = threadIdx.x;\n"
      "  out[i] = 1;\n  if (i == 0) out[(long)in[1] * (long)in[0]] = 1;\n}\n");
  for (HostCudaArgument& a : kernel.arguments)
    a = {.name = a.name,
         .type = "float*",
         .elements = kElements,
         .element_bytes = 4,
         .role = BufferRole::kInOut};
  const Result<HostCudaProgram> program = build_host_cuda(kernel);
  ASSERT_TRUE(program.is_ok()) << program.message();
  int tried = 0;
  for (const float sign : {-1.0f, 1.0f})
    for (float distance = kElements; distance < float{1 << 24}; distance *= 1.15f, ++tried) {
      std::vector<float> in(kElements);
      in[0] = std::floor(distance);
      in[1] = sign;
      const Result<HostCudaRun> ran =
          run_host_program(*program, kernel, {bytes_of(in), bytes_of(std::vector<float>(kElements))},
                           std::chrono::seconds(60));
      ASSERT_TRUE(ran.is_ok()) << ran.message();
      EXPECT_NE(ran->fault(), "") << sign * in[0] << " elements from its begin";
    }
  EXPECT_GT(tried, 80);
}

TEST_F(HostCudaRuns, AnInputMayNotBeWritten) {
  EXPECT_THAT(only(Kind::kInput, small(kernel_of("  ((float*)in)[i] = 2;\n  out[i] = in[i];"))),
              AllOf(HasSubstr("writes to in, which is an input, at byte 252"), HasSubstr("k.cu:3")));
}

TEST_F(HostCudaRuns, BarriersInDivergentCode) {
  const std::string two =
      only(Kind::kDivergent, small(kernel_of("  out[i] = in[i];\n  if (i < 32)\n    __syncthreads();\n"
                                             "  else\n    __syncthreads();")));
  EXPECT_THAT(two, HasSubstr("k.cu:5"));
  EXPECT_THAT(two, HasSubstr("k.cu:7"));
  EXPECT_THAT(only(Kind::kStuck,
                   small(kernel_of("  if (i < 16) __syncthreads();\n  __syncwarp();\n  out[i] = in[i];"))),
              HasSubstr("for ever"));
  // Devices of sm_70 and newer wait for those that have not ended; a note says that older ones hang.
  EXPECT_THAT(
      only(Kind::kNote, small(kernel_of("  out[i] = in[i];\n  if (i < 32) return;\n  __syncthreads();"))),
      HasSubstr("when others of their block have ended"));
}

TEST_F(HostCudaRuns, ShufflesOfLanesThatAreNotThere) {
  EXPECT_THAT(
      only(Kind::kWarp, small(kernel_of("  float x = 0;\n  if (i % 32 < 16)\n    x = __shfl_sync(0xffffu, "
                                        "in[i], 20);\n  out[i] = x;"))),
      HasSubstr("reads of a lane that does not take part"));
  EXPECT_THAT(only(Kind::kWarp, small(kernel_of("  out[i] = __ballot_sync(0xfffffffeu, 1);"))),
              HasSubstr("is not in the mask of its own call at k.cu:3"));
}

// What the host's compiler gets of each declaration.
TEST(HostCudaText, SharedMemory) {
  EXPECT_EQ(for_host_compiler("static __shared__ int a[4];"), "       __shared__ int a[4];");
  EXPECT_EQ(for_host_compiler("__shared__ static int a[4];"), "__shared__        int a[4];");
  EXPECT_EQ(for_host_compiler("extern const __shared__ __align__(16) float a[];"),
            "       const            __align__(16) float (&a)[] = host_cuda::DynamicShared();");
  EXPECT_EQ(for_host_compiler("extern __shared__ float a [ ] ;\nint b;"),
            "                  float (&a) [ ] = host_cuda::DynamicShared() ;\nint b;");
  for (const char* same :
       {"my__shared__ int a[];", "extern __shared__ float a[4];", "extern __shared__ int n;",
        "extern int b[]; __shared__ int a[2];", "extern __shared__"})
    EXPECT_EQ(for_host_compiler(same), same);
  const std::string long_one = "extern __shared__ " + std::string(2'000'000, 'a') + "[];";
  EXPECT_EQ(for_host_compiler(long_one), long_one);
}

std::string refusal(const HostCudaKernel& kernel,
                    std::chrono::milliseconds deadline = std::chrono::seconds(60)) {
  const Result<HostCudaRun> made = run_host_cuda(kernel, {bytes_of(ramp())}, deadline);
  EXPECT_FALSE(made.is_ok());
  if (!made.is_ok()) {
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidConfig);
  }
  return made.is_ok() ? "" : made.message();
}

TEST_F(HostCudaRuns, WhatCannotRunSaysWhy) {
  EXPECT_THAT(refusal(small(kernel_of("  out[i] = oops;"))), HasSubstr("k.cu:3:"));
  EXPECT_THAT(refusal(small(kernel_of("  for (volatile int x = 0;;) x = i;")), std::chrono::seconds(1)),
              HasSubstr("did not end within 1 s"));
  HostCudaKernel kernel = small(kernel_of("  out[i] = in[i];"));
  kernel.block = {64, 32, 1};
  EXPECT_EQ(refusal(kernel), "a block has 2048 threads, expected at most 1024");
  kernel.block = {0, 1, 1};
  EXPECT_EQ(refusal(kernel), "block.x is 0, expected 1 to 1024");
  kernel = small(kernel_of("  out[i] = in[i];"), 1, 300'000);
  EXPECT_THAT(refusal(kernel), HasSubstr("300000 bytes, expected 0 to 232448"));
  EXPECT_THAT(
      only(Kind::kShared,
           small(kernel_of(
               "  __shared__ float s[16384];\n  s[i] = in[i];\n  __syncthreads();\n  out[i] = s[63 - i];"))),
      HasSubstr("a block may have 49152"));
}

}  // namespace
}  // namespace tuner
