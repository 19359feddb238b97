// FileLock: an exclusive lock on a file, for all processes of this host (flock). The kernel frees it when the
// process ends, however that happens. Two FileLocks of one process exclude each other too.
#pragma once

#include <sys/types.h>

#include <string>

#include "compiler_core/base/status.h"

namespace tuner {

class FileLock {
 public:
  FileLock() = default;
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

  // Opens the file without locking it. It is made with these permissions if it is missing, whatever the
  // umask; a file of another user needs to be readable only. No link is followed.
  static Result<FileLock> open(const std::string& path, mode_t mode);

  // True: this holds it now; false: another has it. Failed: there are no locks on this file system (NFS
  // without its lock service, some file systems of user space), which waiting does not change.
  Result<bool> try_lock();
  void unlock();
  // True if the file at its path is still the one that is open, so that others lock the same one.
  bool is_current() const;
  // Returns the process that holds it, as far as the kernel tells; 0: nobody, or a process elsewhere (in
  // another container).
  pid_t holder() const;
  const std::string& path() const { return path_; }

 private:
  FileLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_ = -1;
};

// True if the process is stopped (SIGSTOP, Ctrl-Z, a debugger): it does nothing until somebody continues it.
bool is_stopped(pid_t pid);
// CPU time of it and of all that it started, in clock ticks: a worker that is stopped may have a runner that
// is not.
int64_t ticks_of_tree(pid_t pid);
// Returns "process 123 (measure_server)", with "of user 1000" behind it if that is not ours; "another
// process" for 0.
std::string process_text(pid_t pid);

}  // namespace tuner
