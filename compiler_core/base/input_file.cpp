#include "compiler_core/base/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "compiler_core/base/large_pages.h"

namespace tuner {

namespace {

constexpr const char* kStandardInput = "standard input";

Status refused(const std::string& path, int code, const std::string& expected) {
  if (path == kStandardInput && code == EBADF)
    return invalid_argument(path, ": is closed. Expected ", expected);
  return invalid_argument(path, ": cannot be read: ", std::strerror(code), ". Expected ", expected);
}

// /dev/zero has no end. A terminal has one (Ctrl-D), and /dev/null is at its end.
bool is_endless(int fd, const struct stat& info) {
  if (S_ISBLK(info.st_mode)) return true;
  const bool is_null = info.st_rdev == makedev(1, 3);
  return S_ISCHR(info.st_mode) && !is_null && ::isatty(fd) == 0;
}

// True if somebody writes to the FIFO, or has. A writer that is silent shows only when bytes are asked for:
// tee() then says that there may be some later, and takes none away.
bool has_writer(int fd) {
  constexpr int kPatienceMs = 300;  // for one that is started at the same time
  pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, kPatienceMs) > 0) return true;
  int spare[2];
  if (::pipe2(spare, O_CLOEXEC) != 0) return true;
  const bool silent = ::tee(fd, spare[1], 1, SPLICE_F_NONBLOCK) < 0 && errno == EAGAIN;
  ::close(spare[0]);
  ::close(spare[1]);
  return silent;
}

Status check_kind(int fd, const std::string& path, const std::string& expected) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return refused(path, errno, expected);
  if (S_ISDIR(info.st_mode)) return invalid_argument(path, ": is a folder, expected ", expected);
  if (is_endless(fd, info)) return invalid_argument(path, ": is a device, expected ", expected);
  if (S_ISFIFO(info.st_mode) && !has_writer(fd))
    return invalid_argument(path, ": is a FIFO that nobody writes to. Expected ", expected);
  return Status::ok();
}

constexpr size_t kPiece = size_t{1} << 16;

// Appends what the descriptor holds, one piece more than `most_bytes` at most. Returns errno, or 0.
int read_all(int fd, size_t most_bytes, std::string& text) {
  while (text.size() <= most_bytes) {
    const size_t size = text.size();
    text.resize(size + kPiece);
    const ssize_t n = ::read(fd, text.data() + size, kPiece);
    const int code = n < 0 ? errno : 0;
    text.resize(size + static_cast<size_t>(n > 0 ? n : 0));
    if (code == EINTR) continue;
    if (n <= 0) return code;
  }
  return 0;
}

}  // namespace

Result<int> open_input(const std::string& path, const std::string& expected) {
  if (path == "-") {
    const int input = ::dup(STDIN_FILENO);
    if (input < 0) return refused(kStandardInput, errno, expected);
    return input;
  }
  // Opening a FIFO without O_NONBLOCK would wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return refused(path, errno, expected);
  Status checked = check_kind(fd, path, expected);
  if (checked && ::fcntl(fd, F_SETFL, 0) != 0) checked = refused(path, errno, expected);
  if (checked) return fd;
  ::close(fd);
  return checked;
}

Result<std::string> read_file(const std::string& path, const std::string& expected, size_t most_bytes) {
  ASSIGN_OR_RETURN(const int fd, open_input(path, expected));
  const std::string name = path == "-" ? kStandardInput : path;
  struct stat info {};
  const bool known = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const bool too_large = known && static_cast<size_t>(info.st_size) > most_bytes;
  std::string text;
  const int code = too_large ? 0 : read_all(fd, most_bytes, text);
  ::close(fd);
  if (code != 0) return refused(name, code, expected);
  if (too_large || text.size() > most_bytes)
    return invalid_argument(name, ": expected at most ", most_bytes, " bytes, found more");
  return text;
}

Result<std::string> read_whole(const std::string& path, size_t most_bytes) {
  // O_NONBLOCK: a FIFO is opened at once, and refused.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return not_found(path, ": no such file");
  if (fd < 0) return failed(path, ": cannot be opened: ", std::strerror(errno));
  struct stat info {};
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  std::string text;
  // With room for the piece that finds the end.
  if (regular) reserve_on_large_pages(text, std::min(static_cast<size_t>(info.st_size), most_bytes) + kPiece);
  const int code = regular ? read_all(fd, most_bytes, text) : 0;
  ::close(fd);
  if (!regular) return failed(path, ": expected a file");
  if (code != 0) return failed(path, ": cannot be read: ", std::strerror(code));
  if (text.size() > most_bytes) return failed(path, ": expected at most ", most_bytes, " bytes, found more");
  return text;
}

}  // namespace tuner
