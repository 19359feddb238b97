// Spool: keeps results on disk until the daemon has them. An append-only file of frames: u32 length, u32
// CRC-32C, the bytes of a message; little-endian. The top byte of the length says which message: 0, a
// MeasureRecord (its checksum is of the bytes alone, as in files of before there were others); 1, a
// RaceResult (its checksum is of the byte 1 and the bytes). open() cuts off a torn tail (the process died
// while writing) and leaves out a message with a wrong checksum; its trial or race will be run again. Any
// thread may use it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
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

  // Return what open() found, each kind in the order written.
  const std::vector<v1::MeasureRecord>& records() const { return found_; }
  const std::vector<v1::RaceResult>& races() const { return found_races_; }
  // Says what open() had to leave out; empty if nothing.
  const std::string& warning() const { return warning_; }
  // The results are on disk when this returns OK. Failed: the disk refuses them; the file is as it was.
  Status append(std::span<const v1::MeasureRecord* const> records);
  Status append(const v1::MeasureRecord& record) { return append(std::vector{&record}); }
  Status append(const v1::RaceResult& race);
  // Makes the file hold just these: shortens it once all others are acknowledged, or writes it anew after an
  // append failed. The caller must make sure that no append is running. After a failure the file is as it
  // was, and a result that is acknowledged but still in it is sent once more after a restart, which is
  // harmless.
  Status keep_only(const std::vector<v1::MeasureRecord>& owed, const std::vector<v1::RaceResult>& races = {});
  int64_t bytes() const;

 private:
  Spool(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status check_length(std::string_view frame) const;
  Status append_frames(std::string_view frames);
  Status write_at_end(std::string_view bytes);
  Status empty();

  std::string path_;
  int fd_;
  mutable std::mutex mutex_;
  int64_t bytes_ = 0;
  std::vector<v1::MeasureRecord> found_;
  std::vector<v1::RaceResult> found_races_;
  bool lost_pages_ = false;  // an fsync failed: the file may lack what was written before
  std::string warning_;
};

}  // namespace tuner
