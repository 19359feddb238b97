#include "db/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tuner::db {

Result<FileLock> FileLock::acquire(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return failed(path, ": the lock file cannot be opened: ", std::strerror(errno));
  FileLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed(path, ": cannot be locked: ", std::strerror(errno));
    std::array<char, 32> text{};
    const ssize_t n = ::pread(fd, text.data(), text.size() - 1, 0);
    std::string holder(text.data(), n > 0 ? static_cast<size_t>(n) : 0);
    while (!holder.empty() && holder.back() == '\n') holder.pop_back();
    return Status(StatusCode::kAborted, str("held by process ", holder.empty() ? "(starting)" : holder));
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return failed(path, ": the lock file cannot be written: ", std::strerror(errno));
  return lock;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

Status refuse_network_filesystem(const std::string& path) {
  constexpr std::array<std::pair<uint32_t, const char*>, 10> kNetwork{{{0x6969, "NFS"},
                                                                       {0x517b, "SMB"},
                                                                       {0xff534d42, "CIFS"},
                                                                       {0xfe534d42, "SMB2"},
                                                                       {0x5346414f, "AFS"},
                                                                       {0x6b414653, "AFS"},
                                                                       {0x00c36400, "Ceph"},
                                                                       {0x01021997, "9P"},
                                                                       {0x0bd00bd0, "Lustre"},
                                                                       {0x47504653, "GPFS"}}};
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return failed(path, ": ", std::strerror(errno));
  for (const auto& [magic, name] : kNetwork)
    if (static_cast<uint32_t>(info.f_type) == magic)
      return invalid_argument(path, ": is on ", name,
                              ", a network filesystem, whose locks a database cannot rely on. ",
                              "Give a local file with --db");
  return Status::ok();
}

}  // namespace tuner::db
