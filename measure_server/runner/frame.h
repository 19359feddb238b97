// Frames on a stream socket: a 4-byte little-endian length, then that many bytes. Every wait has a deadline,
// which moves by the time for which this process was stopped meanwhile (patience.h).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

using Deadline = std::chrono::steady_clock::time_point;

inline constexpr size_t kMaxFrameBytes = 16 << 20;

// Unavailable: the peer is gone. DeadlineExceeded: the deadline passed; the stream is then unusable, because
// half a frame may have been sent. Never raises SIGPIPE.
Status write_frame(int fd, std::string_view bytes, Deadline deadline);
// Reads one whole frame. Errors as above; InvalidArgument: the peer announces more than kMaxFrameBytes.
Result<std::string> read_frame(int fd, Deadline deadline);

}  // namespace tuner
