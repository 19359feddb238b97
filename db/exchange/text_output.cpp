#include "db/exchange/text_output.h"

#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tuner::exchange {

Result<TextOutput> TextOutput::open(const std::string& path) {
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::open(path));
  TextOutput out(std::move(file));
  out.path_ = path;
  if (!path.ends_with(".gz")) return out;
  const int fd = ::dup(out.file_.descriptor());  // which gzclose() closes
  out.gz_ = fd < 0 ? nullptr : gzdopen(fd, "wb6");
  if (out.gz_ == nullptr) {
    if (fd >= 0) ::close(fd);
    return failed(path, ": out of memory or descriptors");
  }
  return out;
}

TextOutput::TextOutput(TextOutput&& other) noexcept
    : file_(std::move(other.file_)),
      path_(std::move(other.path_)),
      waiting_(std::move(other.waiting_)),
      gz_(std::exchange(other.gz_, nullptr)) {}

TextOutput::~TextOutput() {
  if (gz_ != nullptr) gzclose(gz_);
}

Status TextOutput::write(std::string_view text) {
  constexpr size_t kWaiting = size_t{1} << 18;
  waiting_ += text;
  return waiting_.size() < kWaiting ? Status::ok() : flush();
}

Status TextOutput::flush() {
  const std::string text = std::exchange(waiting_, {});
  if (gz_ == nullptr) return file_.write(text);
  // gzwrite counts in unsigned int and returns 0 for nothing.
  constexpr size_t kPiece = size_t{1} << 20;
  for (size_t at = 0; at < text.size(); at += kPiece) {
    const auto n = static_cast<unsigned>(std::min(kPiece, text.size() - at));
    errno = 0;
    if (gzwrite(gz_, text.data() + at, n) != static_cast<int>(n))
      return failed(path_, ": ", errno != 0 ? std::strerror(errno) : "the disk did not take all of it");
  }
  return Status::ok();
}

Status TextOutput::finish() {
  RETURN_IF_ERROR(flush());
  if (gz_ != nullptr) {
    errno = 0;
    if (gzclose(std::exchange(gz_, nullptr)) != Z_OK)
      return failed(path_, ": ", errno != 0 ? std::strerror(errno) : "the disk did not take all of it");
  }
  return file_.finish();
}

Status write_text(const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(TextOutput out, TextOutput::open(path));
  RETURN_IF_ERROR(out.write(text));
  return out.finish();
}

}  // namespace tuner::exchange
