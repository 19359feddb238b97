// Keeps the cache that all workers of a user share below a size limit. The least recently used entries go
// first.
//
//   artifacts/DIGEST.so or .cubin, DIGEST.json     what was built
//   artifacts/by_source/KEY                        the digest of the artifact made from KEY
//   cubins/KEY.cubincache                          what NVRTC made of a source
//   sources/DIGEST                                 documents of users' kernels
//   references/KEY/                                inputs and reference answer of a task
//   pruned                                         its time: when somebody last looked through all of this
//
// Modification times record the last use (for a reference: that of its file `complete`). Removing is always
// safe, because missing entries are made again. Any number of processes may work here at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace tuner {

struct CacheLimits {
  int64_t most_bytes = int64_t{4} << 30;  // on disk, for all of the above together
  // An entry used within this time is kept whatever its size: it may be waiting for its run.
  std::chrono::seconds kept_for = std::chrono::minutes(30);
};

// Marks the artifact and its entry in by_source/ as used now.
void touch_artifact(const std::filesystem::path& artifacts, const std::string& digest,
                    const std::filesystem::path& source_entry);
// Marks the reference answer in this folder as used now.
void touch_reference(const std::filesystem::path& folder);

// If `shared` exceeds most_bytes, removes the least recently used entries until 3/4 of it remain. Returns the
// bytes that remain. Files that vanish meanwhile are no error.
int64_t prune_cache(const std::filesystem::path& shared, const CacheLimits& limits);

// When to prune: to look through a full folder takes a tenth of a second, longer than most builds. One of each
// process that adds to the cache.
class CacheKeeper {
 public:
  void added(int64_t bytes) { added_ += bytes; }
  // Prunes if this process has added a sixteenth of the limit (64 MiB at most) since it last did, or anything
  // while nobody has pruned for ten minutes.
  void keep(const std::filesystem::path& shared, const CacheLimits& limits);

 private:
  int64_t added_ = 0;
};

// Removes the work folders of embedded and of second workers (`user_cache`/worker-*) that were unused for a
// week, are owned by no process, and owe no results. Who comes back gets a new one.
void remove_old_work_folders(const std::filesystem::path& user_cache);

}  // namespace tuner
