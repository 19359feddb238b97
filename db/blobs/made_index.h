// MadeIndex: what became of orders for builds, by their ids, over restarts of the daemon. Without it the bytes of a BlobStore are still
// there after a restart, and nobody knows what they are.
//
// A SQLite file of its own. It is a cache: a torn or damaged file begins anew, a damaged row is not there, and the oldest rows go. Written
// without fsync: a power loss may take the last rows. One thread at a time may call.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "compiler_core/base/status.h"

namespace tuner {

namespace db {
class Connection;
}

class MadeIndex {
 public:
  // Makes the file, in a folder that exists. `most`: rows that are kept, within an eighth. Failed: the disk.
  static Result<std::unique_ptr<MadeIndex>> open(const std::string& path, size_t most);
  ~MadeIndex();

  // Any bytes; those of the same id before are replaced. Failed: the disk; then it is as if nobody had called.
  Status put(const std::string& id, const std::string& bytes);
  // Nothing: not here, damaged, or the disk refuses.
  std::optional<std::string> find(const std::string& id);

 private:
  MadeIndex(std::string path, size_t most);
  Status begin_anew();
  Status insert(const std::string& id, const std::string& bytes);

  const std::string path_;
  const size_t most_;
  std::unique_ptr<db::Connection> connection_;  // null: begin_anew() failed
  size_t until_trim_ = 0;
};

}  // namespace tuner
