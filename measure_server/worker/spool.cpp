#include "measure_server/worker/spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace tuner {
namespace {

constexpr uint32_t kMaxRecordBytes = 4 << 20;

enum class Kind : uint8_t { kRecord = 0, kRace = 1 };

// CRC-32C (Castagnoli), through a table of bytes.
uint32_t checksum(Kind kind, std::string_view bytes) {
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
  const auto add = [&](char byte) {
    crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  };
  if (kind != Kind::kRecord) add(static_cast<char>(kind));
  for (const char byte : bytes) add(byte);
  return ~crc;
}

std::string frame_of(Kind kind, std::string_view bytes) {
  const uint32_t header[2] = {static_cast<uint32_t>(bytes.size()) | static_cast<uint32_t>(kind) << 24,
                              checksum(kind, bytes)};
  std::string frame(reinterpret_cast<const char*>(header), sizeof header);
  return frame.append(bytes);
}
std::string frame_of(const v1::MeasureRecord& record) {
  return frame_of(Kind::kRecord, record.SerializeAsString());
}
std::string frame_of(const v1::RaceResult& race) { return frame_of(Kind::kRace, race.SerializeAsString()); }

// Adds the message to its list. False: it is damaged.
bool take(Kind kind, uint32_t expected, std::string_view bytes, std::vector<v1::MeasureRecord>& records,
          std::vector<v1::RaceResult>& races) {
  const auto parse = [&]<class Message>(std::vector<Message>& list) {
    Message message;
    if (checksum(kind, bytes) != expected ||
        !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return false;
    list.push_back(std::move(message));
    return true;
  };
  if (kind == Kind::kRecord) return parse(records);
  return kind == Kind::kRace && parse(races);
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

// Makes a new name in the folder of `path` survive a power loss.
Status sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed("folder ", folder, ": ", errno_text());
  const Status status =
      ::fsync(fd) == 0 ? Status::ok() : failed("folder ", folder, " did not reach the disk: ", errno_text());
  ::close(fd);
  return status;
}

}  // namespace

Result<std::unique_ptr<Spool>> Spool::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return failed("spool ", path, ": cannot be opened: ", errno_text());
  std::unique_ptr<Spool> spool(new Spool(path, fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno != EWOULDBLOCK)
    return invalid_argument("spool ", path, ": cannot be locked on this file system: ", errno_text(),
                            "; choose another folder with --work-dir");
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    return Status(StatusCode::kAborted,
                  str("spool ", path, ": another worker uses this folder; give this one its own --work-dir"));
  ASSIGN_OR_RETURN(const std::string bytes, read_all(fd, path));
  size_t end = 0, damaged = 0;
  while (bytes.size() - end >= 8) {
    uint32_t header[2];
    std::memcpy(header, bytes.data() + end, sizeof header);
    const uint32_t size = header[0] & 0xffffff;
    // No message is empty; zeros are what a power loss may leave of a write.
    if (size == 0 || size > kMaxRecordBytes || bytes.size() - end - 8 < size) break;
    if (!take(static_cast<Kind>(header[0] >> 24), header[1], std::string_view(bytes).substr(end + 8, size),
              spool->found_, spool->found_races_))
      ++damaged;
    end += 8 + size;
  }
  if (damaged > 0 || end < bytes.size())
    spool->warning_ = str("spool ", path, ": left out ", damaged, " damaged records and ", bytes.size() - end,
                          " bytes of a torn one, kept ", spool->found_.size() + spool->found_races_.size(),
                          "; their trials will run again");
  if (end < bytes.size() && ::ftruncate(fd, static_cast<off_t>(end)) != 0)
    return failed("spool ", path, ": cannot be cut: ", errno_text());
  if (::lseek(fd, static_cast<off_t>(end), SEEK_SET) < 0) return failed("spool ", path, ": ", errno_text());
  spool->bytes_ = static_cast<int64_t>(end);
  if (end == 0) (void)sync_folder_of(path);  // perhaps new; a disk that fails now says so at the first result
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
  // A failed fsync must not be tried again: the kernel may have dropped the pages it could not write, of this
  // frame or of those before. keep_only() writes all of them to a new file.
  if (::fdatasync(fd_) != 0) {
    lost_pages_ = true;
    return failed("spool ", path_, ": a result did not reach the disk: ", errno_text());
  }
  bytes_ += static_cast<int64_t>(bytes.size());
  return Status::ok();
}

Status Spool::check_length(std::string_view frame) const {
  if (frame.size() - 8 <= kMaxRecordBytes) return Status::ok();
  return failed("spool ", path_, ": a result of ", frame.size() - 8, " bytes is too long, at most ",
                kMaxRecordBytes, " are kept");
}

Status Spool::append_frames(std::string_view frames) {
  std::lock_guard lock(mutex_);
  if (lost_pages_) return failed("spool ", path_, ": the disk failed before; the file must be written anew");
  return write_at_end(frames);
}

Status Spool::append(std::span<const v1::MeasureRecord* const> records) {
  std::string frames;
  for (const v1::MeasureRecord* record : records) {
    const std::string frame = frame_of(*record);
    RETURN_IF_ERROR(check_length(frame));
    frames += frame;
  }
  return append_frames(frames);
}

Status Spool::append(const v1::RaceResult& race) {
  const std::string frame = frame_of(race);
  RETURN_IF_ERROR(check_length(frame));
  return append_frames(frame);
}

Status Spool::empty() {
  if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0)
    return failed("spool ", path_, ": cannot be emptied: ", errno_text());
  bytes_ = 0;
  lost_pages_ = false;
  return Status::ok();
}

Status Spool::keep_only(const std::vector<v1::MeasureRecord>& owed,
                        const std::vector<v1::RaceResult>& races) {
  std::lock_guard lock(mutex_);
  if (owed.empty() && races.empty()) return bytes_ == 0 && !lost_pages_ ? Status::ok() : empty();
  // A new file beside it, locked before it takes the name.
  const std::string fresh = path_ + ".new";
  const int fd = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return failed("spool ", fresh, ": cannot be made: ", errno_text());
  Spool next(fresh, fd);
  std::string frames;
  for (const v1::MeasureRecord& record : owed) frames += frame_of(record);
  for (const v1::RaceResult& race : races) frames += frame_of(race);
  Status status = next.write_at_end(frames);
  if (status.is_ok() && (::flock(fd, LOCK_EX | LOCK_NB) != 0 || ::rename(fresh.c_str(), path_.c_str()) != 0))
    status = failed("spool ", path_, ": cannot be replaced: ", errno_text());
  if (!status.is_ok()) {
    ::unlink(fresh.c_str());
    return status;
  }
  std::swap(fd_, next.fd_);
  bytes_ = next.bytes_;
  lost_pages_ = false;
  return sync_folder_of(path_);
}

}  // namespace tuner
