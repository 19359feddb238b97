// The arguments of a T1 file's kernel as those of a job file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "compiler_core/base/status.h"
#include "tuner/jobs/kernel_draft.h"
#include "tuner/jobs/t1/t1_file.h"

namespace tuner::t1 {

// Appends them to `job`'s "arguments", and what is open or guessed to `notes`. Memory that CUDA gives a block
// at its launch ("Local") is no argument: its bytes become `local_bytes`. `on_device`: of a kernel of a GPU,
// which has no buffers that are read and written. InvalidArgument with the place: a type that has no
// counterpart here.
Status add_arguments(const T1Document& document, bool on_device, nlohmann::ordered_json& job,
                     KernelDraft& notes, int64_t& local_bytes);

}  // namespace tuner::t1
