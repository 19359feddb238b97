// What a kernel's code says before it runs: code that does more than compute is refused.
//
// This is the first of two lines. Who gets past it is met by the runner: no file, no network, no process,
// no clock but ours (measure_server/runner/README.md). docs/judge.md lists what each line finds.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/artifact/artifact.h"

namespace tuner {

struct CodeRules {
  bool cxx = false;                    // the language has code before main(): constructors of its objects
  int threads = 1;                     // of the target
  std::string entry = "tuner_kernel";  // the only name that it may offer
};

// Reads what the compiler made, as text that is assembled (of GCC and Clang, for x86-64 and AArch64).
// Returns why the kernel is refused, in a phrase: "it has the instruction syscall, ..."; empty: nothing is
// wrong.
std::string why_code_is_refused(std::string_view assembly, const CodeRules& rules);

// The same of what the linked binary takes from elsewhere and offers.
std::string why_symbols_are_refused(const DynamicSymbols& symbols, const CodeRules& rules);

}  // namespace tuner
