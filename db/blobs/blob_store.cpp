#include "db/blobs/blob_store.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "compiler_core/base/output_file.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

constexpr char kPart[] = ".part";
constexpr size_t kDigits = 64;

bool is_digest(std::string_view text) {
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status disk_error(const std::string& path) { return failed(path, ": ", std::strerror(errno)); }

// Of a whole file, block by block.
Result<std::string> sha256_of_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return disk_error(path);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  CHECK(context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1)
      << "SHA-256 is always available";
  std::vector<char> block(size_t{1} << 18);
  for (;;) {
    const ssize_t n = ::read(file.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return disk_error(path);
    if (n == 0) break;
    EVP_DigestUpdate(context.get(), block.data(), static_cast<size_t>(n));
  }
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_DigestFinal_ex(context.get(), hash, &length);
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    constexpr char kHex[] = "0123456789abcdef";
    hex += kHex[hash[i] >> 4];
    hex += kHex[hash[i] & 15];
  }
  return hex;
}

Status append(const std::string& path, int64_t offset, std::string_view bytes) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (file.get() < 0) return disk_error(path);
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file.get(), bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return disk_error(path);
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += n;
  }
  return Status::ok();
}

}  // namespace

Status check_blob_name(const BlobName& name) {
  if (!is_digest(name.sha256))
    return invalid_argument("blob.sha256: expected 64 lower-case hexadecimal digits, found ",
                            name.sha256.size(), " characters");
  if (name.bytes <= 0) return invalid_argument("blob.bytes: expected a number > 0, found ", name.bytes);
  return Status::ok();
}

Result<std::unique_ptr<BlobStore>> BlobStore::open(std::string folder, int64_t most_bytes) {
  RETURN_IF_ERROR(make_folders(folder));
  std::unique_ptr<BlobStore> store(new BlobStore(std::move(folder), most_bytes));
  RETURN_IF_ERROR(store->look());
  return store;
}

// What is there from before, in the order of its use. Names that are not ours are left alone.
Status BlobStore::look() {
  struct Found {
    fs::file_time_type time;
    std::string sha256;
    File file;
  };
  std::vector<Found> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    const std::string digest = name.substr(0, kDigits), ending = name.substr(digest.size());
    if (!is_digest(digest) || (!ending.empty() && ending != kPart) || !entry.is_regular_file(error)) continue;
    found.push_back(
        {entry.last_write_time(error),
         digest,
         {.bytes = static_cast<int64_t>(entry.file_size(error)), .whole = ending.empty(), .checked = false}});
  }
  if (error) return failed(folder_, ": ", error.message());
  std::ranges::sort(found, {}, &Found::time);
  for (Found& f : found) {
    File& file = files_[f.sha256];
    bytes_ += f.file.bytes - file.bytes;
    file = f.file;
    file.used = ++uses_;
  }
  make_room_locked("");
  return Status::ok();
}

std::string BlobStore::path(const std::string& sha256, bool whole) const {
  return str(folder_, "/", sha256, whole ? "" : kPart);
}

void BlobStore::use_locked(const std::string& sha256, File& file) {
  file.used = ++uses_;
  ::utimensat(AT_FDCWD, path(sha256, file.whole).c_str(), nullptr, 0);  // it counts after a restart only
}

void BlobStore::remove_locked(const std::string& sha256) {
  const auto it = files_.find(sha256);
  if (it == files_.end()) return;
  ::unlink(path(sha256, it->second.whole).c_str());
  bytes_ -= it->second.bytes;
  files_.erase(it);
}

void BlobStore::make_room_locked(const std::string& except) {
  while (bytes_ > most_bytes_) {
    const std::string* oldest = nullptr;
    uint64_t used = 0;
    for (const auto& [sha256, file] : files_)
      if (sha256 != except && (oldest == nullptr || file.used < used)) {
        oldest = &sha256;
        used = file.used;
      }
    if (oldest == nullptr) return;
    remove_locked(std::string(*oldest));
  }
}

// Here, whole and right. What is not right is removed.
bool BlobStore::good_locked(const BlobName& name) {
  const auto it = files_.find(name.sha256);
  if (it == files_.end() || !it->second.whole || it->second.bytes != name.bytes) return false;
  if (!it->second.checked) {
    const Result<std::string> found = sha256_of_file(path(name.sha256, /*whole=*/true));
    if (!found || *found != name.sha256) return remove_locked(name.sha256), false;
    it->second.checked = true;
  }
  use_locked(name.sha256, it->second);
  return true;
}

bool BlobStore::has(const BlobName& name) {
  const std::lock_guard lock(mutex_);
  return good_locked(name);
}

bool BlobStore::seems_to_have(const BlobName& name) const {
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(name.sha256);
  return it != files_.end() && it->second.whole && it->second.bytes == name.bytes;
}

Result<int64_t> BlobStore::write(const BlobName& name, int64_t offset, std::string_view bytes) {
  RETURN_IF_ERROR(check_blob_name(name));
  if (name.bytes > most_bytes_ / 4)
    return failed("a blob of ", name.bytes, " bytes is larger than a quarter of what the daemon keeps, ",
                  most_bytes_, " bytes (--artifact-gib)");
  const std::lock_guard lock(mutex_);
  const auto known = files_.find(name.sha256);
  const int64_t have = known == files_.end() ? 0 : known->second.bytes;
  if (known != files_.end() && known->second.whole) return have;
  // Its last byte came, and the process ended before it was looked at.
  if (known != files_.end() && have == name.bytes) {
    RETURN_IF_ERROR(finish_locked(name, known->second));
    return have;
  }
  if (bytes.empty() || offset != have) return have;
  const auto count = static_cast<int64_t>(bytes.size());
  if (have + count > name.bytes) {
    remove_locked(name.sha256);
    return invalid_argument("blob ", name.sha256, ": found more than its ", name.bytes, " bytes");
  }
  RETURN_IF_ERROR(append(path(name.sha256, /*whole=*/false), offset, bytes));
  File& file = files_[name.sha256];
  file.bytes += count;
  bytes_ += count;
  file.used = ++uses_;
  if (file.bytes == name.bytes) RETURN_IF_ERROR(finish_locked(name, file));
  make_room_locked(name.sha256);
  return have + count;
}

Status BlobStore::finish_locked(const BlobName& name, File& file) {
  const std::string part = path(name.sha256, /*whole=*/false), whole = path(name.sha256, /*whole=*/true);
  ASSIGN_OR_RETURN(const std::string found, sha256_of_file(part));
  if (found != name.sha256) {
    remove_locked(name.sha256);
    return invalid_argument("blob ", name.sha256, ": its ", name.bytes, " bytes have the digest ", found);
  }
  if (::rename(part.c_str(), whole.c_str()) != 0) return disk_error(whole);
  file.whole = file.checked = true;
  return Status::ok();
}

Result<std::string> BlobStore::read(const BlobName& name, int64_t offset, int64_t most) {
  RETURN_IF_ERROR(check_blob_name(name));
  const std::lock_guard lock(mutex_);
  if (!good_locked(name)) return not_found("blob ", name.sha256, " is not here");
  if (offset < 0 || offset > name.bytes)
    return invalid_argument("offset: expected 0 to ", name.bytes, ", found ", offset);
  const std::string from = path(name.sha256, /*whole=*/true);
  std::string bytes(static_cast<size_t>(std::min(most, name.bytes - offset)), '\0');
  const Descriptor file(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t n = file.get() < 0 ? -1 : ::pread(file.get(), bytes.data(), bytes.size(), offset);
  if (n == static_cast<ssize_t>(bytes.size())) return bytes;
  // Somebody removed or cut it: it is made again.
  remove_locked(name.sha256);
  return not_found("blob ", name.sha256, " is damaged, and removed");
}

int64_t BlobStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace tuner
