#include "measure_server/worker/spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

namespace tuner {
namespace {

constexpr uint32_t kMaxRecordBytes = 4 << 20;

uint32_t checksum(std::string_view bytes) {
  return static_cast<uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
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
  size_t good = 0;
  while (bytes.size() - good >= 8) {
    uint32_t header[2];
    std::memcpy(header, bytes.data() + good, sizeof header);
    if (header[0] > kMaxRecordBytes || bytes.size() - good - 8 < header[0]) break;
    const std::string_view frame = std::string_view(bytes).substr(good + 8, header[0]);
    v1::MeasureRecord record;
    if (checksum(frame) != header[1] || !record.ParseFromArray(frame.data(), static_cast<int>(frame.size())))
      break;
    spool->found_.push_back(std::move(record));
    good += 8 + header[0];
  }
  if (good < bytes.size()) {
    spool->warning_ = str("spool ", path, ": dropped ", bytes.size() - good, " bytes behind record ",
                          spool->found_.size(), " that are torn or do not match their checksum");
    if (::ftruncate(fd, static_cast<off_t>(good)) != 0)
      return failed("spool ", path, ": cannot be cut: ", errno_text());
  }
  if (::lseek(fd, static_cast<off_t>(good), SEEK_SET) < 0) return failed("spool ", path, ": ", errno_text());
  spool->dirty_ = good > 0;
  return spool;
}

Spool::~Spool() { ::close(fd_); }

Status Spool::append(const v1::MeasureRecord& record) {
  const std::string frame = frame_of(record.SerializeAsString());
  std::lock_guard lock(mutex_);
  const off_t start = ::lseek(fd_, 0, SEEK_CUR);
  size_t done = 0;
  while (done < frame.size()) {
    const ssize_t n = ::write(fd_, frame.data() + done, frame.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const Status status =
          failed("spool ", path_, ": a result cannot be written: ", errno_text(), "; free some disk space");
      // Half a frame would hide what follows it.
      if (::ftruncate(fd_, start) == 0) ::lseek(fd_, start, SEEK_SET);
      return status;
    }
    done += static_cast<size_t>(n);
  }
  // A failed fsync must not be tried again: the kernel may have dropped the pages it could not write.
  if (::fdatasync(fd_) != 0)
    return failed("spool ", path_, ": a result did not reach the disk: ", errno_text());
  dirty_ = true;
  return Status::ok();
}

void Spool::clear() {
  std::lock_guard lock(mutex_);
  if (!dirty_) return;
  if (::ftruncate(fd_, 0) == 0 && ::lseek(fd_, 0, SEEK_SET) == 0) dirty_ = false;
}

}  // namespace tuner
