// The kernels that check operands on a GPU: their text, run on this host thread by thread, and compiled by
// NVRTC.
#include "measure_server/runner/check_kernels.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/nvrtc.h"
#include "compiler_core/codegen_cuda/sass/sass.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

constexpr char kBefore[] = R"(#include <functional>

#include "host_cuda_shim.h"
#undef __CUDA_ARCH__  // probes of a device's own clocks are left out
// float16 is that of 0 and 1 here.
#define asm(...) f = __int_as_float(x.bits == 0x3C00 ? 0x3F800000 : 0)
)";
constexpr char kBehind[] = R"(
static std::function<void()> body;
static const char* run(unsigned x, unsigned y, std::function<void()> kernel) {
  body = kernel;
  const unsigned grid[] = {x, y, 1}, block[] = {256, 1, 1};
  return host_cuda::fault_of(grid, block, 0, [] { body(); });
}
extern "C" const char* sums(int type, void* out, double* rows, double* columns, u64 count, u64 n, int x, int y) {
  return run(x, y, [&] {
    if (type == 0) tuner_check_sums_f32((float*)out, rows, columns, count, n);
    if (type == 1) tuner_check_sums_bf16((Brain*)out, rows, columns, count, n);
    if (type == 2) tuner_check_sums_i8((signed char*)out, rows, columns, count, n);
    if (type == 3) tuner_check_sums_i32((int*)out, rows, columns, count, n);
  });
}
extern "C" const char* samples(float* out, u64* indices, double* values, u64 n) {
  return run((unsigned)(n + 255) / 256, 1, [&] { tuner_check_samples_f32(out, indices, values, n); });
}
extern "C" const char* equal(unsigned char* a, unsigned char* b, u64 bytes, unsigned* different) {
  return run(3, 1, [&] { tuner_check_equal(a, b, bytes, different); });
}
extern "C" const char* hash(unsigned* a, u64 bytes, u64* found) {
  return run(3, 1, [&] { tuner_check_hash(a, bytes, found); });
}
)";

class CheckKernels : public testing::Test {
 protected:
  using u64 = unsigned long long;
  static void SetUpTestSuite() {
    if (access(TUNER_CXX, X_OK) != 0) return;
    folder = new TemporaryFolder;
    const std::string base = (folder->path() / "checks").string();
    std::ofstream(base + ".cpp") << kBefore << check_kernels_source() << kBehind;
    const std::string command =
        str(TUNER_CXX " " TUNER_SHIM_FLAGS " ", base, ".cpp -o ", base, ".so " TUNER_SHIM_LIBRARY);
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    handle = dlopen((base + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << dlerror();
  }
  static void TearDownTestSuite() {
    if (handle != nullptr) dlclose(handle);
    delete folder;
  }
  void SetUp() override {
    if (handle == nullptr) GTEST_SKIP() << "no C++ compiler at " TUNER_CXX;
  }
  template <class F>
  static F* function(const char* name) {
    return reinterpret_cast<F*>(dlsym(handle, name));
  }

  // Sums by the kernel, as device_checks.cpp launches it, are those of a plain loop.
  template <class T, class Value>
  void expect_sums(int type, u64 count, u64 columns, const T& element, const Value& value) {
    const u64 rows = (count + columns - 1) / columns;
    std::vector<std::invoke_result_t<T>> out(count);
    std::vector<double> found_rows(rows), found_columns(columns), right_rows(rows), right_columns(columns);
    for (u64 i = 0; i < count; ++i) {
      out[i] = element();
      right_rows[i / columns] += value(out[i]);
      right_columns[i % columns] += value(out[i]);
    }
    using Sums = const char*(int, void*, double*, double*, u64, u64, int, int);
    ASSERT_EQ(function<Sums>("sums")(type, out.data(), found_rows.data(), found_columns.data(), count,
                                     columns, static_cast<int>((columns + kSumsColumns - 1) / kSumsColumns),
                                     static_cast<int>((rows + kSumsRows - 1) / kSumsRows)),
              nullptr);
    for (u64 r = 0; r < rows; ++r) ASSERT_NEAR(found_rows[r], right_rows[r], 1e-9) << "row " << r;
    for (u64 c = 0; c < columns; ++c) ASSERT_NEAR(found_columns[c], right_columns[c], 1e-9) << "column " << c;
  }

  static TemporaryFolder* folder;
  static void* handle;
};
TemporaryFolder* CheckKernels::folder = nullptr;
void* CheckKernels::handle = nullptr;

TEST_F(CheckKernels, SumsAreThoseOfAPlainLoop) {
  const RandomSeed seed(3);
  std::mt19937_64 random(seed);
  const auto real = [&] { return std::uniform_real_distribution<float>(-1, 1)(random); };
  const auto as_is = [](auto x) { return static_cast<double>(x); };
  // More and fewer than a block's rows and columns, and a last row that is shorter.
  for (const auto& [count, columns] : {std::pair<u64, u64>{1, 1},
                                       {700, 700},
                                       {700, 1},
                                       {130 * 300, 300},
                                       {130 * 300 - 77, 300},
                                       {64 * 256, 256}})
    expect_sums(0, count, columns, real, as_is);
  expect_sums(
      1, 5000, 70, [&] { return static_cast<uint16_t>(0x3F80 + random() % 64); },
      [](uint16_t bits) {
        const uint32_t wide = static_cast<uint32_t>(bits) << 16;
        float x = 0;
        std::memcpy(&x, &wide, sizeof x);
        return static_cast<double>(x);
      });
  expect_sums(
      2, 5000, 70, [&] { return static_cast<int8_t>(random()); }, as_is);
  expect_sums(
      3, 5000, 70, [&] { return static_cast<int32_t>(random() % 1000) - 500; }, as_is);
}

TEST_F(CheckKernels, ANanReachesItsRowAndItsColumn) {
  std::vector<float> out(100 * 300, 1);
  out[57 * 300 + 123] = std::nanf("");
  std::vector<double> rows(100), columns(300);
  using Sums = const char*(int, void*, double*, double*, u64, u64, int, int);
  ASSERT_EQ(function<Sums>("sums")(0, out.data(), rows.data(), columns.data(), out.size(), 300, 2, 2),
            nullptr);
  for (size_t r = 0; r < rows.size(); ++r) EXPECT_EQ(std::isnan(rows[r]), r == 57);
  for (size_t c = 0; c < columns.size(); ++c) EXPECT_EQ(std::isnan(columns[c]), c == 123);
}

TEST_F(CheckKernels, SamplesAreReadWhereTheyLie) {
  std::vector<float> out(1000);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i) / 4;
  std::vector<u64> indices = {0, 7, 999, 500};
  std::vector<double> values(indices.size());
  ASSERT_EQ((function<const char*(float*, u64*, double*, u64)>("samples")(out.data(), indices.data(),
                                                                          values.data(), 4)),
            nullptr);
  EXPECT_EQ(values, (std::vector<double>{0, 1.75, 249.75, 125}));
}

// Sizes around a vector of 16 bytes and around what all threads read in one step.
TEST_F(CheckKernels, AnyChangedByteIsSeen) {
  auto* equal = function<const char*(unsigned char*, unsigned char*, u64, unsigned*)>("equal");
  auto* hash = function<const char*(unsigned char*, u64, u64*)>("hash");
  for (const size_t bytes :
       {size_t{1}, size_t{15}, size_t{16}, size_t{37}, size_t{3 * 256 * 16}, size_t{12'345}}) {
    // In words of 16 bytes, for their alignment.
    std::vector<long double> storage_a(bytes / 16 + 1), storage_b(bytes / 16 + 1);
    auto *a = reinterpret_cast<unsigned char*>(storage_a.data()),
         *b = reinterpret_cast<unsigned char*>(storage_b.data());
    for (size_t i = 0; i < bytes; ++i) a[i] = b[i] = static_cast<unsigned char>(i * 31 + i / 256);
    const auto hash_of = [&](unsigned char* p) {
      u64 found = 0;
      EXPECT_EQ(hash(p, bytes, &found), nullptr);
      return found;
    };
    unsigned different = 0;
    ASSERT_EQ(equal(a, b, bytes, &different), nullptr);
    EXPECT_EQ(different, 0u);
    const u64 before = hash_of(a);
    EXPECT_EQ(hash_of(b), before);
    for (const size_t at : {size_t{0}, bytes / 2, bytes - 1}) {
      b[at] ^= 4;
      different = 0;
      ASSERT_EQ(equal(a, b, bytes, &different), nullptr);
      EXPECT_EQ(different, 1u) << at << " of " << bytes;
      EXPECT_NE(hash_of(b), before) << at << " of " << bytes;
      b[at] ^= 4;
    }
    if (bytes < 37) continue;
    std::swap(b[0], b[8]);  // the same bytes in other places
    EXPECT_NE(hash_of(b), before);
  }
}

TEST(CheckKernelsOnGpus, AreCompiledForEveryArchitecture) {
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  for (const char* arch : {"sm_80", "sm_89", "sm_90a", "sm_100"}) {
    const Result<cuda::Compiled> compiled = cuda::compile_source(
        check_kernels_source(), "checks.cu", {str("--gpu-architecture=", arch), "--std=c++17"});
    ASSERT_TRUE(compiled.is_ok()) << arch << ": " << compiled.message();
    const auto kernels = read_cubin(compiled->cubin);
    ASSERT_TRUE(kernels.is_ok()) << kernels.message();
    std::vector<std::string> names;
    for (const CubinKernel& k : *kernels) {
      names.push_back(k.name);
      EXPECT_EQ(k.stack_bytes, 0) << arch << " " << k.name;
    }
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt32, DType::kInt8,
                              DType::kUInt8, DType::kBool}) {
      EXPECT_THAT(names, testing::Contains(sums_kernel(dtype)));
      EXPECT_THAT(names, testing::Contains(samples_kernel(dtype)));
    }
    EXPECT_THAT(names, testing::IsSupersetOf({kEqualKernel, kHashKernel, kFfmaKernel, kMmaBrainKernel,
                                              kMmaTf32Kernel, kMmaByteKernel, kClocksFfma, kClocksLds128,
                                              kClocksShared, kClocksL1, kClocksL2, kLinksKernel}));
    EXPECT_LT(compiled->cubin.size(), 200'000u) << "every pack has it";
  }
}

// The probes' loops do what is counted for them, and nothing but that: a peak is of what is measured.
TEST(CheckKernelsOnGpus, ProbesComputeAsManyProductsARoundAsTheyAreCountedFor) {
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Result<cuda::Compiled> compiled = cuda::compile_source(
        check_kernels_source(), "checks.cu", {str("--gpu-architecture=", arch), "--std=c++17"});
    ASSERT_TRUE(compiled.is_ok()) << compiled.message();
    const auto codes = sass::read_kernel_code(compiled->cubin);
    ASSERT_TRUE(codes.is_ok()) << codes.message();
    struct Probe {
      const char* kernel;
      sass::Op op;
      int64_t a_round;
    };
    for (const auto& [kernel, op, a_round] : {Probe{kFfmaKernel, sass::Op::kFfma, kFfmaPerRound},
                                              Probe{kMmaBrainKernel, sass::Op::kMma, kMmaPerRound},
                                              Probe{kMmaTf32Kernel, sass::Op::kMma, kMmaPerRound},
                                              Probe{kMmaByteKernel, sass::Op::kMma, kMmaPerRound}}) {
      SCOPED_TRACE(str(arch, " ", kernel));
      const auto code = std::ranges::find(*codes, kernel, &sass::KernelCode::name);
      ASSERT_NE(code, codes->end());
      ASSERT_GE(code->hot, 0);
      const sass::Mix& loop = code->hot_mix();
      EXPECT_GE(loop[op], a_round);
      EXPECT_EQ(loop[op] % a_round, 0) << "whole rounds";
      EXPECT_LT(loop.all(), 1.05 * loop[op]) << "nothing else is in the way";
      EXPECT_EQ(loop.shared_loads() + loop.global_loads() + loop[sass::Op::kLocalLoad], 0);
    }
  }
}

// What is counted is what the loop has: so many loads of this width, and no other work on memory.
TEST(CheckKernelsOnGpus, ClockedLoopsHaveAsManyLoadsARoundAsTheyAreCountedFor) {
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  for (const char* arch : {"sm_80", "sm_90a", "sm_100"}) {
    const Result<cuda::Compiled> compiled = cuda::compile_source(
        check_kernels_source(), "checks.cu", {str("--gpu-architecture=", arch), "--std=c++17"});
    ASSERT_TRUE(compiled.is_ok()) << compiled.message();
    const auto codes = sass::read_kernel_code(compiled->cubin);
    ASSERT_TRUE(codes.is_ok()) << codes.message();
    struct Probe {
      const char* kernel;
      sass::Op op;
      int64_t a_round;
    };
    for (const auto& [kernel, op, a_round] : {Probe{kClocksFfma, sass::Op::kFfma, kFfmaPerRound},
                                              Probe{kClocksLds128, sass::Op::kLds128, kClockedLoads},
                                              Probe{kClocksShared, sass::Op::kLds32, kClockedLoads},
                                              Probe{kClocksL1, sass::Op::kLdg64, kClockedLoads},
                                              Probe{kClocksL2, sass::Op::kLdg64, kClockedLoads}}) {
      SCOPED_TRACE(str(arch, " ", kernel));
      const auto code = std::ranges::find(*codes, kernel, &sass::KernelCode::name);
      ASSERT_NE(code, codes->end());
      ASSERT_GE(code->hot, 0);
      const sass::Mix& loop = code->hot_mix();
      EXPECT_GE(loop[op], a_round);
      EXPECT_EQ(loop[op] % a_round, 0) << "whole rounds";
      const int loads = loop.shared_loads() + loop.global_loads() + loop[sass::Op::kLocalLoad];
      EXPECT_EQ(loads, op == sass::Op::kFfma ? 0 : loop[op]);
      EXPECT_EQ(loop.shared_stores(), 0);
    }
  }
}

}  // namespace
}  // namespace tuner
