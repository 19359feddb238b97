// May this worker run candidates as well, or as badly, kept apart as this host allows?
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "measure_server/runner/isolation.h"

namespace tuner {

// True for "unix:/path" and for HOST:PORT where the host is this one: what comes from there comes from people
// of this machine.
bool is_here(const std::string& daemon);

// InvalidArgument, in one line with what to do, if candidates get less than `least` here, or if root would
// run the candidates of a daemon elsewhere without `strict`. `missing`: ProbeReply::isolation_missing.
Status may_run(Isolation reached, const std::string& missing, Isolation least, const std::string& daemon,
               bool root);

}  // namespace tuner
