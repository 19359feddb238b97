#include "templates/source_kernel/document_folder.h"

#include <filesystem>
#include <utility>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "templates/source_kernel/source_document.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

fs::path place_of(const std::string& cache, std::string_view digest) {
  return fs::path(cache) / "sources" / std::string(digest);
}

Result<std::string> document_in(const std::string& cache, const std::string& digest) {
  // A key comes from anywhere; only a digest becomes part of a path.
  if (!is_digest(digest)) return not_found("\"", digest.substr(0, 80), "\" is no digest");
  const fs::path file = place_of(cache, digest);
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return not_found(file.string());
  fs::last_write_time(file, fs::file_time_type::clock::now(), none);
  return read_whole(file.string(), kMostDocumentBytes);
}

}  // namespace

bool has_document(const std::string& cache, std::string_view digest) {
  if (!is_digest(digest)) return false;
  std::error_code none;
  fs::last_write_time(place_of(cache, digest), fs::file_time_type::clock::now(), none);
  return !none;
}

Status put_document(const std::string& cache, std::string_view digest, std::string_view document) {
  if (!is_digest(digest)) return not_found("no kernel has this digest");
  RETURN_IF_ERROR(know_document(document, digest).status());
  const fs::path file = place_of(cache, digest);
  RETURN_IF_ERROR(make_folders(file.parent_path()));
  return replace_file(file.string(), document);
}

Status put_document(const std::string& cache, std::string_view digest) {
  if (has_document(cache, digest)) return Status::ok();
  ASSIGN_OR_RETURN(const auto kernel, find_kernel(digest));
  return put_document(cache, digest, source_document(*kernel));
}

DocumentFolder::DocumentFolder(std::string cache)
    : source_([cache = std::move(cache)](const std::string& digest) { return document_in(cache, digest); }) {}

}  // namespace tuner
