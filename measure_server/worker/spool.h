// Spool: results on disk until the daemon has them. Append-only file of frames: u32 length, u32 CRC-32C of
// the bytes, the bytes of a MeasureRecord; little-endian. At open a torn tail (the process died while
// writing) is cut off, and a record whose sum is wrong is left out: its trial will be measured again. Any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "record.pb.h"

namespace tuner {

class Spool {
 public:
  // Creates the file when there is none. Aborted when another process has it open.
  static Result<std::unique_ptr<Spool>> open(const std::string& path);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // What was found at open, in the order written.
  const std::vector<v1::MeasureRecord>& records() const { return found_; }
  // What open() had to leave out; empty when nothing.
  const std::string& warning() const { return warning_; }
  // On disk when this returns OK.
  Status append(const v1::MeasureRecord& record);
  // All but `owed` has been acknowledged: shortens the file to these. The caller sees to it that no append is
  // going on. A failure is harmless: what is still in the file is sent once more after a restart.
  void keep_only(const std::vector<v1::MeasureRecord>& owed);
  int64_t bytes() const;

 private:
  Spool(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status write_at_end(std::string_view bytes);

  std::string path_;
  int fd_;
  mutable std::mutex mutex_;
  int64_t bytes_ = 0;
  std::vector<v1::MeasureRecord> found_;
  std::string warning_;
};

}  // namespace tuner
