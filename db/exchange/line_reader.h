// LineReader: the lines of a file, compressed (gzip) or not, told by its content. "-" is standard input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

struct gzFile_s;

namespace tuner::exchange {

class LineReader {
 public:
  // Longer lines are cut to this many bytes and marked.
  static constexpr size_t kLongest = size_t{64} << 20;

  // InvalidArgument: it cannot be read.
  static Result<LineReader> open(const std::string& path);
  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&&) = delete;
  ~LineReader();

  // The next line without its end ("\n" or "\r\n"); false at the end of the file, or when what follows cannot
  // be decompressed: status() then tells.
  bool next(std::string& line);
  int64_t number() const { return number_; }  // of the last line, from 1
  bool ended() const { return ended_; }       // it had an end; false only of a last line
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
