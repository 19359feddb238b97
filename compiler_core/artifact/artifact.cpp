#include "compiler_core/artifact/artifact.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace tuner {
namespace {

Status system_error(const std::string& path, const char* what) {
  return failed(path, ": cannot ", what, ": ", std::strerror(errno));
}

Result<std::string> read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? not_found(path, ": no such artifact") : system_error(path, "open");
  std::string bytes;
  struct stat info {};
  if (fstat(fd, &info) == 0 && info.st_size > 0) bytes.reserve(static_cast<size_t>(info.st_size));
  char chunk[1 << 16];
  for (;;) {
    const ssize_t n = read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const Status status = system_error(path, "read");
      close(fd);
      return status;
    }
    if (n == 0) break;
    bytes.append(chunk, static_cast<size_t>(n));
  }
  close(fd);
  return bytes;
}

// Whole or not at all: written beside, synced, renamed. The name holds process and counter, so writers never
// share one.
Status write_file(const std::string& path, std::string_view bytes, Durability durability) {
  static std::atomic<uint64_t> counter{0};
  const std::string temporary = str(path, ".", getpid(), ".", counter++, ".tmp");
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return system_error(temporary, "create");
  Status status;
  while (!bytes.empty() && status.is_ok()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) status = system_error(temporary, "write");
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
  }
  if (status.is_ok() && durability == Durability::kSynced && fsync(fd) != 0)
    status = system_error(temporary, "sync");
  close(fd);
  if (status.is_ok() && rename(temporary.c_str(), path.c_str()) != 0)
    status = system_error(path, "rename into place");
  if (!status.is_ok()) unlink(temporary.c_str());
  return status;
}

Status make_directories(const std::string& directory) {
  for (size_t slash = directory.find('/', 1);; slash = directory.find('/', slash + 1)) {
    const std::string part = directory.substr(0, slash);
    if (!part.empty() && mkdir(part.c_str(), 0755) != 0 && errno != EEXIST)
      return system_error(part, "create folder");
    if (slash == std::string::npos) return Status::ok();
  }
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  const int ok = EVP_Digest(bytes.data(), bytes.size(), hash, &length, EVP_sha256(), nullptr);
  CHECK(ok == 1 && length == 32) << "SHA-256 is always available";
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[hash[i] >> 4];
    hex += kDigits[hash[i] & 15];
  }
  return hex;
}

std::string_view binary_ending(BinaryKind kind) { return kind == BinaryKind::kCubin ? ".cubin" : ".so"; }

std::string artifact_digest(const Artifact& artifact) {
  if (artifact.manifest.kind == BinaryKind::kSharedObject) return sha256_hex(artifact.binary);
  Manifest launched = artifact.manifest;
  launched.digest.clear();
  return sha256_hex(str(artifact.binary, "\n", launched.to_json()));
}

Result<std::string> save_artifact(const Artifact& artifact, const std::string& directory,
                                  Durability durability) {
  Manifest manifest = artifact.manifest;
  manifest.digest = artifact_digest(artifact);
  RETURN_IF_ERROR(make_directories(directory));
  const std::string base = directory + "/" + manifest.digest;
  // The manifest comes last: who sees it finds the binary complete.
  const std::string binary = str(base, binary_ending(manifest.kind));
  // In a cache what is there may be a torso that nobody has looked at yet.
  const bool anew = durability == Durability::kCached;
  if (anew || access(binary.c_str(), R_OK) != 0)
    RETURN_IF_ERROR(write_file(binary, artifact.binary, durability));
  if (anew || access((base + ".json").c_str(), R_OK) != 0)
    RETURN_IF_ERROR(write_file(base + ".json", manifest.to_json() + "\n", durability));
  return manifest.digest;
}

Result<Artifact> load_artifact(const std::string& directory, const std::string& digest) {
  const bool is_digest =
      digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_digest) return invalid_argument("artifact: expected 64 hex digits, found '", digest, "'");
  const std::string base = directory + "/" + digest;
  Artifact artifact;
  ASSIGN_OR_RETURN(const std::string json, read_file(base + ".json"));
  Result<Manifest> manifest = parse_manifest(json);
  if (!manifest) return manifest.status().with_context(base + ".json: ");
  artifact.manifest = *std::move(manifest);
  const std::string binary = str(base, binary_ending(artifact.manifest.kind));
  ASSIGN_OR_RETURN(artifact.binary, read_file(binary));
  const std::string found = artifact_digest(artifact);
  if (found != digest || artifact.manifest.digest != digest)
    return failed(binary, ": digest is ", found, ", manifest says ", artifact.manifest.digest, ", expected ",
                  digest, "; the artifact is damaged, remove both files and build it again");
  return artifact;
}

}  // namespace tuner
