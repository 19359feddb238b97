// What a runner can measure, told without a compiler.
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "measure_server/worker/builder_protocol.h"

namespace tuner {

// The targets of this host, as a builder's hello would tell them. `mcpu`: LLVM's name of this CPU; empty: as it is found.
// InvalidArgument: the name is none.
Result<BuildReply> runner_host(const std::string& mcpu);

}  // namespace tuner
