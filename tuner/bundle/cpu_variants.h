// Several CPUs in one library (`tuner build --for avx2,avx512,amx`): each task becomes a kernel for each of
// them, and its function takes, at run time, the first that the CPU has all instructions for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tuner/bundle/bundle.h"

namespace tuner {

struct CpuVariant {
  std::string word;  // part of the variant's C name: "avx512", "znver4"
  std::string mcpu;  // LLVM's name of the CPU
};

// "avx2,amx,znver4": words for what many CPUs have in common, or LLVM's names of CPUs. Each once, those with
// more instruction sets first. InvalidArgument says which word is no CPU of x86-64.
Result<std::vector<CpuVariant>> parse_cpus(std::string_view text);
std::vector<std::string> cpu_words();  // avx2, avx512, amx

// Each task once for each of the CPUs of `words` (parse_cpus), with its number of threads. The variants of
// one are neighbours; BundleTask::of is its function. InvalidArgument, which names --for: a word is no CPU, a
// task is not for an x86-64 CPU, or two functions would have one name.
Result<std::vector<BundleTask>> for_each_cpu(const std::vector<BundleTask>& tasks, std::string_view words,
                                             const std::string& library);

}  // namespace tuner
