// What the system lets this process have (ulimit), told before it is missed: batch systems and shells set
// limits that a program meets somewhere in the middle, in a library that gives up.
#pragma once

#include <cstdint>
#include <string>

#include "compiler_core/base/status.h"

namespace tuner {

struct ProcessNeeds {
  int64_t files = 0;          // open at once
  int64_t address_space = 0;  // bytes mapped, used or not
};

// Raises the soft limits to the hard ones, as far as `needs` asks. Failed when that is not enough: one line
// with `who`, the limit, and what to do.
Status check_process_limits(const std::string& who, const ProcessNeeds& needs);

// Of a daemon or a worker: its sockets, files and libraries; a worker's program and threads, of which each
// reserves 64 MiB. A worker for operands of a few MiB has been seen to work with 1.24 GiB of addresses, and
// to hang with 1.05, on two cores (2026-11-27); a daemon with 30 files.
inline constexpr ProcessNeeds kDaemonNeeds{.files = 64};
inline constexpr ProcessNeeds kWorkerNeeds{.files = 64, .address_space = int64_t{3} << 29};

}  // namespace tuner
