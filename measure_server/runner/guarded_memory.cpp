#include "measure_server/runner/guarded_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "compiler_core/base/int_math.h"

namespace tuner {

namespace {

constexpr int64_t kGuardBytes = 64 << 10;  // also a multiple of the page size where pages are 16 or 64 KiB
constexpr unsigned char kSlackByte = 0xA5;
constexpr int64_t kLargePage = 2 << 20;

int64_t page_bytes() {
  static const int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}
// Pages for `bytes` of data, and where in them the data begins.
int64_t middle_bytes(int64_t bytes) { return round_up(std::max<int64_t>(bytes, 1), page_bytes()); }
int64_t data_offset(int64_t bytes) { return middle_bytes(bytes) - round_up(bytes, kOperandAlignment); }

}  // namespace

int64_t GuardedBuffer::mapped_bytes(int64_t bytes) {
  return middle_bytes(bytes) + 2 * kGuardBytes + (bytes >= kLargePage ? kLargePage : 0);
}

Result<GuardedBuffer> GuardedBuffer::create(int64_t bytes, Sharing sharing, void* where) {
  GuardedBuffer b;
  const bool large = sharing == Sharing::kPrivate && bytes >= kLargePage;
  const int64_t middle = middle_bytes(bytes);
  const int64_t mapped = middle + 2 * kGuardBytes + (large ? kLargePage : 0);  // to end at a border
  const int flags = (sharing == Sharing::kShared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE;
  void* base = mmap(where, mapped, PROT_NONE, flags, -1, 0);
  if (base == MAP_FAILED)
    return failed("no memory for an operand of ", bytes, " bytes: ", std::strerror(errno));
  b.base_ = static_cast<char*>(base);
  b.mapped_ = mapped;
  b.lead_ = kGuardBytes;
  if (large) {
    const auto end = static_cast<int64_t>(reinterpret_cast<intptr_t>(base)) + kGuardBytes + middle;
    b.lead_ += round_up(end, kLargePage) - end;
  }
  b.middle_ = middle;
  b.data_ = b.base_ + b.lead_ + data_offset(bytes);
  b.bytes_ = bytes;
  char* const pages = b.base_ + b.lead_;
  if (mprotect(pages, middle, PROT_READ | PROT_WRITE) != 0)
    return failed("no memory for an operand of ", bytes, " bytes: ", std::strerror(errno));
  if (large) {
    const int64_t whole = middle / kLargePage * kLargePage;  // what is in front of them takes small pages
    madvise(pages + middle - whole, whole, MADV_HUGEPAGE);
  }
  b.populate();
  b.fill_slack();
  return b;
}

Result<GuardedBuffer> GuardedBuffer::map_sealed(int fd, int64_t bytes, void* where) {
  GuardedBuffer b;
  const int64_t middle = middle_bytes(bytes);
  void* base =
      mmap(where, middle + 2 * kGuardBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return failed("no address space for an input of ", bytes, " bytes: ", std::strerror(errno));
  b.base_ = static_cast<char*>(base);
  b.mapped_ = middle + 2 * kGuardBytes;
  b.lead_ = kGuardBytes;
  b.middle_ = middle;
  b.data_ = b.base_ + kGuardBytes + data_offset(bytes);
  b.bytes_ = bytes;
  if (mmap(b.base_ + kGuardBytes, middle, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) ==
      MAP_FAILED)
    return failed("an input of ", bytes, " bytes cannot be mapped: ", std::strerror(errno));
  return b;
}

GuardedBuffer::~GuardedBuffer() {
  if (base_ != nullptr) munmap(base_, mapped_);
}

void GuardedBuffer::fill(unsigned char byte) const { std::memset(data_, byte, bytes_); }

void GuardedBuffer::make_read_only() const { mprotect(base_ + lead_, middle_, PROT_READ); }

void GuardedBuffer::make_writable() const { mprotect(base_ + lead_, middle_, PROT_READ | PROT_WRITE); }

void GuardedBuffer::hide_from_children() const {
  if (base_ != nullptr) madvise(base_, static_cast<size_t>(mapped_), MADV_DONTFORK);
}

void GuardedBuffer::fill_slack() const {
  std::memset(base_ + lead_, kSlackByte, static_cast<size_t>(data_ - base_ - lead_));
  std::memset(data_ + bytes_, kSlackByte, round_up(bytes_, kOperandAlignment) - bytes_);
}

void GuardedBuffer::renew() const {
  madvise(base_, static_cast<size_t>(mapped_), MADV_DOFORK);
  fill_slack();
}

void GuardedBuffer::populate() const {
#if !defined(MADV_POPULATE_WRITE)
  constexpr int MADV_POPULATE_WRITE = 23;
#endif
  madvise(base_ + lead_, static_cast<size_t>(middle_), MADV_POPULATE_WRITE);
}

Status GuardedBuffer::move_here(void* pages) const {
  const auto size = static_cast<size_t>(middle_);
  if (mremap(pages, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, base_ + lead_) == MAP_FAILED)
    return failed("an operand's pages cannot be moved: ", std::strerror(errno));
  return Status::ok();
}

Status GuardedBuffer::take_pages_of(const GuardedBuffer& other) const {
  CHECK(bytes_ == other.bytes_) << "buffers of " << bytes_ << " and " << other.bytes_ << " bytes";
  return move_here(other.base_ + lead_);
}

Status GuardedBuffer::move_to(void* where) {
  const auto size = static_cast<size_t>(mapped_);
  void* const base = mmap(where, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return failed("no address space for an operand: ", std::strerror(errno));
  GuardedBuffer moved;
  moved.base_ = static_cast<char*>(base);
  moved.mapped_ = mapped_, moved.lead_ = lead_, moved.middle_ = middle_, moved.bytes_ = bytes_;
  moved.data_ = moved.base_ + (data_ - base_);
  make_writable();
  RETURN_IF_ERROR(moved.move_here(base_ + lead_));
  swap(moved);
  return Status::ok();
}

Result<void*> GuardedBuffer::set_aside() const {
  const auto size = static_cast<size_t>(middle_);
  void* const aside = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (aside == MAP_FAILED ||
      mremap(base_ + lead_, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, aside) == MAP_FAILED)
    return failed("an operand's pages cannot be set aside: ", std::strerror(errno));
  return aside;
}

Status GuardedBuffer::put_back(void* pages) const { return move_here(pages); }

bool GuardedBuffer::intact() const {
  const char* const end = base_ + lead_ + middle_;
  for (const char* p = base_ + lead_; p < data_; ++p)
    if (static_cast<unsigned char>(*p) != kSlackByte) return false;
  for (const char* p = data_ + bytes_; p < end; ++p)
    if (static_cast<unsigned char>(*p) != kSlackByte) return false;
  return true;
}

namespace {

Status write_all(int fd, const char* from, int64_t size, int64_t offset) {
  while (size > 0) {
    const ssize_t n = pwrite(fd, from, size, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("writing to memory: ", std::strerror(errno));
    from += n, offset += n, size -= n;
  }
  return Status::ok();
}

Result<int> memory_file() {
  const int fd = memfd_create("tuner", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return failed("memfd_create: ", std::strerror(errno));
  return fd;
}

Status seal(int fd) {
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
    return failed("sealing a copy in memory: ", std::strerror(errno));
  return Status::ok();
}

}  // namespace

Result<std::shared_ptr<SealedFile>> SealedFile::of_bytes(std::string_view bytes) {
  auto file = std::make_shared<SealedFile>();
  ASSIGN_OR_RETURN(file->fd_, memory_file());
  file->bytes_ = static_cast<int64_t>(bytes.size());
  RETURN_IF_ERROR(write_all(file->fd_, bytes.data(), file->bytes_, 0));
  RETURN_IF_ERROR(seal(file->fd_));
  return file;
}

Result<std::shared_ptr<SealedFile>> SealedFile::copy_of(const std::string& path, Placement placement) {
  struct Closer {
    int fd;
    ~Closer() {
      if (fd >= 0) close(fd);
    }
  } in{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat st;
  if (in.fd < 0 || fstat(in.fd, &st) != 0) return failed(path, ": cannot be read: ", std::strerror(errno));
  if (!S_ISREG(st.st_mode)) return failed(path, ": not a regular file");
  auto file = std::make_shared<SealedFile>();
  ASSIGN_OR_RETURN(file->fd_, memory_file());
  file->bytes_ = st.st_size;
  int64_t at = 0;
  if (placement == Placement::kAtPageEnd) {
    at = data_offset(st.st_size);
    if (ftruncate(file->fd_, middle_bytes(st.st_size)) != 0)
      return failed(path, ": no memory for a copy: ", std::strerror(errno));
  }
  // The kernel copies: a reference answer that passed through our heap would be left there for candidates.
  if (lseek(file->fd_, at, SEEK_SET) < 0)
    return failed(path, ": no memory for a copy: ", std::strerror(errno));
  for (off_t done = 0; done < st.st_size;) {
    const ssize_t n = sendfile(file->fd_, in.fd, &done, static_cast<size_t>(st.st_size - done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed(path, ": cannot be read: ", n == 0 ? "became shorter" : std::strerror(errno));
  }
  RETURN_IF_ERROR(seal(file->fd_));
  return file;
}

SealedFile::~SealedFile() {
  if (mapping_ != nullptr) munmap(mapping_, bytes_);
  if (fd_ >= 0) close(fd_);
}

Result<std::string_view> SealedFile::map_hidden_from_children() {
  if (bytes_ == 0) return std::string_view();
  if (mapping_ == nullptr) {
    void* p = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED | MAP_POPULATE, fd_, 0);
    if (p == MAP_FAILED) return failed("mapping ", bytes_, " bytes: ", std::strerror(errno));
    mapping_ = static_cast<char*>(p);
    if (madvise(mapping_, bytes_, MADV_DONTFORK) != 0)
      return failed("madvise(MADV_DONTFORK): ", std::strerror(errno));
  }
  return std::string_view(mapping_, bytes_);
}

Result<std::string> SealedFiles::identity_of(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return failed(path, ": cannot be read: ", std::strerror(errno));
  return str(st.st_dev, " ", st.st_ino, " ", st.st_size, " ", st.st_mtim.tv_sec, " ", st.st_mtim.tv_nsec);
}

Result<std::shared_ptr<SealedFile>> SealedFiles::get(const std::string& path,
                                                     SealedFile::Placement placement) {
  ASSIGN_OR_RETURN(const std::string identity, identity_of(path));
  Entry& entry = entries_[{path, placement}];
  entry.used = ++clock_;
  if (entry.identity == identity && entry.file != nullptr) return entry.file;
  entry.file = nullptr;
  std::error_code error;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  int64_t held = 0;
  for (const auto& [key, e] : entries_) held += e.file != nullptr ? e.file->bytes() : 0;
  while (held + bytes > capacity_bytes_) {
    auto oldest = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it)
      if (it->second.file != nullptr && (oldest == entries_.end() || it->second.used < oldest->second.used))
        oldest = it;
    if (oldest == entries_.end()) break;  // one file larger than the cache: kept while it is in use
    held -= oldest->second.file->bytes();
    entries_.erase(oldest);
  }
  ASSIGN_OR_RETURN(entry.file, SealedFile::copy_of(path, placement));
  entry.identity = identity;
  return entry.file;
}

}  // namespace tuner
