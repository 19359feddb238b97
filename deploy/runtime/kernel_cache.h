// KernelCache: compiled kernels on disk, by what they were compiled from. For several processes and threads
// at once: files appear whole (rename), every read is verified (SHA-256), and what is damaged counts as not
// there.
//
//   DIR/DIGEST.so  DIGEST.json     artifacts, named by their content
//   DIR/by_source/SHA256           of a source text: the digest of what was made of it, then that text
//
// Nothing is ever removed; the folder may be deleted at any time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"

namespace tuner::runtime {

class KernelCache {
 public:
  // Empty: nothing is kept. The folder is made when something is saved.
  explicit KernelCache(std::string directory) : directory_(std::move(directory)) {}

  // What was made of this source text; nothing when there is none that can be read.
  std::optional<Artifact> load(std::string_view source) const;
  // Why it could not be kept. Not synced to the disk: what a power loss tears, load() finds out.
  Status save(std::string_view source, const Artifact& artifact) const;

 private:
  std::string index_file(std::string_view source) const;

  std::string directory_;
};

// $XDG_CACHE_HOME/tuner/kernels or ~/.cache/tuner/kernels; empty when neither variable is set.
std::string default_cache_dir();

}  // namespace tuner::runtime
