// Is this host right for a pack? Asked before anything runs: what would make every kernel fail is told in one
// line instead of being recorded as failed trials.
#pragma once

#include "compiler_core/base/status.h"
#include "measure_server/runner/pack_file.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// OK, or Failed if the pack holds kernels for a GPU and there is none here, or its first GPU is of another
// architecture, or its driver is older than the toolkit that made the kernels.
Status check_host(const PackFile& pack, const ProbeReply& probe);

}  // namespace tuner
