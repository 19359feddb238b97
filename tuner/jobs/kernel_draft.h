// A first job file for a kernel that somebody brings as source: what its text says, and marks where the text
// does not say it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

// Stands where people must write something; a job file with it is refused.
inline constexpr char kFillIn[] = "FILL_IN";

struct KernelDraft {
  std::string job;                   // the text of the job file
  std::vector<std::string> to_fill;  // one line a mark: "sizes.n: ..."
  std::vector<std::string> guesses;  // one line a thing that may be otherwise: "arguments[1].role: ..."
};

struct DraftWish {
  std::string source;    // as the job file will name it: "stencil.c"
  std::string function;  // empty: the only one that could be a kernel
};

// `text` is what the source holds. InvalidArgument: not C, C++ or CUDA by its name; no such function, with
// those that there are; several; a template; an argument that no kernel has, with its line; a wrong comment
// with %RANGE%.
Result<KernelDraft> draft_kernel_job(const DraftWish& wish, std::string_view text);

}  // namespace tuner
