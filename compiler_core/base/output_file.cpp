#include "compiler_core/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tuner {

namespace {

namespace fs = std::filesystem;

Status refused(const std::string& path, const std::string& why) {
  return invalid_argument(path, ": cannot be written: ", why);
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

// Whether it is a regular file that begins as SQLite databases do.
bool is_database(const std::string& path) {
  constexpr std::string_view kHeader("SQLite format 3\0", 16);
  char head[kHeader.size()];
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  const ssize_t n = ::read(fd, head, sizeof head);
  ::close(fd);
  return n == static_cast<ssize_t>(kHeader.size()) && std::string_view(head, sizeof head) == kHeader;
}

struct Place {
  std::string target;   // the file that is to be replaced or made
  bool direct = false;  // written to as it is: a device, a FIFO, a descriptor under /proc
  mode_t mode = 0;      // of the regular file that is there; 0: none is
};

Result<Place> place_of(const std::string& path) {
  struct stat info {};
  const bool there = ::stat(path.c_str(), &info) == 0;
  if (!there && errno != ENOENT) return refused(path, std::strerror(errno));
  if (there && S_ISDIR(info.st_mode))
    return invalid_argument(path, ": is a folder, expected the name of a file to write");
  if (there && !S_ISREG(info.st_mode)) return Place{.target = path, .direct = true};
  ASSIGN_OR_RETURN(const std::string target, follow_links(path));
  // /dev/stdout of a process whose output is a file: the file belongs to whoever opened it.
  if (target.starts_with("/proc/")) return Place{.target = path, .direct = true};
  const std::string folder = folder_of(target);
  if (::stat(folder.c_str(), &info) != 0 && errno == ENOENT)
    return refused(path, str("its folder ", folder, " does not exist"));
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return refused(path, str("its folder ", folder, ": ", std::strerror(errno)));
  Place place{.target = target};
  if (there) {
    ::stat(path.c_str(), &info);
    place.mode = info.st_mode & 07777;
    if (::access(path.c_str(), W_OK) != 0) return refused(path, std::strerror(errno));
    if (is_database(path))
      return invalid_argument(path,
                              ": is an SQLite database, which would be replaced; expected another name");
  }
  return place;
}

// Without O_TMPFILE, or with a folder that has it not.
bool has_no_unnamed_files(int code) {
  return code == EOPNOTSUPP || code == EISDIR || code == ENOENT || code == EINVAL;
}

// Returns errno, 0 when the disk did not take all of it, or -1: all is written.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : 0;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return -1;
}

}  // namespace

Result<std::string> follow_links(const std::string& path) {
  fs::path at = path;
  std::error_code error;
  constexpr int kMostLinks = 40;  // as the kernel
  for (int links = 0; links <= kMostLinks; ++links) {
    const fs::path folder = fs::canonical(folder_of(at), error);
    if (!error) at = folder / at.filename();
    if (error || at.string().starts_with("/proc/") || !fs::is_symlink(at, error)) return at.string();
    const fs::path to = fs::read_symlink(at, error);
    if (error) return refused(path, error.message());
    at = to.is_absolute() ? to : folder / to;
  }
  return refused(path, std::strerror(ELOOP));
}

Result<OutputFile> OutputFile::open(const std::string& path) {
  OutputFile out(path);
  if (path == "-") {
    out.path_ = "standard output";
    if (std::fflush(stdout) != 0) return out.error(errno);
    out.fd_ = STDOUT_FILENO;
    out.owned_ = false;
    return out;
  }
  if (path.empty()) return invalid_argument("-o: expected the name of a file, found \"\"");
  ASSIGN_OR_RETURN(const Place place, place_of(path));
  if (place.direct) {
    out.fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (out.fd_ < 0) return refused(path, std::strerror(errno));
    return out;
  }
  RETURN_IF_ERROR(out.open_beside(place.target));
  // As when it had been opened and written over: it stays as private as it was.
  if (place.mode != 0 && ::fchmod(out.fd_, place.mode) != 0) return out.error(errno);
  return out;
}

Status OutputFile::open_beside(const std::string& target) {
  target_ = target;
  // An unnamed file gets its name by way of /proc.
  const bool can_name = ::access("/proc/self/fd", X_OK) == 0;
  if (can_name) fd_ = ::open(folder_of(target).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd_ >= 0) return Status::ok();
  if (can_name && !has_no_unnamed_files(errno)) return refused(path_, std::strerror(errno));
  temporary_ = target + ".part";
  fd_ = ::open(temporary_.c_str(), O_CREAT | O_TRUNC | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0666);
  if (fd_ >= 0) return Status::ok();
  temporary_.clear();  // it is somebody else's
  return refused(path_, std::strerror(errno));
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, "")),
      owned_(other.owned_),
      fd_(std::exchange(other.fd_, -1)) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0 && owned_) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status OutputFile::error(int code) const {
  return failed(path_, ": ", code != 0 ? std::strerror(code) : "the disk did not take all of it");
}

Status OutputFile::write(std::string_view bytes) {
  const int code = write_all(fd_, bytes);
  return code < 0 ? Status::ok() : error(code);
}

// An unnamed file gets a name of its own: link() replaces nothing, rename() does.
Status OutputFile::name_temporary() {
  const std::string self = str("/proc/self/fd/", fd_);
  const std::string name = str(target_, ".", ::getpid(), ".part");
  if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) return error(errno);
  temporary_ = name;
  return Status::ok();
}

Status OutputFile::finish() {
  if (target_.empty()) {
    const bool closed = !owned_ || ::close(fd_) == 0;
    fd_ = -1;
    return closed ? Status::ok() : error(errno);
  }
  if (::fsync(fd_) != 0) return error(errno);
  if (temporary_.empty()) RETURN_IF_ERROR(name_temporary());
  const bool closed = ::close(fd_) == 0;
  fd_ = -1;
  if (!closed || ::rename(temporary_.c_str(), target_.c_str()) != 0) return error(errno);
  temporary_.clear();
  return Status::ok();
}

Status write_file(const std::string& path, std::string_view bytes) {
  ASSIGN_OR_RETURN(OutputFile out, OutputFile::open(path));
  RETURN_IF_ERROR(out.write(bytes));
  return out.finish();
}

Status replace_file(const std::string& path, std::string_view bytes, Durability durability) {
  // Process and counter: writers never share a name.
  static std::atomic<uint64_t> counter{0};
  const std::string temporary = str(path, ".", ::getpid(), ".", counter++, ".tmp");
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return failed(path, ": cannot be written: ", std::strerror(errno));
  int code = write_all(fd, bytes);
  if (code < 0 && durability == Durability::kSynced && ::fsync(fd) != 0) code = errno;
  if (::close(fd) != 0 && code < 0) code = errno;
  if (code < 0 && ::rename(temporary.c_str(), path.c_str()) != 0) code = errno;
  if (code < 0) return Status::ok();
  ::unlink(temporary.c_str());
  return failed(path, ": cannot be written: ", std::strerror(code != 0 ? code : ENOSPC));
}

Status make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? failed(path, ": cannot be made: ", error.message()) : Status::ok();
}

Status check_output(const std::string& path, std::span<const std::string> read) {
  if (path == "-") return Status::ok();
  if (path.empty()) return invalid_argument("-o: expected the name of a file, found \"\"");
  struct stat out {};
  if (::stat(path.c_str(), &out) == 0 && S_ISREG(out.st_mode))
    for (const std::string& name : read) {
      struct stat in {};
      if (::stat(name.c_str(), &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return invalid_argument(path,
                                ": would replace a file that this command reads; expected another name");
    }
  return place_of(path).status();
}

}  // namespace tuner
