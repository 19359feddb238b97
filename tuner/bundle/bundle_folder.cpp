#include "tuner/bundle/bundle_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "compiler_core/base/c_names.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/mapped_file.h"
#include "compiler_core/base/output_file.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kStagingPrefix[] = ".tuner-build-";

// The topmost folder of `path` that does not exist yet; empty when all do.
fs::path topmost_missing(const fs::path& path) {
  fs::path missing;
  for (fs::path p = path; !p.empty() && !fs::exists(p); p = p.parent_path()) missing = p;
  return missing;
}

bool has_bytes(const BundleFile& file, std::string_view bytes) {
  if (file.made.empty()) return bytes == file.bytes;
  const Result<MappedFile> made = map_input(file.made, "a file of ours");
  return made && made->bytes() == bytes;
}

}  // namespace

Result<std::unique_ptr<BundleFolder>> BundleFolder::open(const std::string& path, const std::string& name,
                                                         const FolderIndex& index) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();  // "out/"
  if (error || path.empty()) return invalid_argument("-o: expected a folder, found \"", path, "\"");
  std::unique_ptr<BundleFolder> folder(new BundleFolder(absolute, index));
  if (fs::exists(absolute) && !fs::is_directory(absolute))
    return invalid_argument(path, ": is a file; expected a folder for -o, which is created if it is missing");
  folder->made_ = topmost_missing(absolute);
  fs::create_directories(absolute, error);
  if (error) return invalid_argument(path, ": cannot be made: ", error.message());
  RETURN_IF_ERROR(folder->lock().with_context(path + ": "));
  RETURN_IF_ERROR(folder->read_former(name).with_context(path + ": "));
  std::string staging = absolute / str(kStagingPrefix, "XXXXXX");
  if (::mkdtemp(staging.data()) == nullptr)
    return invalid_argument(path, ": cannot be written: ", std::strerror(errno));
  folder->staging_ = staging;
  return folder;
}

Status BundleFolder::lock() {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ < 0) return invalid_argument("cannot be opened: ", std::strerror(errno));
  const int error = ::flock(fd_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  if (error != 0 && error != EWOULDBLOCK)
    return invalid_argument("cannot be locked on this file system: ", std::strerror(error),
                            "; choose a folder on another one");
  if (error != 0) return invalid_argument("another build is writing there; run this again when it is done");
  // Whoever left these is gone.
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, ignored))
    if (entry.path().filename().string().starts_with(kStagingPrefix)) fs::remove_all(entry.path(), ignored);
  return Status::ok();
}

Status BundleFolder::read_former(const std::string& name) {
  for (const FolderIndex& other : {kBundleIndex, kModelIndex})
    if (other.file != index_.file && fs::exists(path_ / other.file))
      return invalid_argument("holds ", other.file,
                              ", and so a library of another kind; give a folder of its own");
  if (!fs::exists(path_ / index_.file)) return Status::ok();
  const std::string key(index_.key);
  const Result<std::string> text = read_whole(path_ / index_.file);
  const json manifest = json::parse(text ? *text : "", nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object() || !manifest.contains(key) || !manifest[key].is_string() ||
      !check_c_name(manifest[key].get<std::string>()) || !manifest.contains("files") ||
      !manifest["files"].is_object())
    return invalid_argument("holds a ", index_.file,
                            " that this command did not write; give a folder of its own");
  const auto former = manifest[key].get<std::string>();
  if (former != name)
    return invalid_argument("holds the library \"", former, "\", and a folder holds one; give \"", name,
                            "\" a folder of its own");
  for (const auto& [path, digest] : manifest["files"].items()) {
    const fs::path relative(path);
    const bool inside =
        relative.is_relative() && !relative.empty() && *relative.begin() != ".." && *relative.begin() != ".";
    if (inside && relative.lexically_normal() == relative) former_.insert(path);
  }
  former_.emplace(index_.file);
  return Status::ok();
}

// The same bytes are in nobody's way: a build that was stopped between two renames may have left them.
Status BundleFolder::check_ways(const std::vector<BundleFile>& files) const {
  for (const BundleFile& file : files) {
    const fs::path place = path_ / file.path;
    if (!fs::exists(place) || former_.contains(file.path)) continue;
    if (const Result<MappedFile> there = map_input(place, "the same file");
        there && has_bytes(file, there->bytes()))
      continue;
    return invalid_argument(place.string(),
                            ": is there already, and not from a build of this name; nothing was changed. "
                            "Give a folder of its own");
  }
  return Status::ok();
}

Status BundleFolder::stage_one(const BundleFile& file) const {
  const fs::path place = staging_ / file.path;
  RETURN_IF_ERROR(make_folders(place.parent_path()));
  if (file.made.empty()) return replace_file(place, file.bytes);
  std::error_code error;
  if (place != file.made) fs::rename(file.made, place, error);
  return error ? failed(place.string(), ": cannot be written: ", error.message()) : Status::ok();
}

Status BundleFolder::stage(const std::vector<BundleFile>& files) const {
  RETURN_IF_ERROR(check_ways(files));
  for (const BundleFile& file : files) RETURN_IF_ERROR(stage_one(file));
  return Status::ok();
}

Status BundleFolder::write(const std::vector<BundleFile>& files) {
  RETURN_IF_ERROR(stage(files));
  return publish(files);
}

Status BundleFolder::publish(const std::vector<BundleFile>& files) {
  std::error_code error;
  for (const BundleFile& file : files) {
    const fs::path place = path_ / file.path;
    fs::create_directories(place.parent_path(), error);
    if (!error) fs::rename(staging_ / file.path, place, error);
    if (error) return failed(place.string(), ": cannot be written: ", error.message());
    former_.erase(file.path);
  }
  written_ = true;
  for (const std::string& path : former_) {
    fs::remove(path_ / path, error);
    // The folder it was in goes when it is empty.
    for (fs::path f = fs::path(path).parent_path(); !f.empty(); f = f.parent_path())
      if (!fs::is_empty(path_ / f, error) || !fs::remove(path_ / f, error)) break;
  }
  return Status::ok();
}

BundleFolder::~BundleFolder() {
  remove_unwritten();
  if (fd_ >= 0) ::close(fd_);
}

void BundleFolder::remove_unwritten() const {
  std::error_code ignored;
  if (!staging_.empty()) fs::remove_all(staging_, ignored);
  // Only what is empty: somebody else may have put something there meanwhile.
  if (!written_ && !made_.empty())
    for (fs::path p = path_; p.string().size() >= made_.string().size(); p = p.parent_path())
      if (!fs::remove(p, ignored)) break;
}

}  // namespace tuner
