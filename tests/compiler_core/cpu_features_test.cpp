// What CPUs can do: names from features, what code needs, what runs where.
#include "compiler_core/codegen/cpu_features.h"
#include "compiler_core/codegen/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen/library.h"
#include "compiler_core/runtime/cpu_instructions.h"
#include "compiler_core/runtime/host_cpu.h"
#include "compiler_core/runtime/tuner_runtime.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

CpuFeatures features_of(const std::string& target) {
  const Result<CpuFeatures> found = needed_features(parse_target(target).value());
  EXPECT_TRUE(found) << found.message();
  return found ? *found : CpuFeatures();
}

// The daemon asks the table of targets, which has no LLVM; it must say what LLVM says, of every CPU.
TEST(CpuFeatures, TableOfTargetsKnowsEveryVectorWidth) {
  const std::vector<std::string> names = x86_cpu_names();
  ASSERT_THAT(names, AllOf(Contains("haswell"), Contains("znver5"), Contains("x86-64-v4")));
  for (const std::string& name : names) {
    const Target target = parse_target("llvm -mcpu=" + name).value();
    const CpuFeatures has = features_of(target.name());
    EXPECT_EQ(target.vector_bits, has.contains("avx512f") ? 512 : has.contains("avx") ? 256 : 128) << name;
    EXPECT_EQ(target.vector_registers_n, has.contains("avx512f") ? 32 : 16) << name;
  }
}

// A CPU that calls itself by an old name and has the units of a new one.
TEST(CpuFeatures, NameComesFromFeaturesNotFromTheModel) {
  const CpuFeatures sapphire = features_of("llvm -mcpu=sapphirerapids");
  ASSERT_THAT(sapphire, AllOf(Contains("amx-tile"), Contains("avx512fp16")));
  const CpuName name = name_of_x86("rocketlake", sapphire);
  EXPECT_EQ(name.mcpu, "sapphirerapids");
  EXPECT_THAT(name.mattr, IsEmpty());
  // LLVM's guess stays where nothing is nearer.
  EXPECT_EQ(name_of_x86("emeraldrapids", sapphire).mcpu, "emeraldrapids");
  EXPECT_EQ(name_of_x86("znver5", features_of("llvm -mcpu=znver5")).mcpu, "znver5");
  // Another maker's name is never taken, though its features may be nearer.
  EXPECT_EQ(name_of_x86("znver4", sapphire).mcpu.substr(0, 5), "znver");
  EXPECT_EQ(name_of_x86("a-cpu-of-next-year", features_of("llvm -mcpu=x86-64-v3")).mcpu, "x86-64-v3");
}

TEST(CpuFeatures, WhatAVirtualMachineHidesIsTakenFromTheName) {
  CpuFeatures hidden = features_of("llvm -mcpu=sapphirerapids");
  for (const char* feature : {"amx-bf16", "amx-int8", "amx-tile", "gfni"}) hidden.erase(feature);
  const CpuName name = name_of_x86("sapphirerapids", hidden);
  Target target = parse_target("llvm -mcpu=" + name.mcpu).value();
  target.mattr = name.mattr;
  // Whatever the name: code for it uses what is there and nothing else.
  EXPECT_EQ(features_of(target.name()), hidden) << target.name();
}

// By two ways: LLVM's list for the host's name with its features, and what the kernel says of the CPU.
TEST(CpuFeatures, HostNeedsNothingThatItLacks) {
  const Target host = host_target();
  EXPECT_TRUE(runs_here(host)) << runs_here(host).message();
  EXPECT_FALSE(host.mcpu.empty());
#if defined(__x86_64__)
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line) && !line.starts_with("flags")) {
  }
  std::istringstream words(line);
  CpuFeatures kernel;
  for (std::string word; words >> word;) kernel.insert(word);
  const auto agrees = [&](const char* llvm, const char* linux) {
    EXPECT_EQ(features_of(host.name()).contains(llvm), kernel.contains(linux))
        << llvm << " of " << host.name();
  };
  agrees("avx2", "avx2");
  agrees("fma", "fma");
  agrees("f16c", "f16c");
  agrees("avx512f", "avx512f");
  agrees("avx512vnni", "avx512_vnni");
  agrees("avx512bf16", "avx512_bf16");
  agrees("avx512fp16", "avx512_fp16");
  agrees("amx-tile", "amx_tile");
#endif
}

TEST(CpuFeatures, OlderCodeRunsOnNewerCpus) {
  const Target newer = parse_target("llvm -mcpu=sapphirerapids").value();
  const CpuFeatures has = features_of(newer.name());
  for (const char* older : {"haswell", "skylake-avx512", "x86-64-v3", "sapphirerapids"})
    EXPECT_TRUE(runs_on(parse_target(std::string("llvm -mcpu=") + older).value(), newer, has, "it")) << older;
  const Target older = parse_target("llvm -mcpu=haswell").value();
  EXPECT_THAT(runs_on(newer, older, features_of(older.name()), "this CPU").message(),
              AllOf(HasSubstr("this CPU has no amx-bf16"), HasSubstr("avx512f"),
                    HasSubstr("which its code may use")));
  // What -mattr takes away is not needed, what it adds is.
  EXPECT_TRUE(runs_on(parse_target("llvm -mcpu=skylake-avx512 -mattr=-avx512f").value(), older,
                      features_of(older.name()), "it"));
  EXPECT_THAT(runs_on(parse_target("llvm -mcpu=haswell -mattr=+avx512bf16").value(), older,
                      features_of(older.name()), "it")
                  .message(),
              HasSubstr("avx512bf16"));
}

TEST(CpuFeatures, OtherArchitecturesRunOnlyOnThemselves) {
  const Target arm = parse_target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu").value();
  const Target intel = parse_target("llvm -mcpu=haswell").value();
  EXPECT_TRUE(runs_on(arm, arm, {}, "it"));
  EXPECT_THAT(runs_on(arm, intel, features_of(intel.name()), "this CPU").message(),
              HasSubstr("this CPU is \"llvm -mcpu=haswell -threads=1\", another architecture"));
  EXPECT_FALSE(runs_on(intel, arm, {}, "it"));
}

TEST(CpuFeatures, UnitsThatMattrAddsMustBeThere) {
  const auto arm = [](const char* rest) {
    return parse_target(str("llvm -mtriple=aarch64-linux-gnu ", rest)).value();
  };
  const Target plain = arm("-mcpu=cortex-a55"), more = arm("-mcpu=cortex-a55 -mattr=+i8mm"),
               less = arm("-mcpu=cortex-a55 -mattr=-dotprod");
  EXPECT_TRUE(runs_on(plain, more, {}, "it"));
  EXPECT_TRUE(runs_on(less, plain, {}, "it"));
  EXPECT_TRUE(runs_on(arm("-mcpu=cortex-a55 -mattr=+dotprod"), plain, {}, "it"))
      << "the name says so already";
  EXPECT_THAT(runs_on(more, plain, {}, "it").message(), HasSubstr("it has no i8mm, which its code may use"));
  EXPECT_THAT(runs_on(plain, less, {}, "it").message(), HasSubstr("it has no dotprod"));
}

// The table of cores, which workers without LLVM ask, must say what LLVM says, of every name in it.
TEST(CpuFeatures, TableOfArmCoresKnowsTheirUnits) {
  for (const std::string& name : arm_cpu_names()) {
    const Result<CpuFeatures> by_llvm =
        needed_features(parse_target(str("llvm -mcpu=", name, " -mtriple=aarch64-linux-gnu")).value());
    ASSERT_TRUE(by_llvm) << by_llvm.message();
    const std::vector<std::string> by_table = units_of_arm(name);
    EXPECT_EQ(*by_llvm, CpuFeatures(by_table.begin(), by_table.end())) << name;
  }
}

// Of a library, NAME_runs_here() asks for these.
TEST(CpuFeatures, LibrariesForArmCoresNameTheirUnits) {
  const auto sets_of = [](const char* mcpu) {
    return instruction_sets(parse_target(str("llvm -mcpu=", mcpu, " -mtriple=aarch64-linux-gnu")).value())
        .value();
  };
  EXPECT_THAT(sets_of("cortex-a72"), IsEmpty());
  EXPECT_THAT(sets_of("cortex-a76"), testing::ElementsAre("dotprod", "fullfp16"));
}

// GCC's names, as its manual lists them for each CPU, without those that take an intrinsic.
TEST(CpuFeatures, LibrariesForX86NameWhatTheirCodeMayUse) {
  const auto sets_of = [](const char* mcpu) {
    return instruction_sets(parse_target(str("llvm -mcpu=", mcpu)).value()).value();
  };
  using testing::UnorderedElementsAre;
  EXPECT_THAT(sets_of("x86-64"), IsEmpty());
  EXPECT_THAT(sets_of("nehalem"), UnorderedElementsAre("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"));
  EXPECT_THAT(sets_of("ivybridge"),
              UnorderedElementsAre("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "f16c"));
  EXPECT_THAT(sets_of("haswell"), UnorderedElementsAre("movbe", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt",
                                                       "avx", "f16c", "avx2", "bmi", "bmi2", "lzcnt", "fma"));
  EXPECT_THAT(
      sets_of("znver4"),
      UnorderedElementsAre("bmi", "bmi2", "f16c", "fma", "avx", "avx2", "lzcnt", "movbe", "sse3", "sse4a",
                           "ssse3", "sse4.1", "sse4.2", "popcnt", "avx512f", "avx512dq", "avx512ifma",
                           "avx512cd", "avx512bw", "avx512vl", "avx512bf16", "avx512vbmi", "avx512vbmi2",
                           "gfni", "avx512vnni", "avx512bitalg", "avx512vpopcntdq"));
  EXPECT_THAT(sets_of("graniterapids"),
              testing::IsSupersetOf({"avx512bf16", "amx-tile", "amx-bf16", "amx-int8", "amx-fp16"}));
  EXPECT_THAT(sets_of("alderlake"), testing::Contains("avxvnni"));
}

// A name that the check of built libraries does not know would count as missing everywhere; one that it reads
// from the wrong bit would start code that this CPU does not run. LLVM reads cpuid by itself.
TEST(CpuFeatures, BuiltLibrariesKnowEverySetThatCodeForAnyCpuMayUse) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the names of x86-64";
#endif
  CpuFeatures sets;
  for (const std::string& name : x86_cpu_names()) {
    const auto of_one = instruction_sets(parse_target("llvm -mcpu=" + name).value());
    ASSERT_TRUE(of_one) << name << ": " << of_one.message();
    sets.insert(of_one->begin(), of_one->end());
  }
  EXPECT_GE(sets.size(), 40u);
  for (const std::string& set : sets)
    EXPECT_EQ(cpu_has(set), std::optional(host_cpu_features().contains(set))) << set;
}

// What is sold: operations a cycle and clocks of the makers' manuals. A limit is above, and not by orders of
// magnitude.
TEST(CpuFeatures, LimitsAreOfAllThreadsAndAboveWhatIsSold) {
  const auto ops = [](const char* target, DType dtype) {
    const Target t = parse_target(target).value();
    const auto limits = t.family->limits(t, dtype);
    EXPECT_TRUE(limits.has_value()) << target;
    EXPECT_GT(limits->call_ns, 0);
    EXPECT_LT(limits->call_ns, 1);
    return limits.has_value() ? limits->ops_per_ns : 0;
  };
  const struct {
    const char* target;
    DType dtype;
    double sold;  // GFLOP/s or GOP/s of one core
  } kCores[] = {{"llvm -mcpu=haswell", DType::kFloat32, 32 * 4.4},
                {"llvm -mcpu=znver5", DType::kFloat32, 96 * 5.7},
                {"llvm -mcpu=some-new-cpu", DType::kFloat32, 96 * 5.7},
                {"llvm -mcpu=sapphirerapids", DType::kInt8, 2048 * 3.8},
                {"llvm -mcpu=neoverse-v2 -mtriple=aarch64-linux-gnu", DType::kFloat32, 32 * 3.4}};
  for (const auto& [target, dtype, sold] : kCores) {
    EXPECT_GE(ops(target, dtype), sold) << target;
    EXPECT_LE(ops(target, dtype), 10 * sold) << target;
    EXPECT_DOUBLE_EQ(ops(str(target, " -threads=24").c_str(), dtype), 24 * ops(target, dtype)) << target;
  }
  const Target one = parse_target("llvm -mcpu=znver5").value(),
               many = parse_target("llvm -mcpu=znver5 -threads=8").value();
  EXPECT_DOUBLE_EQ(many.family->limits(many, DType::kFloat32)->bytes_per_ns,
                   8 * one.family->limits(one, DType::kFloat32)->bytes_per_ns);
  const Target sme = parse_target("llvm -mcpu=apple-m1 -mtriple=aarch64-linux-gnu -mattr=+sme").value();
  EXPECT_FALSE(sme.family->limits(sme, DType::kFloat32).has_value()) << "a unit that the table does not know";
}

TEST(CpuFeatures, ADeviceIsItsModelAndTheCachesOfACore) {
  const TargetFamily& cpus = cpu_family();
  EXPECT_EQ(cpus.device_of("AMD EPYC 26.2.1 microcode 0x1 | 2 cpus | L1d 48K L2 1024K | avx2"),
            "AMD EPYC 26.2.1, L1d 48K L2 1024K");
  EXPECT_EQ(cpus.device_of("Some CPU | 64 cpus | L1d 32K | L2 512K | avx2"), "Some CPU, L1d 32K, L2 512K");
  EXPECT_EQ(cpus.device_of("Some CPU"), "Some CPU");
  const auto same = [&](const char* a, const char* b) {
    return cpus.same_processor(parse_target(a).value(), parse_target(b).value());
  };
  EXPECT_TRUE(same("llvm -mcpu=skylake", "llvm -mcpu=skylake -threads=4"));
  EXPECT_FALSE(same("llvm -mcpu=skylake", "llvm -mcpu=skylake -mattr=+avx512f"));
  EXPECT_FALSE(same("llvm -mcpu=skylake", "llvm -mcpu=haswell"));
}

// A worker without LLVM claims nothing that LLVM does not find here.
TEST(CpuFeatures, UnitsFoundWithoutLlvmAreThere) {
  for (const std::string& unit : host_cpu_units()) EXPECT_TRUE(host_cpu_features().contains(unit)) << unit;
  const Target here = parse_target(host_cpu_target(1)).value();
  EXPECT_TRUE(runs_here(here)) << runs_here(here).message();
}

TEST(CpuFeatures, WordsThatLlvmDoesNotKnowAreRefused) {
  EXPECT_THAT(
      resolve_cpu_target("llvm -mcpu=notacpu").message(),
      AllOf(HasSubstr("-mcpu=notacpu is not a CPU that LLVM knows for x86_64"), HasSubstr("haswell")));
  EXPECT_THAT(resolve_cpu_target("llvm -mcpu=i686").message(), HasSubstr("-mcpu=i686"));
  EXPECT_THAT(resolve_cpu_target("llvm -mcpu=haswell -mattr=+nosuchunit").message(),
              HasSubstr("-mattr=+nosuchunit: LLVM knows no such feature"));
  EXPECT_THAT(resolve_cpu_target("llvm -mcpu=haswell -mtriple=aarch64-linux-gnu").message(),
              AllOf(HasSubstr("aarch64"), Not(HasSubstr("sapphire"))));
  EXPECT_THAT(resolve_cpu_target("llvm -mcpu=haswell -mtriple=no-such-machine").message(),
              HasSubstr("no-such-machine"));
  EXPECT_TRUE(resolve_cpu_target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu"));
}

TEST(CpuFeatures, ThreadsOfThisHost) {
  const Result<Target> all = resolve_cpu_target("cpu -threads=all");
  ASSERT_TRUE(all) << all.message();
  EXPECT_GE(all->threads, 1);
  // A worker reads the name, and must see the same config space.
  const Target named = parse_target(all->name()).value();
  EXPECT_EQ(all->l2_bytes, named.l2_bytes);
  EXPECT_EQ(all->l3_bytes, named.l3_bytes);
  EXPECT_TRUE(runs_here(*all)) << runs_here(*all).message();
  Target more = *all;
  ++more.threads;
  EXPECT_THAT(runs_here(more).message(), HasSubstr("wants " + std::to_string(more.threads) + " threads"));
  for (const char* wrong : {"cpu -threads=0", "cpu -threads=4097", "cpu -threads=", "cpu -threads=some",
                            "cpu -threads=2 -threads=2", "cpu -mattr=+avx2"})
    EXPECT_THAT(resolve_cpu_target(wrong).message(), HasSubstr("-threads=all")) << wrong;
}

// What templates ask is what LLVM says of every CPU, and of features added and taken away.
TEST(CpuFeatures, TilesAreKnownWithoutLlvm) {
  constexpr std::pair<DType, const char*> kWords[] = {
      {DType::kBFloat16, "amx-bf16"}, {DType::kInt8, "amx-int8"}, {DType::kFloat16, "amx-fp16"}};
  int with_tiles = 0;
  for (const std::string& cpu : x86_cpu_names())
    for (const char* attributes :
         {"", " -mattr=-amx-tile", " -mattr=-amx-int8", " -mattr=+amx-bf16,+amx-tile"}) {
      const Result<Target> target = parse_target(str("llvm -mcpu=", cpu, attributes));
      ASSERT_TRUE(target.is_ok()) << target.message();
      const Result<CpuFeatures> features = needed_features(*target);
      ASSERT_TRUE(features.is_ok()) << features.message();
      for (const auto& [dtype, word] : kWords) {
        const bool has = features->contains("amx-tile") && features->contains(word);
        EXPECT_EQ(target->has_tiles(dtype), has) << target->name() << " " << word;
        with_tiles += has ? 1 : 0;
      }
      EXPECT_FALSE(target->has_tiles(DType::kFloat32));
    }
  EXPECT_GT(with_tiles, 10);
}

TEST(CpuFeatures, MatricesInVectorsAreKnownWithoutLlvm) {
  int with_tiles = 0;
  std::vector<std::string> names = arm_cpu_names();
  // That no core tells of itself.
  for (const char* name :
       {"cortex-a520ae", "cortex-a720ae", "gb10",      "grace",     "cobalt-100", "neoverse-512tvb",
        "neoverse-v3ae", "apple-a14",     "apple-a15", "apple-a16", "apple-a17",  "apple-a18",
        "apple-a19",     "apple-m1",      "apple-m3",  "apple-m4",  "apple-m5",   "apple-s8",
        "apple-s9",      "apple-s10",     "ampere1b"})
    names.emplace_back(name);
  for (const std::string& cpu : names)
    for (const char* attributes : {"", " -mattr=-i8mm", " -mattr=-bf16", " -mattr=+bf16,+i8mm"}) {
      const Result<Target> target =
          parse_target(str("llvm -mcpu=", cpu, attributes, " -mtriple=aarch64-linux-gnu"));
      ASSERT_TRUE(target.is_ok()) << target.message();
      const Result<CpuFeatures> features = needed_features(*target);
      ASSERT_TRUE(features.is_ok()) << features.message();
      EXPECT_EQ(target->has_tiles(DType::kInt8), features->contains("i8mm")) << target->name();
      EXPECT_EQ(target->has_tiles(DType::kBFloat16), features->contains("bf16")) << target->name();
      EXPECT_EQ(target->has_bfloat16_dots(), features->contains("bf16")) << target->name();
      EXPECT_FALSE(target->has_tiles(DType::kFloat16));
      EXPECT_FALSE(target->has_tiles(DType::kFloat32));
      with_tiles += target->has_tiles(DType::kInt8) ? 1 : 0;
    }
  EXPECT_GT(with_tiles, 10);
}

TEST(CpuFeatures, DotProductsOfBfloat16AreKnownWithoutLlvm) {
  int with_dots = 0;
  for (const std::string& cpu : x86_cpu_names())
    for (const char* attributes : {"", " -mattr=-avx512bf16", " -mattr=+avx512bf16"}) {
      const Result<Target> target = parse_target(str("llvm -mcpu=", cpu, attributes));
      ASSERT_TRUE(target.is_ok()) << target.message();
      const Result<CpuFeatures> features = needed_features(*target);
      ASSERT_TRUE(features.is_ok()) << features.message();
      const bool has = features->contains("avx512bf16");
      EXPECT_EQ(target->has_bfloat16_dots(), has) << target->name();
      with_dots += has ? 1 : 0;
    }
  EXPECT_GT(with_dots, 10);
}

// What the system does not let this process use is not in the host's name.
TEST(CpuFeatures, HostHasTilesIfItMayUseThem) {
  EXPECT_EQ(host_cpu_features().contains("amx-tile"), tuner_tiles() != 0);
  EXPECT_EQ(host_target().has_tiles(DType::kBFloat16), (tuner_tiles() & TUNER_TILES_BFLOAT16) != 0);
  EXPECT_EQ(host_target().has_tiles(DType::kInt8), (tuner_tiles() & TUNER_TILES_INT8) != 0);
}

}  // namespace
}  // namespace tuner
