// LineReader: reads a file line by line. It detects gzip by content. "-" is standard input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

struct gzFile_s;

namespace tuner::exchange {

class LineReader {
 public:
  // A longer line is cut to this many bytes, and too_long() is true.
  static constexpr size_t kLongest = size_t{96} << 20;

  // InvalidArgument: the file cannot be read.
  static Result<LineReader> open(const std::string& path);
  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&&) = delete;
  ~LineReader();

  // Reads the next line, without its "
  // " or "\r
  // ". Returns false at the end of the file, or if the rest cannot be decompressed; status() then tells.
  bool next(std::string& line);
  int64_t number() const { return number_; }  // number of the last line read, from 1
  bool ended() const { return ended_; }       // false if the last line of the file has no line break
  bool too_long() const { return too_long_; }
  const Status& status() const { return status_; }

 private:
  explicit LineReader(std::string path) : path_(std::move(path)), buffer_(size_t{1} << 18) {}
  bool fill();

  std::string path_;
  gzFile_s* file_ = nullptr;
  std::vector<char> buffer_;
  size_t at_ = 0, end_ = 0;
  int64_t number_ = 0;
  bool ended_ = true, too_long_ = false;
  Status status_;
};

}  // namespace tuner::exchange
