// Spool: results on disk until the daemon has them. Append-only file of frames: u32 length, u32 CRC-32 of the
// bytes, the bytes of a MeasureRecord; little-endian. A torn tail (the process died while writing) is cut off
// at open; a frame whose sum is wrong in the middle ends the file too, and says so. Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
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
  // Non-empty when open() had to cut: "spool: 13 bytes of a torn record were dropped".
  const std::string& warning() const { return warning_; }
  // On disk when this returns OK.
  Status append(const v1::MeasureRecord& record);
  // Everything in it has been acknowledged: starts over. The caller sees to it that no append is going on. A
  // failure to shorten the file is harmless: its records are then sent once more after a restart.
  void clear();

 private:
  Spool(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
  std::mutex mutex_;
  bool dirty_ = false;  // the file holds something
  std::vector<v1::MeasureRecord> found_;
  std::string warning_;
};

}  // namespace tuner
