#include "compiler_core/base/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace tuner {
namespace {

// In the direction in which nobody uses it: reading from it, or writing to it, is an error (EBADF). System
// calls of our own, because no sanitizer is ready when this is called first.
__attribute__((no_sanitize("address", "thread", "undefined"))) void fill_closed() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::syscall(SYS_fcntl, fd, F_GETFD) >= 0) continue;
    const long null = ::syscall(SYS_openat, AT_FDCWD, "/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (null < 0 || null == fd) continue;  // the lowest that is free: it is this one, as those below are open
    ::syscall(SYS_dup3, null, fd, 0);
    ::syscall(SYS_close, null);
  }
}

// Libraries open files in their constructors (gRPC an eventfd), which run before main(), and before every
// constructor of the program's own. Only what stands here comes before them.
__attribute__((section(".preinit_array"), used)) void (*const kFillClosed)() = fill_closed;

void make_blocking(int fd, int flags) {
  struct stat info {};
  const bool has_name = ::fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode));
  const std::string name = "/proc/self/fd/" + std::to_string(fd);
  // Not to wait for the other end of a FIFO, and not to become the terminal's session.
  const int kept = flags & (O_ACCMODE | O_APPEND);
  const int again = has_name ? ::open(name.c_str(), kept | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
  if (again < 0 || ::fcntl(again, F_SETFL, kept) != 0) {
    if (again >= 0) ::close(again);
    ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return;
  }
  ::dup2(again, fd);
  ::close(again);
}

}  // namespace

void prepare_standard_streams() {
  fill_closed();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_NONBLOCK) != 0) make_blocking(fd, flags);
  }
}

bool has_no_reader(int fd) {
  pollfd end{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace tuner
