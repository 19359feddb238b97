// The name of the CPU this runs on, as a target, without LLVM: for workers that compile nothing.
//
// On AArch64 it is what host_target() (codegen/compile.h) says, which asks here. On x86 it is one of the
// levels x86-64-v2, -v3, -v4 with the units that our kernels gain by; host_target() knows models as well. The
// caller may name a CPU instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tuner {

struct CpuName {
  std::string mcpu;                // LLVM's: "cortex-a72"
  std::vector<std::string> mattr;  // what it has besides ("+dotprod") or lacks ("-sve"), sorted by feature
};

// What a core of AArch64 says of itself: MIDR_EL1, AT_HWCAP and AT_HWCAP2.
struct ArmCore {
  uint64_t midr = 0;
  uint64_t hwcap = 0, hwcap2 = 0;
};
// "generic" where the table does not have the core, with its units as features.
CpuName name_of_arm(const ArmCore& core);

// Units that a CPU name of AArch64 implies, in LLVM's words, of those in which such CPUs differ for kernels:
// bf16, dotprod, fullfp16, i8mm, sve, sve2. Empty for a name that the table does not have.
std::vector<std::string> units_of_arm(std::string_view mcpu);
// Those of the core this runs on. Empty on other architectures.
std::vector<std::string> host_arm_units();
// Every name in the table, once.
std::vector<std::string> arm_cpu_names();

// The CPU this runs on. Cores may differ (big.LITTLE): it is the last one that this process may use, as
// candidates run on the last cores.
CpuName host_cpu_name();

// Units of an x86 CPU that its system supports, in LLVM's words ("avx2", "amx-tile"), of those that decide
// which code it can run. Empty on other architectures.
std::vector<std::string> host_cpu_units();

// The canonical name of this CPU as a target: "llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -threads=1",
// with " -emulated" where an emulator runs this process. `mcpu`: a name to use instead of the one found; it
// then stands for all that the CPU has.
std::string host_cpu_target(int threads, std::string_view mcpu = {});

}  // namespace tuner
