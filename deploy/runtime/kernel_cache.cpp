#include "deploy/runtime/kernel_cache.h"

#include <cstdlib>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"

namespace tuner::runtime {

namespace {
constexpr size_t kLongestIndexFile = 1 << 20;
}

std::string KernelCache::index_file(std::string_view source) const {
  return str(directory_, "/by_source/", sha256_hex(source));
}

std::optional<Artifact> KernelCache::load(std::string_view source) const {
  if (directory_.empty()) return std::nullopt;
  const Result<std::string> index = read_whole(index_file(source), kLongestIndexFile);
  constexpr size_t kDigest = 64;
  if (!index || index->size() != kDigest + 1 + source.size() || !index->ends_with(source))
    return std::nullopt;
  Result<Artifact> artifact = load_artifact(directory_, index->substr(0, kDigest));
  if (!artifact) return std::nullopt;
  return *std::move(artifact);
}

Status KernelCache::save(std::string_view source, const Artifact& artifact) const {
  if (directory_.empty()) return Status::ok();
  RETURN_IF_ERROR(make_folders(directory_ + "/by_source"));
  ASSIGN_OR_RETURN(const std::string digest, save_artifact(artifact, directory_, Durability::kCached));
  // Last: who finds it finds the artifact.
  return replace_file(index_file(source), str(digest, "\n", source));
}

std::string default_cache_dir() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != 0)
    return str(cache, "/tuner/kernels");
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0)
    return str(home, "/.cache/tuner/kernels");
  return {};
}

}  // namespace tuner::runtime
