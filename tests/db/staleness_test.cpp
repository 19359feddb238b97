// Which records are stale, and how it is said.
#include "db/staleness.h"
#include "tests/random_seed.h"

#include <gmock/gmock.h>

#include <array>
#include <random>

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kCpu[] =
    "AMD EPYC 26.2.1 microcode 0x1000065 | 2 cpus | L1d 48K L2 1024K L3 32768K | avx2 fma avx512f";
constexpr char kGpu[] = "NVIDIA H200 sm_90 | 132 multiprocessors | 139.8 GiB L2 50.0 MiB | driver CUDA 13.0";

Present present() {
  return {.toolchains = {"llvm 22.1.8 codegen 4", "nvrtc 13.0 cuda codegen 3"},
          .hardware = kCpu,
          .harness_abi = 2,
          .template_version = [](std::string_view name) { return name == "matmul_cpu" ? 3 : 0; }};
}
Environment measured() { return {.hardware = kCpu, .toolchain = "llvm 22.1.8 codegen 4", .harness_abi = 2}; }
Staleness of(const Environment& e, int version = 3) { return staleness(e, "matmul_cpu", version, present()); }

TEST(Staleness, WhatWasMeasuredUnderThePresentIsCurrent) {
  EXPECT_FALSE(of(measured()).stale());
  EXPECT_EQ(of(measured()).reason, "");
}

TEST(Staleness, AnotherCodeGeneratorIsNamed) {
  Environment e = measured();
  e.toolchain = "llvm 22.1.8 codegen 2";
  EXPECT_THAT(of(e).causes, ElementsAre(StaleCause::kToolchain));
  EXPECT_EQ(of(e).reason, "compiler: llvm 22.1.8 codegen 2 then, llvm 22.1.8 codegen 4 now");
}

TEST(Staleness, ARaisedTemplateVersionIsNamedFirst) {
  Environment e = measured();
  e.toolchain = "llvm 21.0.0 codegen 4";
  EXPECT_THAT(of(e, 2).causes, ElementsAre(StaleCause::kTemplate, StaleCause::kToolchain));
  EXPECT_EQ(of(e, 2).reason,
            "template version: matmul_cpu version 2 then, version 3 now; "
            "compiler: llvm 21.0.0 codegen 4 then, llvm 22.1.8 codegen 4 now");
}

TEST(Staleness, ATemplateThatIsGoneIsNamed) {
  EXPECT_EQ(staleness(measured(), "matmul_x", 3, present()).reason,
            "template version: matmul_x version 3 then, no such template now");
}

TEST(Staleness, AnotherCpuModelOrCacheIsAnotherDevice) {
  Environment e = measured();
  e.hardware = "AMD EPYC 25.1.1 microcode 0x1000065 | 2 cpus | L1d 32K L2 1024K L3 32768K | avx2 fma avx512f";
  EXPECT_THAT(of(e).causes, ElementsAre(StaleCause::kHardware));
  EXPECT_EQ(of(e).reason,
            "device: AMD EPYC 25.1.1, L1d 32K L2 1024K L3 32768K then, "
            "AMD EPYC 26.2.1, L1d 48K L2 1024K L3 32768K now");
}

TEST(Staleness, MicrocodeCpuCountAndInstructionSetsDoNotMakeStale) {
  Environment e = measured();
  e.hardware = "AMD EPYC 26.2.1 microcode 0x2 | 64 cpus | L1d 48K L2 1024K L3 32768K | avx2";
  EXPECT_THAT(of(e).causes, IsEmpty());
}

TEST(Staleness, OfAGpuTheDriverCounts) {
  Present now = present();
  now.hardware = kGpu;
  Environment e{.hardware = kGpu, .toolchain = "nvrtc 13.0 cuda codegen 3", .harness_abi = 2};
  EXPECT_FALSE(staleness(e, "matmul_cpu", 3, now).stale());
  e.hardware = "NVIDIA H200 sm_90 | 132 multiprocessors | 139.8 GiB L2 50.0 MiB | driver CUDA 12.4";
  EXPECT_THAT(staleness(e, "matmul_cpu", 3, now).causes, ElementsAre(StaleCause::kHardware));
}

TEST(Staleness, TheHarnessCounts) {
  Environment e = measured();
  e.harness_abi = 1;
  EXPECT_EQ(of(e).reason, "harness ABI: 1 then, 2 now");
}

TEST(Staleness, WhatThePresentLeavesEmptyIsNotJudged) {
  Environment e{.hardware = "other", .toolchain = "llvm 1 codegen 1", .harness_abi = 7};
  EXPECT_FALSE(staleness(e, "gone", 9, Present{}).stale());
  // Nor is a GPU's record by a host without NVRTC.
  Present now = present();
  now.toolchains.pop_back();
  now.hardware = "";
  Environment gpu{.hardware = kGpu, .toolchain = "nvrtc 12.4 cuda codegen 1", .harness_abi = 2};
  EXPECT_FALSE(staleness(gpu, "matmul_cpu", 3, now).stale());
}

TEST(Staleness, ATrialWithoutARecordIsCurrent) {
  EXPECT_FALSE(staleness(TrialWithRecord{}, present()).stale());
}

// Fingerprints are text from a file: any is answered, and one compared with itself is the same device.
TEST(Staleness, AnyFingerprintIsRead) {
  const RandomSeed seed(20);
  std::mt19937 random(seed);
  const auto up_to = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n)(random); };
  constexpr std::array<std::string_view, 8> kPieces{" | ", "|",           "L1d 4K", "L2",
                                                    "",    " microcode ", "é\n",    "x"};
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (size_t n = up_to(8); n > 0; --n) text += kPieces[up_to(kPieces.size() - 1)];
    Present now = present();
    now.hardware = text;
    Environment e = measured();
    e.hardware = text;
    EXPECT_FALSE(staleness(e, "matmul_cpu", 3, now).stale()) << text;
    e.hardware = "another | L1d 1K";
    EXPECT_EQ(staleness(e, "matmul_cpu", 3, now).stale(), !text.empty()) << text;
  }
}

}  // namespace
}  // namespace tuner
