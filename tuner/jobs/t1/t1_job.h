// A job file from a T1 document: what the document says in our words, and marks where it does not say it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "tuner/jobs/kernel_draft.h"
#include "tuner/jobs/t1/t1_file.h"

namespace tuner::t1 {

struct T1Wish {
  std::string source;               // Kernel::file as the job file will name it
  std::optional<std::string> text;  // what it holds; empty: it is not there
};

// InvalidArgument with the place: a language that tuner does not compile, or what add_arguments() and
// add_space() refuse.
Result<KernelDraft> draft_t1_job(const T1Document& document, const T1Wish& wish);

}  // namespace tuner::t1
