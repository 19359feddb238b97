#include "measure_server/worker/spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tuner {
namespace {

constexpr uint32_t kMaxRecordBytes = 4 << 20;

// CRC-32C (Castagnoli), through a table of bytes.
uint32_t checksum(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
      t[i] = c;
    }
    return t;
  }();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::string frame_of(std::string_view bytes) {
  const uint32_t header[2] = {static_cast<uint32_t>(bytes.size()), checksum(bytes)};
  std::string frame(reinterpret_cast<const char*>(header), sizeof header);
  return frame.append(bytes);
}

std::string errno_text() { return std::strerror(errno); }

Result<std::string> read_all(int fd, const std::string& path) {
  std::string bytes;
  char buffer[64 << 10];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("spool ", path, ": cannot be read: ", errno_text());
    if (n == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace

Result<std::unique_ptr<Spool>> Spool::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return failed("spool ", path, ": cannot be opened: ", errno_text());
  std::unique_ptr<Spool> spool(new Spool(path, fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    return Status(StatusCode::kAborted,
                  str("spool ", path, ": another worker uses this folder; give this one its own --work-dir"));
  ASSIGN_OR_RETURN(const std::string bytes, read_all(fd, path));
  size_t end = 0, damaged = 0;
  while (bytes.size() - end >= 8) {
    uint32_t header[2];
    std::memcpy(header, bytes.data() + end, sizeof header);
    if (header[0] > kMaxRecordBytes || bytes.size() - end - 8 < header[0]) break;
    const std::string_view frame = std::string_view(bytes).substr(end + 8, header[0]);
    v1::MeasureRecord record;
    if (checksum(frame) == header[1] && record.ParseFromArray(frame.data(), static_cast<int>(frame.size())))
      spool->found_.push_back(std::move(record));
    else
      ++damaged;
    end += 8 + header[0];
  }
  if (damaged > 0 || end < bytes.size())
    spool->warning_ =
        str("spool ", path, ": left out ", damaged, " damaged records and ", bytes.size() - end,
            " bytes of a torn one, kept ", spool->found_.size(), "; their trials will run again");
  if (end < bytes.size() && ::ftruncate(fd, static_cast<off_t>(end)) != 0)
    return failed("spool ", path, ": cannot be cut: ", errno_text());
  if (::lseek(fd, static_cast<off_t>(end), SEEK_SET) < 0) return failed("spool ", path, ": ", errno_text());
  spool->bytes_ = static_cast<int64_t>(end);
  return spool;
}

Spool::~Spool() { ::close(fd_); }

int64_t Spool::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

Status Spool::write_at_end(std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const Status status =
          failed("spool ", path_, ": a result cannot be written: ", errno_text(), "; free some disk space");
      // Half a frame would hide what follows it.
      if (::ftruncate(fd_, bytes_) == 0) ::lseek(fd_, bytes_, SEEK_SET);
      return status;
    }
    done += static_cast<size_t>(n);
  }
  // A failed fsync must not be tried again: the kernel may have dropped the pages it could not write.
  if (::fdatasync(fd_) != 0)
    return failed("spool ", path_, ": a result did not reach the disk: ", errno_text());
  bytes_ += static_cast<int64_t>(bytes.size());
  return Status::ok();
}

Status Spool::append(const v1::MeasureRecord& record) {
  const std::string frame = frame_of(record.SerializeAsString());
  std::lock_guard lock(mutex_);
  return write_at_end(frame);
}

void Spool::keep_only(const std::vector<v1::MeasureRecord>& owed) {
  std::lock_guard lock(mutex_);
  if (bytes_ == 0) return;
  if (owed.empty()) {
    if (::ftruncate(fd_, 0) == 0 && ::lseek(fd_, 0, SEEK_SET) == 0) bytes_ = 0;
    return;
  }
  // A new file beside it, locked before it takes the name.
  const std::string fresh = path_ + ".new";
  const int fd = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  Spool next(fresh, fd);
  std::string frames;
  for (const v1::MeasureRecord& record : owed) frames += frame_of(record.SerializeAsString());
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 || !next.write_at_end(frames).is_ok() ||
      ::rename(fresh.c_str(), path_.c_str()) != 0) {
    ::unlink(fresh.c_str());
    return;
  }
  std::swap(fd_, next.fd_);
  bytes_ = next.bytes_;
}

}  // namespace tuner
