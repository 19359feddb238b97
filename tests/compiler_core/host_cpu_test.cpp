// The CPU's name without LLVM: recorded values of cores, and this host's.
#include "compiler_core/runtime/host_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler_core/base/process_emulator.h"
#include "compiler_core/runtime/tuner_model.h"
#include "compiler_core/target.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// AT_HWCAP as Linux tells it; all have floating point, NEON, cryptography and HWCAP_CPUID.
constexpr uint64_t kV8 = 0x8ff, kV82 = 0x119fff, kWithSve = 0x519fff;

TEST(HostCpu, CoresHaveTheNamesOfLlvm) {
  struct Row {
    ArmCore core;
    const char* name;
  };
  const Row rows[] = {
      {{0x410fd034, kV8, 0}, "cortex-a53"},             // Raspberry Pi 3
      {{0x410fd083, kV8, 0}, "cortex-a72"},             // Raspberry Pi 4
      {{0x414fd0b1, kV82, 0}, "cortex-a76"},            // Raspberry Pi 5
      {{0x413fd0c1, kV82, 0}, "neoverse-n1"},           // Ampere Altra
      {{0x411fd401, kWithSve, 0x6000}, "neoverse-v1"},  // Graviton 3, but for its other features
      {{0x410fd490, kWithSve, 0x6002}, "neoverse-n2"},
      {{0x6d0fd490, kWithSve, 0x6002}, "neoverse-n2"},  // Cobalt 100
      {{0x612f0320, kV82, 0x6000}, "apple-m2"},
  };
  for (const auto& [core, name] : rows) EXPECT_EQ(name_of_arm(core).mcpu, name);
  EXPECT_THAT(name_of_arm(rows[0].core).mattr, IsEmpty());
  EXPECT_THAT(name_of_arm(rows[1].core).mattr, IsEmpty());
  EXPECT_THAT(name_of_arm(rows[2].core).mattr, IsEmpty());
  EXPECT_THAT(name_of_arm(rows[3].core).mattr, IsEmpty());
  EXPECT_THAT(name_of_arm(rows[5].core).mattr, IsEmpty());
}

TEST(HostCpu, WhatTheNameDoesNotSayIsAdded) {
  // A core of tomorrow.
  const CpuName unknown = name_of_arm({0x410fdff0, kV82, 0x2000});
  EXPECT_EQ(unknown.mcpu, "generic");
  EXPECT_THAT(unknown.mattr, ElementsAre("+dotprod", "+fullfp16", "+i8mm"));
  // A hypervisor that hides SVE: without it there is no SVE2 either.
  const CpuName hidden = name_of_arm({0x410fd490, kV82, 0x6000});
  EXPECT_EQ(hidden.mcpu, "neoverse-n2");
  EXPECT_THAT(hidden.mattr, ElementsAre("-sve"));
  // Half of float16 (scalars, no vectors) is none.
  EXPECT_THAT(name_of_arm({0x414fd0b1, kV82 & ~(1U << 10), 0}).mattr, ElementsAre("-fullfp16"));
  EXPECT_EQ(name_of_arm({}).mcpu, "generic");
}

TEST(HostCpu, UnitsOfANameAreThoseOfLlvm) {
  EXPECT_THAT(units_of_arm("cortex-a72"), IsEmpty());
  EXPECT_THAT(units_of_arm("neoverse-n1"), ElementsAre("dotprod", "fullfp16"));
  EXPECT_THAT(units_of_arm("no-such-core"), IsEmpty());
}

TEST(HostCpu, ThisHostHasACanonicalName) {
  for (const std::string& name : {host_cpu_target(1), host_cpu_target(2, "cortex-a72")}) {
    const Result<Target> target = parse_target(name);
    ASSERT_TRUE(target) << target.message();
    EXPECT_EQ(target->name(), name);
    EXPECT_EQ(target->emulated, is_emulated_process());
  }
  EXPECT_EQ(parse_target(host_cpu_target(2, "cortex-a72"))->mcpu, "cortex-a72");
}

// A built model asks by itself, in its header. Units as CPUID has them here, by another reader.
TEST(HostCpu, HeadersOfModelsKnowTheUnitsThatLibrariesName) {
#if defined(__x86_64__)
  const std::vector<std::string> here = host_cpu_units();
  const std::string names[] = {"sse4.2",   "avx",      "avx2",       "fma",        "bmi2",
                               "avxvnni",  "avx512f",  "avx512bw",   "avx512dq",   "avx512vl",
                               "amx-bf16", "amx-int8", "avx512vnni", "avx512bf16", "amx-fp16"};
#else
  const std::vector<std::string> here = host_arm_units();
  const std::string names[] = {"bf16", "dotprod", "fullfp16", "i8mm", "sve", "sve2"};
#endif
  for (const std::string& name : names)
    EXPECT_EQ(tuner_cpu_has(name.data(), name.size()), std::ranges::count(here, name)) << name;
  EXPECT_EQ(tuner_cpu_has("avx9000", 7), -1);
  EXPECT_EQ(tuner_cpu_has("avx", 2), -1) << "a part of a name";
  EXPECT_EQ(tuner_cpu_has_sets(""), 1);
  EXPECT_EQ(tuner_cpu_has_sets("avx9000"), 0) << "what is not known is missing";
  for (const std::string& name : names) {
    EXPECT_EQ(tuner_cpu_has_sets(name.c_str()), std::ranges::count(here, name)) << name;
    EXPECT_EQ(tuner_cpu_has_sets((name + " avx9000").c_str()), 0) << "the last of them counts";
    EXPECT_EQ(tuner_cpu_has_sets(("avx9000 " + name).c_str()), 0) << "so does the first";
  }
}

}  // namespace
}  // namespace tuner
