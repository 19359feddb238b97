// The parameters and conditions of a T1 file as knobs and constraints of a job file.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "compiler_core/base/status.h"
#include "tuner/jobs/kernel_draft.h"
#include "tuner/jobs/t1/t1_file.h"

namespace tuner::t1 {

// Writes "knobs", "constraints" and "default" of `job`. The default is the file's own where it is valid, else
// the first valid config that a search of bounded length meets; `notes` says so. InvalidArgument with the
// place: a condition that a space cannot have, as one that compares a word with a number.
Status add_space(const T1Document& document, nlohmann::ordered_json& job, KernelDraft& notes);

}  // namespace tuner::t1
