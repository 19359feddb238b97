#include "deploy/runtime/source.h"

#include <filesystem>

#include "db/records.h"

namespace tuner::runtime {

namespace fs = std::filesystem;

Result<std::unique_ptr<Source>> Source::open(const std::string& path, const SourceOptions& options) {
  if (path.empty()) return open_database({}, options);
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const fs::path manifest = fs::path(path) / "manifest.json";
    if (fs::exists(manifest, error)) return open_bundle(manifest.string(), options);
    return not_found(
        path,
        ": expected a bundle, and there is no manifest.json in this folder. To make one: tuner build "
        "FILE -o ",
        path);
  }
  if (fs::path(path).extension() == ".json") return open_bundle(path, options);
  return open_database(path, options);
}

}  // namespace tuner::runtime
