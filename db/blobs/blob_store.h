// BlobStore: bytes named by their SHA-256, as files in one folder: what builders have made and runners fetch.
//
//   DIGEST          whole, and checked against its name: when its last byte came, and at the first use after
//                   a start
//   DIGEST.part     its beginning; goes on where it is, also after a restart
//
// A file's modification time is that of its last use. Beyond the limit the least recently used go; who misses
// one has it made again. One process at a time uses the folder; any thread may call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

// 64 lower-case hexadecimal digits, and how many bytes they name.
struct BlobName {
  std::string sha256;
  int64_t bytes = 0;
  auto operator<=>(const BlobName&) const = default;
};

// InvalidArgument: it names nothing.
Status check_blob_name(const BlobName& name);

class BlobStore {
 public:
  // Makes the folder. `most_bytes`: what all files together may take. Failed: the disk.
  static Result<std::unique_ptr<BlobStore>> open(std::string folder, int64_t most_bytes);

  // True if it is here, whole; that is a use. The first time after a start it is read and checked.
  bool has(const BlobName& name);
  // True if has() would find it unless it is damaged: reads no file. What is damaged shows when it is read.
  bool seems_to_have(const BlobName& name) const;
  // Puts `bytes` at `offset`, and returns how many bytes from the start are here then. Where another offset
  // is next, nothing is written. The last byte has the whole checked. InvalidArgument: the name is wrong, or
  // the bytes are not what it says: all of them are removed. Failed: the disk; or it is larger than a quarter
  // of the limit.
  Result<int64_t> write(const BlobName& name, int64_t offset, std::string_view bytes);
  // At most `most` bytes from `offset` on; a use. NotFound: it is not here, or not whole.
  Result<std::string> read(const BlobName& name, int64_t offset, int64_t most);

  int64_t bytes() const;  // that all files take

 private:
  BlobStore(std::string folder, int64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  struct File {
    int64_t bytes = 0;  // here; of a part, so far
    uint64_t used = 0;  // larger is later
    bool whole = false;
    bool checked = true;  // false: found at the start, and not yet looked into; a power loss may have torn it
  };
  Status look();
  std::string path(const std::string& sha256, bool whole) const;
  void use_locked(const std::string& sha256, File& file);
  void remove_locked(const std::string& sha256);
  void make_room_locked(const std::string& except);
  Status finish_locked(const BlobName& name, File& file);
  bool good_locked(const BlobName& name);

  const std::string folder_;
  const int64_t most_bytes_;
  mutable std::mutex mutex_;
  std::map<std::string, File> files_;  // by digest
  int64_t bytes_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace tuner
