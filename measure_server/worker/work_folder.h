// WorkFolder: what is one worker's own on disk: its id and its spool. One process owns it at a time (a lock
// on its file `lock`), and while it does, no other worker has the id that is kept there.
#pragma once

#include <chrono>
#include <string>

#include "compiler_core/base/status.h"
#include "measure_server/runner/file_lock.h"

namespace tuner {

class WorkFolder {
 public:
  // Makes the folder if it is missing, and owns it. An owner that is about to end is waited for, `patience`
  // long. InvalidArgument: another process owns it; the message names it. Failed: what the disk says.
  static Result<WorkFolder> open(const std::string& path, std::chrono::milliseconds patience);
  // Owns the first of path, path-2, path-3, ... that nobody owns: several workers of one host and user.
  static Result<WorkFolder> open_first_free(const std::string& path);

  const std::string& path() const { return path_; }
  int number() const { return number_; }  // 1; 2, 3, ... for path-2, path-3, ...
  // Returns "HOST-1f2e3d4c", made at the first call and kept in the file worker_id. A folder that came from
  // another host gets an id of its own. An id that cannot be kept serves this process; `warning` says why.
  std::string worker_id(const std::string& host, std::string& warning) const;

 private:
  WorkFolder(std::string path, int number, FileLock lock)
      : path_(std::move(path)), number_(number), lock_(std::move(lock)) {}
  std::string path_;
  int number_;
  FileLock lock_;
};

// True if a process owns the work folder at `path` now.
bool work_folder_in_use(const std::string& path);

// Writes, syncs and removes a file of `bytes` in the folder. Failed: what the disk says.
Status disk_takes(const std::string& folder, int64_t bytes = 256 << 10);

}  // namespace tuner
