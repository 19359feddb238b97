// The timeline of a run as Chrome's trace format, which chrome://tracing and Perfetto open.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/npu/simulator.h"

namespace tuner::npu {

// A JSON text: one row per queue, one slice per instruction from its first step to its last; one cycle is
// shown as one microsecond. Arguments of a slice tell dispatch, start and end.
std::string trace_json(const Machine& machine, const Code& code, const std::vector<Span>& timeline);

}  // namespace tuner::npu
