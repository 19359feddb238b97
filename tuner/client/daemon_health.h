// Whether a daemon is ready, asked from outside as a monitor does.
#pragma once

#include <string>

#include "compiler_core/base/status.h"

namespace tuner {

// OK: the daemon is ready for workers and clients. Unavailable: nobody answers within `limit_s`, or it is not
// ready; the message names the daemon. `daemon`: HOST:PORT, unix:/path or a credentials file; empty: the one
// that runs on the database `db`. InvalidArgument: a file that is no credentials.
Status check_daemon(const std::string& daemon, const std::string& db, double limit_s);

}  // namespace tuner
