#include "measure_server/runner/frame.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "measure_server/runner/patience.h"

namespace tuner {

namespace {

// Waits until `fd` is ready; what a hung-up peer left behind can still be read.
Status wait_for(int fd, short events, Patience& patience) {
  for (;;) {
    pollfd p{fd, events, 0};
    const int n = poll(&p, 1, patience.poll_ms());
    if (n > 0) return Status::ok();
    if (n == 0 && patience.over()) return {StatusCode::kDeadlineExceeded, "no answer in time"};
    if (n < 0 && errno != EINTR) return failed("poll: ", std::strerror(errno));
  }
}

Status read_exactly(int fd, char* to, size_t size, Patience& patience) {
  while (size > 0) {
    const ssize_t n = recv(fd, to, size, MSG_DONTWAIT);
    if (n > 0) {
      to += n;
      size -= n;
    } else if (n == 0) {
      return unavailable("the peer closed the connection");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      RETURN_IF_ERROR(wait_for(fd, POLLIN, patience));
    } else if (errno != EINTR) {
      return unavailable("receiving: ", std::strerror(errno));
    }
  }
  return Status::ok();
}

}  // namespace

Status write_frame(int fd, std::string_view bytes, Deadline deadline) {
  if (bytes.size() > kMaxFrameBytes)
    return invalid_argument("a message of ", bytes.size(), " bytes; at most ", kMaxFrameBytes,
                            " can be sent");
  Patience patience(deadline - Patience::Clock::now());
  std::string frame(4, '\0');
  const uint32_t size = static_cast<uint32_t>(bytes.size());
  for (int i = 0; i < 4; ++i) frame[i] = static_cast<char>(size >> (8 * i));
  frame += bytes;
  for (size_t done = 0; done < frame.size();) {
    const ssize_t n = send(fd, frame.data() + done, frame.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      done += n;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      RETURN_IF_ERROR(wait_for(fd, POLLOUT, patience));
    } else if (errno != EINTR) {
      return unavailable("sending: ", std::strerror(errno));
    }
  }
  return Status::ok();
}

Result<std::string> read_frame(int fd, Deadline deadline) {
  Patience patience(deadline - Patience::Clock::now());
  unsigned char head[4];
  RETURN_IF_ERROR(read_exactly(fd, reinterpret_cast<char*>(head), 4, patience));
  const size_t size = head[0] | head[1] << 8 | head[2] << 16 | static_cast<uint32_t>(head[3]) << 24;
  if (size > kMaxFrameBytes)
    return invalid_argument("the peer announced ", size, " bytes; at most ", kMaxFrameBytes, " are accepted");
  std::string bytes(size, '\0');
  RETURN_IF_ERROR(read_exactly(fd, bytes.data(), size, patience));
  return bytes;
}

}  // namespace tuner
