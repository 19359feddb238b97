// FileLock: the OS lock that keeps a second writing process away from a database.
#pragma once

#include <string>

#include "compiler_core/base/status.h"

namespace tuner::db {

// Held from acquire() until destroyed or the process ends, however it ends. Not inherited by programs this
// process starts.
class FileLock {
 public:
  // Aborted when another process holds it; the message names its pid.
  static Result<FileLock> acquire(const std::string& path);
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

// Refuses filesystems over a network: their locks and shared memory do not keep the promises SQLite's WAL
// needs.
Status refuse_network_filesystem(const std::string& path);

}  // namespace tuner::db
