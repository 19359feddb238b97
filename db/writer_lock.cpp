#include "db/writer_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "compiler_core/base/output_file.h"
#include "db/store.h"

namespace tuner::db {

namespace {

// Opens it, and says whether it was made.
int open_lock(const std::string& path, bool& made) {
  made = true;
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd >= 0 || errno != EEXIST) return fd;
  made = false;
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
}

// A lock on a file that was removed meanwhile keeps nobody away.
bool is_still_named(int fd, const std::string& path) {
  struct stat locked {
  }, named{};
  return ::fstat(fd, &locked) == 0 && ::stat(path.c_str(), &named) == 0 && locked.st_ino == named.st_ino &&
         locked.st_dev == named.st_dev;
}

std::string holder_of(int fd) {
  std::array<char, 32> text{};
  const ssize_t n = ::pread(fd, text.data(), text.size() - 1, 0);
  std::string holder(text.data(), n > 0 ? static_cast<size_t>(n) : 0);
  while (!holder.empty() && holder.back() == '\n') holder.pop_back();
  return holder.empty() ? "(starting)" : holder;
}

}  // namespace

Result<WriterLock> WriterLock::acquire(const std::string& path) {
  // is_held() of another process holds it for an instant: not the first try decides.
  constexpr int kTries = 10;
  for (int tried = 1;; ++tried) {
    bool made = false;
    const int fd = open_lock(path, made);
    if (fd < 0) return failed(path, ": the lock file cannot be opened: ", std::strerror(errno));
    WriterLock lock(path, fd, made);
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
      if (!is_still_named(fd, path)) continue;
      const std::string pid = std::to_string(::getpid()) + "\n";
      if (::ftruncate(fd, 0) != 0 ||
          ::pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
        return failed(path, ": the lock file cannot be written: ", std::strerror(errno));
      return lock;
    }
    if (errno != EWOULDBLOCK) return failed(path, ": cannot be locked: ", std::strerror(errno));
    if (tried == kTries) return Status(StatusCode::kAborted, "held by process " + holder_of(fd));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

bool WriterLock::is_held(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno != ENOENT;  // not ours to look at: suppose that it is
  const bool held = ::flock(fd, LOCK_SH | LOCK_NB) != 0;
  ::close(fd);
  return held;
}

void WriterLock::undo() {
  if (made_ && fd_ >= 0) ::unlink(path_.c_str());
}

Result<std::string> lock_file_of(const std::string& database) {
  ASSIGN_OR_RETURN(const std::string real, follow_links(database));
  return real + "-lock";
}

bool has_writer(const std::string& database) {
  const Result<std::string> lock = lock_file_of(database);
  return lock && WriterLock::is_held(*lock);
}

WriterLock::~WriterLock() {
  if (fd_ >= 0) ::close(fd_);
}

// Magic numbers of statfs(2), and of linux/magic.h where that page has none.
const char* shared_filesystem(uint32_t magic) {
  constexpr std::pair<uint32_t, const char*> kShared[] = {
      {0x6969, "NFS"},         {0x517b, "SMB"},       {0xff534d42, "CIFS"},
      {0xfe534d42, "SMB2"},    {0x5346414f, "AFS"},   {0x6b414653, "AFS"},
      {0x00c36400, "Ceph"},    {0x01021997, "9P"},    {0x0bd00bd0, "Lustre"},
      {0x47504653, "GPFS"},    {0x65735546, "FUSE"},  {0x19830326, "BeeGFS"},
      {0x7461636f, "OCFS2"},   {0xaad7aaea, "PanFS"}, {0x01161970, "GFS2"},
      {0x73757245, "Coda"},    {0x564c, "NCP"},       {0x786f4256, "VirtualBox's shared folders"},
      {0x20030528, "OrangeFS"}};
  for (const auto& [known, name] : kShared)
    if (known == magic) return name;
  return nullptr;
}

Status refuse_shared_filesystem(const std::string& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return failed(path, ": ", std::strerror(errno));
  if (const char* const name = shared_filesystem(static_cast<uint32_t>(info.f_type)))
    return invalid_argument(
        path, ": is on ", name,
        ", which other hosts or programs may serve: a database cannot rely on its locks. ",
        "Give a local file ", how_a_database_is_given());
  return Status::ok();
}

}  // namespace tuner::db
