#include "measure_server/worker/work_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "compiler_core/base/input_file.h"

namespace tuner {
namespace {

constexpr int kMostWorkers = 1024;  // of one user on one host
constexpr size_t kIdDigits = 8;

std::string lock_path(const std::string& folder) { return folder + "/lock"; }

// The lock on the folder, or nothing where another process has it.
Result<FileLock> lock_folder(const std::string& path, bool& taken) {
  for (int i = 0; i < 10; ++i) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return failed("work folder ", path, ": ", error.message(), "; choose another with --work-dir");
    ASSIGN_OR_RETURN(FileLock lock, FileLock::open(lock_path(path), 0600));
    const Result<bool> locked = lock.try_lock();
    if (!locked.is_ok())
      return invalid_argument("work folder ", path, ": ", locked.message(),
                              "; choose another with --work-dir");
    taken = !*locked;
    // A folder that somebody has just removed as unused is made again.
    if (taken || lock.is_current()) return lock;
  }
  return failed("work folder ", path, ": it is removed again and again; choose another with --work-dir");
}

Status in_use(const std::string& path, const FileLock& lock) {
  return invalid_argument("work folder ", path, ": ", process_text(lock.holder()),
                          " uses it; end that worker, or give this one its own --work-dir");
}

bool is_id_of(const std::string& id, const std::string& host) {
  if (id.size() != host.size() + 1 + kIdDigits || !id.starts_with(host + "-")) return false;
  return id.find_first_not_of("0123456789abcdef", host.size() + 1) == std::string::npos;
}

Status failed_at(const std::string& path, const char* what) {
  return failed(path, ": ", what, ": ", std::strerror(errno));
}

// All bytes on disk in a file of their own; the file is closed again.
Status write_synced(const std::string& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return failed_at(path, "cannot be made");
  Status status;
  while (status.is_ok() && !bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) status = failed_at(path, "cannot be written");
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
  }
  if (status.is_ok() && ::fsync(fd) != 0) status = failed_at(path, "did not reach the disk");
  ::close(fd);
  return status;
}

Status keep_id(const std::string& folder, const std::string& id) {
  const std::string path = folder + "/worker_id", fresh = path + ".new";
  RETURN_IF_ERROR(write_synced(fresh, id + "\n"));
  if (::rename(fresh.c_str(), path.c_str()) != 0) return failed_at(path, "cannot be replaced");
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || ::fsync(fd) != 0) {
    const Status status = failed_at(folder, "did not reach the disk");
    if (fd >= 0) ::close(fd);
    return status;
  }
  ::close(fd);
  return Status::ok();
}

}  // namespace

Result<WorkFolder> WorkFolder::open(const std::string& path, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    bool taken = false;
    ASSIGN_OR_RETURN(FileLock lock, lock_folder(path, taken));
    if (!taken) return WorkFolder(path, 1, std::move(lock));
    if (std::chrono::steady_clock::now() >= end) return in_use(path, lock);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Result<WorkFolder> WorkFolder::open_first_free(const std::string& path) {
  for (int i = 1; i <= kMostWorkers; ++i) {
    const std::string next = i == 1 ? path : str(path, "-", i);
    bool taken = false;
    ASSIGN_OR_RETURN(FileLock lock, lock_folder(next, taken));
    if (!taken) return WorkFolder(next, i, std::move(lock));
  }
  return failed("work folder ", path, ": it and ", kMostWorkers - 1, " more are in use by other workers");
}

std::string WorkFolder::worker_id(const std::string& host, std::string& warning) const {
  if (Result<std::string> known = read_whole(path_ + "/worker_id"); known.is_ok()) {
    std::string id = known.value();
    if (id.ends_with('\n')) id.pop_back();
    if (is_id_of(id, host)) return id;
  }
  char digits[kIdDigits + 1];
  std::snprintf(digits, sizeof digits, "%08x", std::random_device{}());
  const std::string id = host + "-" + digits;
  if (const Status kept = keep_id(path_, id); !kept.is_ok())
    warning = str(kept.message(), "; this worker will have another id after a restart");
  return id;
}

bool work_folder_in_use(const std::string& path) {
  struct stat info {};
  if (::lstat(lock_path(path).c_str(), &info) != 0) return false;
  Result<FileLock> lock = FileLock::open(lock_path(path), 0600);
  if (!lock.is_ok()) return false;
  const Result<bool> locked = lock->try_lock();
  return !locked.is_ok() || !*locked;  // where nobody can tell, it is
}

Status disk_takes(const std::string& folder, int64_t bytes) {
  static std::atomic<int> probes{0};
  const std::string probe = str(folder, "/probe.", ::getpid(), ".", ++probes);
  const Status written = write_synced(probe, std::string(static_cast<size_t>(bytes), 'x'));
  const bool removed = ::unlink(probe.c_str()) == 0;
  if (written.is_ok() && !removed) return failed_at(probe, "cannot be removed");
  return written;
}

}  // namespace tuner
