// What a runner can measure, told without a compiler.
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "measure_server/worker/builder_protocol.h"

namespace tuner {

// The targets of this host, as a builder's hello would tell them. `mcpu`: LLVM's name of this CPU; empty: as
// it is found. InvalidArgument: the name is none.
Result<BuildReply> runner_host(const std::string& mcpu);
// The targets of one of its devices, likewise. `family`, `device`: as the runner's probe names them, "cuda"
// and the fingerprint. A family that this program knows nothing of has none.
BuildReply runner_device(const std::string& family, const std::string& device);

}  // namespace tuner
