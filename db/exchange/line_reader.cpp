#include "db/exchange/line_reader.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "compiler_core/base/input_file.h"

namespace tuner::exchange {

Result<LineReader> LineReader::open(const std::string& path) {
  LineReader reader(path);
  ASSIGN_OR_RETURN(const int fd, open_input(path, "a file of records"));
  reader.file_ = gzdopen(fd, "rb");
  if (reader.file_ == nullptr) {
    ::close(fd);
    return failed(path, ": out of memory");
  }
  gzbuffer(reader.file_, 1 << 18);
  return reader;
}

LineReader::LineReader(LineReader&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, nullptr)),
      buffer_(std::move(other.buffer_)),
      at_(other.at_),
      end_(other.end_),
      number_(other.number_),
      ended_(other.ended_),
      too_long_(other.too_long_),
      status_(std::move(other.status_)) {}

LineReader::~LineReader() {
  if (file_ != nullptr) gzclose(file_);
}

bool LineReader::fill() {
  if (!status_) return false;
  const int n = gzread(file_, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int code = Z_OK;
  const char* const text = gzerror(file_, &code);
  if (n < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    const std::string where = str(path_, ": after line ", number_, ": ");
    const std::string_view why = text;  // with zlib's name of the file before it, "<fd:3>: "
    status_ = code == Z_ERRNO ? failed(where, std::strerror(errno))
              : code == Z_BUF_ERROR
                  ? invalid_argument(where, "the compressed file is cut off")
                  : invalid_argument(where, why.substr(std::min(why.size(), why.find(": ") + 2)));
    if (n <= 0) return false;
  }
  at_ = 0;
  end_ = static_cast<size_t>(n);
  return n > 0;
}

bool LineReader::next(std::string& line) {
  line.clear();
  too_long_ = false;
  bool any = false;
  for (;;) {
    if (at_ == end_ && !fill()) {
      if (!any) return false;
      ended_ = false;
      ++number_;
      return true;
    }
    any = true;
    const char* const from = buffer_.data() + at_;
    const auto* const newline = static_cast<const char*>(std::memchr(from, '\n', end_ - at_));
    const size_t n = newline != nullptr ? static_cast<size_t>(newline - from) : end_ - at_;
    const size_t room = kLongest - line.size();
    too_long_ = too_long_ || n > room;
    line.append(from, std::min(n, room));
    at_ += n;
    if (newline == nullptr) continue;
    ++at_;
    ended_ = true;
    ++number_;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return true;
  }
}

}  // namespace tuner::exchange
