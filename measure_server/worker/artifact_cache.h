// What keeps the artifacts of a work folder below a size: the least recently used go first.
//
// A folder holds DIGEST.so or DIGEST.cubin with DIGEST.json, and by_source/KEY with the digest of the
// artifact made from KEY. Its times of modification are the times of last use. Removing is always right: what
// is missed is built again.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace tuner {

struct CacheLimits {
  int64_t most_bytes = int64_t{1} << 30;  // on disk, by_source/ included
  // What was used since is kept whatever its size: it may be waiting for its run.
  std::chrono::seconds kept_for = std::chrono::minutes(30);
};

// The artifact and its entry in by_source/ were used just now.
void touch_artifact(const std::filesystem::path& artifacts, const std::string& digest,
                    const std::filesystem::path& source_entry);

// When the folder holds more than most_bytes: removes the least recently used until 3/4 of it are left.
// Returns the bytes left. Files that vanish meanwhile are no error.
int64_t prune_artifacts(const std::filesystem::path& artifacts, const CacheLimits& limits);

}  // namespace tuner
