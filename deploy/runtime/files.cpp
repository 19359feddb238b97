#include "deploy/runtime/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tuner::runtime {

namespace fs = std::filesystem;

Result<std::string> read_whole(const std::string& path, size_t most) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return not_found(path, ": no such file");
  if (!fs::is_regular_file(status)) return failed(path, ": expected a file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return failed(path, ": cannot be opened: ", std::strerror(errno));
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (in.bad()) return failed(path, ": cannot be read: ", std::strerror(errno));
  if (bytes.size() > most) return failed(path, ": expected at most ", most, " bytes, found ", bytes.size());
  return bytes;
}

Status replace_file(const std::string& path, std::string_view bytes) {
  static std::atomic<uint64_t> counter{0};
  const std::string temporary = str(path, ".", ::getpid(), ".", counter++, ".tmp");
  const auto give_up = [&](const char* what) {
    const Status why = failed(path, ": cannot ", what, ": ", std::strerror(errno));
    ::unlink(temporary.c_str());
    return why;
  };
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return give_up("be written");
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const Status why = give_up("be written");
      ::close(fd);
      return why;
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  if (::close(fd) != 0) return give_up("be written");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up("be renamed into place");
  return Status::ok();
}

Status make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? failed(path, ": cannot be made: ", error.message()) : Status::ok();
}

}  // namespace tuner::runtime
