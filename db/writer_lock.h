// WriterLock: the OS lock that keeps a second writing process out of a database.
#pragma once

#include <string>
#include <utility>

#include "compiler_core/base/status.h"

namespace tuner::db {

// Held from acquire() until it is destroyed or the process ends, for whatever reason. Programs that this
// process starts do not inherit it.
class WriterLock {
 public:
  // Aborted: another process holds the lock; the message names its pid.
  static Result<WriterLock> acquire(const std::string& path);
  // True if some process holds the lock now. Creates no file and needs no write permission.
  static bool is_held(const std::string& path);
  WriterLock(WriterLock&& other) noexcept
      : path_(std::move(other.path_)), made_(other.made_), fd_(std::exchange(other.fd_, -1)) {}
  WriterLock& operator=(WriterLock&&) = delete;
  ~WriterLock();

  // Removes the file again if acquire() created it and the lock turned out not to be needed.
  void undo();

 private:
  WriterLock(std::string path, int fd, bool made) : path_(std::move(path)), made_(made), fd_(fd) {}
  std::string path_;
  bool made_;
  int fd_;
};

// Returns the lock file of a database. Links are followed, so every name of one database gives the same lock.
Result<std::string> lock_file_of(const std::string& database);
// True if a process has the database open for writing.
bool has_writer(const std::string& database);

// Refuses network filesystems: their locks and shared memory do not keep the promises that SQLite's WAL
// needs.
Status refuse_shared_filesystem(const std::string& path);
// What a filesystem with that number (statfs f_type) is called, if it is one of those; else null.
const char* shared_filesystem(uint32_t magic);

}  // namespace tuner::db
