// Frames on a stream socket: a 4-byte little-endian length and that many bytes. Every wait has a deadline.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

using Deadline = std::chrono::steady_clock::time_point;

inline constexpr size_t kMaxFrameBytes = 16 << 20;

// Unavailable when the peer is gone, DeadlineExceeded at the deadline (the stream is then unusable: half a
// frame may have gone). Never raises SIGPIPE.
Status write_frame(int fd, std::string_view bytes, Deadline deadline);
// One whole frame. Errors as above; InvalidArgument when the peer announces more than kMaxFrameBytes.
Result<std::string> read_frame(int fd, Deadline deadline);

// Milliseconds until `deadline` for poll(): 0 when passed, rounded up.
int poll_ms(Deadline deadline);

}  // namespace tuner
