// The folder of `tuner build -o` or `tuner compile -o`. Either all files appear in it, or none if anything
// fails.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/bundle/bundle.h"

namespace tuner {

// The file that tells what is in a folder, by a JSON object with its name under `key`, and its files under
// "files".
struct FolderIndex {
  std::string_view file, key;
};
inline constexpr FolderIndex kBundleIndex{"manifest.json", "bundle"};  // of kernels
inline constexpr FolderIndex kModelIndex{"plan.json", "model"};        // of a compiled model

class BundleFolder {
 public:
  // Creates the folder if needed and locks it. InvalidArgument: it is not writable, holds a library of
  // another name or kind, or an index that is not ours, or another build is writing to it. Folders it created
  // are removed again unless write() succeeds.
  static Result<std::unique_ptr<BundleFolder>> open(const std::string& path, const std::string& name,
                                                    const FolderIndex& index = kBundleIndex);
  ~BundleFolder();
  BundleFolder(const BundleFolder&) = delete;

  // Removes what was staged, and folders that were created, as the destructor does: for whoever ends the
  // process at once. Any thread, but not while publish() runs.
  void remove_unwritten() const;

  // An empty folder in it, for files that are written before write() moves them; it goes with this object.
  const std::filesystem::path& staging() const { return staging_; }

  // Lets the files stand below staging() as they will stand in the folder, so that they can be tried there. A
  // file in the way that is not of the former bundle is refused first.
  Status stage(const std::vector<BundleFile>& files) const;
  // Renames each staged file to its place, the last one last. Removes files of the former bundle that are not
  // in the new one.
  Status publish(const std::vector<BundleFile>& files);
  // Both.
  Status write(const std::vector<BundleFile>& files);

 private:
  BundleFolder(std::filesystem::path path, const FolderIndex& index)
      : path_(std::move(path)), index_(index) {}
  Status lock();
  Status read_former(const std::string& name);
  Status check_ways(const std::vector<BundleFile>& files) const;
  Status stage_one(const BundleFile& file) const;

  std::filesystem::path path_, made_, staging_;  // made_: the topmost folder that was created, if any
  FolderIndex index_;
  std::set<std::string> former_;  // files of the bundle already in the folder
  int fd_ = -1;
  bool written_ = false;
};

}  // namespace tuner
