// MadeIndex: what became of orders for builds, by their ids, over restarts of the daemon. Without it the
// bytes of a BlobStore are still there after a restart, and nobody knows what they are.
//
// A SQLite file of its own. It is a cache: a damaged file begins anew, a damaged row is not there, the oldest
// rows go, and so do all of another release, which may judge otherwise. Nothing is synced: a power loss may
// take rows. One thread at a time may call.
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
  // Makes the file, in a folder that exists. `most`: rows that are kept, within an eighth. `release`: any
  // text, that of all rows. Failed: the disk, or another process has it.
  static Result<std::unique_ptr<MadeIndex>> open(const std::string& path, size_t most,
                                                 const std::string& release);
  ~MadeIndex();

  // Any bytes; those of the same id before are replaced. Failed: the disk; then it is as if nobody had
  // called.
  Status put(const std::string& id, const std::string& bytes);
  // Nothing: not here, damaged, or the disk refuses.
  std::optional<std::string> find(const std::string& id);

 private:
  MadeIndex(std::string path, size_t most, std::string release);
  Status begin_anew();
  Status insert(const std::string& id, const std::string& bytes);

  const std::string path_;
  const size_t most_;
  const std::string release_;
  std::unique_ptr<db::Connection> connection_;  // null: begin_anew() failed
  size_t until_trim_ = 0;
};

}  // namespace tuner
