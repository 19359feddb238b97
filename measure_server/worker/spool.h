// Spool: keeps results on disk until the daemon has them. An append-only file of frames: u32 length, u32
// CRC-32C of the bytes, the bytes of a MeasureRecord; little-endian. open() cuts off a torn tail (the process
// died while writing) and leaves out a record with a wrong checksum; its trial will be measured again. Any
// thread may use it.
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
  // Creates the file if needed. Aborted: another process has it open.
  static Result<std::unique_ptr<Spool>> open(const std::string& path);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // Returns the records found by open(), in the order written.
  const std::vector<v1::MeasureRecord>& records() const { return found_; }
  // Says what open() had to leave out; empty if nothing.
  const std::string& warning() const { return warning_; }
  // The record is on disk when this returns OK.
  Status append(const v1::MeasureRecord& record);
  // Shortens the file to `owed`, once all others are acknowledged. The caller must make sure that no append
  // is running. A failure is harmless: records still in the file are sent once more after a restart.
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
