// What CPUs can do, in LLVM's words for features: what code for a target may use, what this CPU has, and by
// which name it is best called.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/host_cpu.h"
#include "compiler_core/target.h"

namespace tuner {

using CpuFeatures = std::set<std::string, std::less<>>;  // "avx2", "amx-tile"

// Of the CPU this runs on, as its own feature bits tell. What a hypervisor hides is not among them, nor are
// tiles (AMX) that the system does not let this process use.
const CpuFeatures& host_cpu_features();

// Every name of an x86 CPU of 64 bits that LLVM knows.
std::vector<std::string> x86_cpu_names();

// InvalidArgument when LLVM does not know -mcpu or a word of -mattr.
Status check_cpu_words(const Target& target);

// What the code generator may put into code for an x86 target without being asked: a CPU without one of them
// ends such code with an illegal instruction. Of AArch64 only the units by which its CPUs differ for kernels
// (units_of_arm()); empty for other architectures. Errors of check_cpu_words().
Result<CpuFeatures> needed_features(const Target& target);

// Whether a CPU of the architecture `there`, with these features, runs code for the target; else
// InvalidArgument, which names what it lacks. Code for another architecture than x86 only runs on a CPU with
// the name of `there`, if that has the units which -mattr adds. `who` begins the message: "this CPU has no
// avx512f, which its code may use".
Status runs_on(const Target& target, const Target& there, const CpuFeatures& features, std::string_view who);

// How a CPU with these features is called, and what -mattr has to add. LLVM's own guess counts models and
// falls back on an older one where it knows none, or where a virtual machine shows another; so the guess
// stays only while no CPU of the same maker has features nearer to these.
CpuName name_of_x86(std::string_view guess, const CpuFeatures& features);

}  // namespace tuner
