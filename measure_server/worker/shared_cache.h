// What keeps the cache that all workers of a user share below one size: the least recently used go first.
//
//   artifacts/DIGEST.so or .cubin, DIGEST.json     what was built
//   artifacts/by_source/KEY                        the digest of the artifact made from KEY
//   cubins/KEY.cubincache                          what NVRTC made of a source
//   references/KEY/                                inputs and reference answer of a task
//
// Times of modification are the times of last use (of a reference: of its file `complete`). Removing is
// always right: what is missed is made again. Any number of processes at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace tuner {

struct CacheLimits {
  int64_t most_bytes = int64_t{4} << 30;  // on disk, all of the above together
  // What was used since is kept whatever its size: it may be waiting for its run.
  std::chrono::seconds kept_for = std::chrono::minutes(30);
};

// The artifact and its entry in by_source/ were used just now.
void touch_artifact(const std::filesystem::path& artifacts, const std::string& digest,
                    const std::filesystem::path& source_entry);
// The reference answer in this folder was used just now.
void touch_reference(const std::filesystem::path& folder);

// When `shared` holds more than most_bytes: removes the least recently used until 3/4 of it are left. Returns
// the bytes left. Files that vanish meanwhile are no error.
int64_t prune_cache(const std::filesystem::path& shared, const CacheLimits& limits);

// Removes work folders of embedded workers (`user_cache`/worker-*) that nobody used for a week and that owe
// no results; a database that is used again gets a new one.
void remove_old_work_folders(const std::filesystem::path& user_cache);

}  // namespace tuner
