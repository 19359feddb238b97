// KernelCache: compiled kernels on disk, found by what they were compiled from. Several processes and threads
// may use it: files appear whole (rename), every read is verified (SHA-256), and a damaged file counts as
// missing.
//
//   DIR/DIGEST.so  DIGEST.json     artifacts, named by their content
//   DIR/by_source/SHA256           named by a source text: the digest of its artifact, then that text
//
// Nothing is ever removed. The folder may be deleted at any time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"

namespace tuner::runtime {

class KernelCache {
 public:
  // With an empty directory nothing is kept. The folder is created by the first save().
  explicit KernelCache(std::string directory) : directory_(std::move(directory)) {}

  // Returns the cached kernel for this source, or nothing if there is none or it cannot be read.
  std::optional<Artifact> load(std::string_view source) const;
  // Returns why it could not be kept. Files are not synced to disk: load() detects one torn by a power loss.
  Status save(std::string_view source, const Artifact& artifact) const;

 private:
  std::string index_file(std::string_view source) const;

  std::string directory_;
};

// Returns $XDG_CACHE_HOME/tuner/kernels or ~/.cache/tuner/kernels; empty if neither variable is set.
std::string default_cache_dir();

}  // namespace tuner::runtime
