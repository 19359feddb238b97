// The health service of gRPC (grpc.health.v1), asked from outside: what `tuner health` and the daemon's own
// probe call.
#pragma once

#include <cstdint>

#include "compiler_core/base/status.h"
#include "proto/daemon_access.h"

namespace tuner {

// Asks over a connection of its own, within `limit_ms`, whether the daemon is ready for workers and clients.
// Unavailable, DeadlineExceeded: nobody answers. InvalidArgument: who answers has a certificate that `daemon`
// does not vouch for, or that has ended. Other errors: who answers does not speak the words of that service.
Result<bool> check_health(const DaemonAccess& daemon, int64_t limit_ms);

}  // namespace tuner
