// Targets as text: one spelling for one device, and errors that name the word they stumbled on.
#include "compiler_core/target.h"

#include <gtest/gtest.h>

#include "compiler_core/host_spelling.h"

namespace tuner {
namespace {

std::string canonical(std::string_view text) {
  const Result<Target> t = parse_target(text);
  return t.is_ok() ? t->name() : "error: " + t.message();
}

TEST(Target, NameIsCanonical) {
  EXPECT_EQ(canonical("llvm -mcpu=haswell"), "llvm -mcpu=haswell -threads=1");
  EXPECT_EQ(canonical("llvm   -threads=2 -mcpu=haswell "), "llvm -mcpu=haswell -threads=2");
  EXPECT_EQ(canonical("llvm -mcpu=haswell -mtriple=x86_64-linux-gnu"), "llvm -mcpu=haswell -threads=1");
  EXPECT_EQ(canonical("llvm -mattr=+fp16,-sve,+dotprod -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"),
            "llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -mattr=+dotprod,+fp16,-sve -threads=1");
  EXPECT_EQ(canonical("llvm -emulated -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"),
            "llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -threads=1 -emulated");
  EXPECT_EQ(canonical("cuda -arch=sm_90a"), "cuda -arch=sm_90a");
  EXPECT_EQ(canonical("cuda -device=H200 -arch=sm_90a"), "cuda -arch=sm_90a -device=h200");
  EXPECT_EQ(canonical("cuda -emulated -device=rtx-4090 -arch=sm_89"),
            "cuda -arch=sm_89 -device=rtx4090 -emulated");
}

TEST(Target, NameParsesBackToItself) {
  for (const char* text :
       {"llvm -mcpu=znver5 -threads=16", "llvm -mcpu=generic -mtriple=aarch64-linux-gnu -threads=4",
        "llvm -mcpu=skylake -mattr=+avx512f -threads=1",
        "llvm -mcpu=cortex-a76 -mtriple=aarch64-linux-gnu -mattr=+i8mm -threads=2 -emulated",
        "cuda -arch=sm_80", "cuda -arch=sm_80 -emulated", "cuda -arch=sm_90 -device=h100-pcie",
        "cuda -arch=sm_120 -device=a-card-of-next-year"})
    EXPECT_EQ(canonical(text), text);
}

TEST(Target, KnowsWhatTemplatesAsk) {
  const Target haswell = *parse_target("llvm -mcpu=haswell");
  EXPECT_EQ(haswell.f32_lanes(), 8);
  EXPECT_EQ(haswell.vector_registers(), 16);
  EXPECT_TRUE(haswell.is_x86());
  const Target zen5 = *parse_target("llvm -mcpu=znver5");
  EXPECT_EQ(zen5.f32_lanes(), 16);
  EXPECT_EQ(zen5.vector_registers(), 32);
  EXPECT_EQ(zen5.l1d_bytes, 48 << 10);
  EXPECT_EQ(zen5.l2_bytes, 1 << 20);
  EXPECT_EQ(zen5.l3_bytes, 32 << 20);
  const Target sapphire = *parse_target("llvm -mcpu=sapphirerapids");
  EXPECT_EQ(sapphire.l1d_bytes, 48 << 10);
  EXPECT_EQ(sapphire.l2_bytes, 2 << 20);
  EXPECT_EQ(sapphire.l3_bytes, 30 << 20);
  const Target arm = *parse_target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu");
  EXPECT_FALSE(arm.is_x86());
  EXPECT_EQ(arm.f32_lanes(), 4);
  EXPECT_EQ(arm.vector_registers(), 32);
  EXPECT_TRUE(parse_target("cuda -arch=sm_90a")->is_cuda());
}

TEST(Target, FeaturesChangeTheVectors) {
  EXPECT_EQ(parse_target("llvm -mcpu=skylake -mattr=+avx512f")->f32_lanes(), 16);
  EXPECT_EQ(parse_target("llvm -mcpu=znver4 -mattr=-avx512f")->f32_lanes(), 8);
  EXPECT_EQ(parse_target("llvm -mcpu=znver4 -mattr=-avx512f")->vector_registers(), 16);
}

TEST(Target, AnUnlistedCpuHasTheDefaults) {
  const Target t = *parse_target("llvm -mcpu=some-new-cpu");
  EXPECT_EQ(t.name(), "llvm -mcpu=some-new-cpu -threads=1");
  EXPECT_EQ(t.f32_lanes(), 4);
  EXPECT_EQ(t.vector_registers(), 16);
  EXPECT_EQ(t.l1d_bytes, 32 << 10);
  EXPECT_EQ(t.l2_bytes, 1024 << 10);
  EXPECT_EQ(t.l3_bytes, 8192 << 10);
}

TEST(Target, ErrorsNameTheWord) {
  const std::string usage =
      "expected \"cpu\", \"cpu -threads=N\", \"llvm -mcpu=NAME [-mtriple=T] [-mattr=+a,-b] [-threads=N] "
      "[-emulated]\", \"cuda -arch=sm_NN [-device=CLASS]\" or \"npu\"";
  EXPECT_EQ(canonical(""), "error: target: empty; " + usage);
  EXPECT_EQ(canonical("gpu"), "error: target: unknown kind \"gpu\"; " + usage);
  EXPECT_EQ(canonical("llvm -mcpu=haswell -cores=2"), "error: target: unknown option \"-cores=2\"; " + usage);
  EXPECT_EQ(canonical("llvm -mcpu=haswell -mcpu=skylake"), "error: target: -mcpu is given twice");
  EXPECT_EQ(canonical("llvm -mcpu="), "error: target: -mcpu needs a value: -mcpu=...");
  EXPECT_EQ(canonical("llvm -threads=2"),
            "error: target: llvm needs -mcpu=NAME, e.g. llvm -mcpu=haswell -threads=2");
  EXPECT_EQ(canonical("llvm -mcpu=haswell -threads=0"),
            "error: target: -threads: expected a number in 1..4096, found \"0\"");
  EXPECT_EQ(canonical("llvm -mcpu=haswell -threads=4096"), "llvm -mcpu=haswell -threads=4096");
  EXPECT_EQ(canonical("llvm -mcpu=haswell -threads=4097"),
            "error: target: -threads: expected a number in 1..4096, found \"4097\"");
  EXPECT_EQ(canonical("llvm -mcpu=haswell -threads=2x"),
            "error: target: -threads: expected a number in 1..4096, found \"2x\"");
  EXPECT_EQ(canonical("llvm -mcpu=a;b"), "error: target: -mcpu: \"a;b\" is not a name");
  EXPECT_EQ(canonical("llvm -mcpu=haswell -mattr=avx2"),
            "error: target: -mattr: expected +FEATURE or -FEATURE, found \"avx2\"");
  EXPECT_EQ(canonical("llvm -mcpu=haswell -mattr=+avx2,-avx2"),
            "error: target: -mattr: +avx2 and -avx2 contradict each other");
  EXPECT_EQ(canonical("cuda"),
            "error: target: cuda needs -arch=sm_NN, e.g. cuda -arch=sm_90a, or -arch=native for the GPU of "
            "this host");
  EXPECT_EQ(canonical("cuda -arch=sm_90b").substr(0, 46), "error: target: -arch: found \"sm_90b\", expected");
  EXPECT_EQ(canonical("cuda -arch=sm_89a").substr(0, 46), "error: target: -arch: found \"sm_89a\", expected");
  EXPECT_EQ(canonical("cuda -arch=sm_100f"), "cuda -arch=sm_100f");
  EXPECT_EQ(canonical("cuda -arch=sm_80 -emulated=1"),
            "error: target: unknown option \"-emulated=1\"; " + usage);
  EXPECT_EQ(canonical("llvm -mcpu=haswell -emulated -emulated"), "error: target: -emulated is given twice");
  EXPECT_EQ(canonical("cuda -arch=hopper"), "error: target: -arch: expected sm_NN, found \"hopper\"");
  EXPECT_EQ(canonical("cuda -arch=sm_90 -device="), "error: target: -device needs a value: -device=...");
  EXPECT_EQ(
      canonical("cuda -arch=sm_90 -device=native"),
      "error: target: -device=native is the class of this host's GPU; expected beside -arch=native, in a "
      "tuner command");
  for (const std::string word : {"gpu", "80gb", "NVIDIA"})
    EXPECT_EQ(canonical("cuda -arch=sm_90 -device=" + word),
              str("error: target: -device: found \"", word,
                  "\", expected a class of GPUs, such as h200 of an \"NVIDIA H200\""));
  EXPECT_EQ(canonical("cuda -arch=sm_90 -device=h/200"), "error: target: -device: \"h/200\" is not a name");
  EXPECT_EQ(canonical("cuda -arch=sm_80 -device=h200"),
            "error: target: -device=h200 is an sm_90, found -arch=sm_80");
  EXPECT_EQ(canonical("cuda -arch=sm_90a -device=a100-pcie"),
            "error: target: -device=a100-pcie is an sm_80, found -arch=sm_90a");
  EXPECT_EQ(canonical("llvm -mcpu=haswell -device=h200"),
            "error: target: unknown option \"-device=h200\"; " + usage);
  EXPECT_EQ(canonical("cuda -mcpu=haswell"), "error: target: unknown option \"-mcpu=haswell\"; " + usage);
}

TEST(Target, AClassOfDevicesIsOneOfAnyDevice) {
  const auto any = [](const char* text) {
    const Target t = *parse_target(text);
    return t.family->any_device(t);
  };
  EXPECT_EQ(any("cuda -arch=sm_90a -device=h200"), "cuda -arch=sm_90a");
  EXPECT_EQ(any("cuda -arch=sm_90a -device=h200 -emulated"), "cuda -arch=sm_90a -emulated");
  EXPECT_EQ(any("cuda -arch=sm_90a"), "");
  EXPECT_EQ(any("llvm -mcpu=haswell"), "");
  const Target h100 = *parse_target("cuda -arch=sm_90a -device=h100"),
               h200 = *parse_target("cuda -arch=sm_90a -device=h200"),
               open = *parse_target("cuda -arch=sm_90a"),
               a100 = *parse_target("cuda -arch=sm_80 -device=a100");
  const TargetFamily& gpus = cuda_family();
  EXPECT_TRUE(gpus.near(h100, h200) && gpus.near(h100, open) && gpus.near(open, h200));
  EXPECT_FALSE(gpus.near(h100, a100));
  EXPECT_FALSE(gpus.same_processor(h100, h200) || gpus.same_processor(h100, open));
  EXPECT_EQ(gpus.difference(h200, h100), "tuned for the device class h100");
  EXPECT_EQ(gpus.difference(h200, open), "tuned for a device that is not named");
  EXPECT_EQ(gpus.difference(h200, a100), "tuned for sm_80, the device class a100");
  EXPECT_EQ(gpus.difference(h200, h200), "");
  EXPECT_EQ(gpus.device_class("NVIDIA H200 sm_90 | 132 multiprocessors | driver CUDA 13.0"), "h200");
  EXPECT_EQ(cpu_family().device_class("AMD EPYC | 2 CPUs"), "");
}

TEST(Target, TheHostIsNotKnownHere) {
  EXPECT_EQ(parse_target("cpu").status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(parse_target("cpu").message().find("means this host"), std::string::npos);
  EXPECT_EQ(
      canonical("cuda -arch=native"),
      "error: target: -arch: expected sm_NN, found \"native\", which is the GPU of the host that resolves "
      "it: a tuner command, not a daemon or a record");
  for (const char* text : {"cpu", "cpu -threads=2", "cuda -arch=native", "cuda  -arch=native",
                           "cuda -arch=native -device=native", "cuda -device=native  -arch=native"})
    EXPECT_TRUE(means_host(text)) << text;
  EXPECT_FALSE(means_class_of_host("cuda -arch=native"));
  EXPECT_TRUE(means_class_of_host("cuda -arch=native -device=native"));
  for (const char* text :
       {"cuda -arch=sm_80", "cuda -arch=native -emulated", "cuda -arch=native -device=h200",
        "cuda -arch=sm_90 -device=native", "cpus", "native", ""})
    EXPECT_FALSE(means_host(text)) << text;
}

}  // namespace
}  // namespace tuner
