// FileLock: the OS lock that keeps a second writing process away from a database.
#pragma once

#include <string>
#include <utility>

#include "compiler_core/base/status.h"

namespace tuner::db {

// Held from acquire() until destroyed or the process ends, however it ends. Not inherited by programs this
// process starts.
class FileLock {
 public:
  // Aborted when another process holds it; the message names its pid.
  static Result<FileLock> acquire(const std::string& path);
  // True if some process holds it now. Makes no file and asks for no right to write.
  static bool is_held(const std::string& path);
  FileLock(FileLock&& other) noexcept
      : path_(std::move(other.path_)), made_(other.made_), fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  // Removes the file again if acquire() made it: it was locked for nothing.
  void undo();

 private:
  FileLock(std::string path, int fd, bool made) : path_(std::move(path)), made_(made), fd_(fd) {}
  std::string path_;
  bool made_;
  int fd_;
};

// The lock of a database, of whatever name: links are followed.
Result<std::string> lock_file_of(const std::string& database);
// True if a process has the database open for writing.
bool has_writer(const std::string& database);

// Refuses filesystems over a network: their locks and shared memory do not keep the promises SQLite's WAL
// needs.
Status refuse_network_filesystem(const std::string& path);

}  // namespace tuner::db
