#include "measure_server/runner/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

namespace tuner {
namespace {

// Opening a file that exists without O_CREAT works in folders where fs.protected_regular keeps users from
// each other's files. Reading is enough for flock(), except on a network file system.
// A FIFO in its place would keep us until somebody writes: O_NONBLOCK.
int open_or_make(const std::string& path, mode_t mode) {
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  for (int i = 0; i < 100; ++i) {
    int fd = ::open(path.c_str(), O_RDWR | kFlags);
    if (fd < 0 && (errno == EACCES || errno == EROFS)) fd = ::open(path.c_str(), O_RDONLY | kFlags);
    if (fd >= 0 || errno != ENOENT) return fd;
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | kFlags, mode);
    if (fd >= 0) {
      (void)::fchmod(fd, mode);
      return fd;
    }
    if (errno != EEXIST) return -1;
  }
  return -1;
}

}  // namespace

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

Result<FileLock> FileLock::open(const std::string& path, mode_t mode) {
  const int fd = open_or_make(path, mode);
  if (fd < 0) return failed("lock file ", path, ": cannot be opened: ", std::strerror(errno));
  FileLock lock(path, fd);
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return failed("lock file ", path, ": is no regular file; remove it");
  return lock;
}

Result<bool> FileLock::try_lock() {
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK || errno == EINTR) return false;
  return failed("lock file ", path_, ": cannot be locked on this file system: ", std::strerror(errno));
}

void FileLock::unlock() { (void)::flock(fd_, LOCK_UN); }

bool FileLock::is_current() const {
  struct stat open {
  }, there{};
  return ::fstat(fd_, &open) == 0 && ::lstat(path_.c_str(), &there) == 0 && open.st_ino == there.st_ino &&
         open.st_dev == there.st_dev;
}

pid_t FileLock::holder() const {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return 0;
  char file[64];
  std::snprintf(file, sizeof file, "%02x:%02x:%lu", major(info.st_dev), minor(info.st_dev),
                static_cast<unsigned long>(info.st_ino));
  // "12: FLOCK  ADVISORY  WRITE 4711 fd:00:2345 0 EOF"; one that waits has "->" behind the number.
  std::ifstream locks("/proc/locks");
  for (std::string number, kind, mode, access, pid, where, rest;
       locks >> number >> kind >> mode >> access >> pid >> where && std::getline(locks, rest);)
    if (kind == "FLOCK" && where == file) return static_cast<pid_t>(std::strtol(pid.c_str(), nullptr, 10));
  return 0;
}

namespace {

// What /proc/PID/stat says behind the name; a name may hold anything.
struct ProcessStat {
  char state = '?';
  pid_t parent = 0;
  int64_t ticks = 0;  // of CPU time
};
ProcessStat stat_of(pid_t pid) {
  std::ifstream stat(str("/proc/", pid, "/stat"));
  std::string line;
  std::getline(stat, line);
  ProcessStat out;
  const size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos) return out;
  std::istringstream fields(line.substr(name_end + 2));
  fields >> out.state >> out.parent;
  std::string skipped;
  for (int i = 0; i < 9; ++i) fields >> skipped;
  int64_t user = 0, system = 0;
  fields >> user >> system;
  out.ticks = user + system;
  return out;
}

}  // namespace

bool is_stopped(pid_t pid) {
  const char state = pid > 0 ? stat_of(pid).state : '?';
  return state == 'T' || state == 't';
}

int64_t ticks_of_tree(pid_t pid) {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos) {
      const pid_t child = std::atoi(name.c_str());
      children.emplace(stat_of(child).parent, child);
    }
  }
  int64_t ticks = 0;
  std::vector<pid_t> open{pid};
  for (size_t i = 0; i < open.size(); ++i) {
    ticks += stat_of(open[i]).ticks;
    const auto [begin, end] = children.equal_range(open[i]);
    for (auto it = begin; it != end && open.size() < 10'000; ++it) open.push_back(it->second);
  }
  return ticks;
}

std::string process_text(pid_t pid) {
  if (pid <= 0) return "another process";
  std::ifstream comm(str("/proc/", pid, "/comm"));
  std::string name;
  std::getline(comm, name);
  for (char& c : name)  // which that process chose
    if (c < ' ' || c > '~') c = '?';
  std::string text = name.empty() ? str("process ", pid) : str("process ", pid, " (", name, ")");
  struct stat of {};
  if (::stat(str("/proc/", pid).c_str(), &of) == 0 && of.st_uid != ::geteuid())
    text += str(" of user ", of.st_uid);
  return text;
}

}  // namespace tuner
