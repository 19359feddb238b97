// The folder of `tuner build -o`. Either all files appear in it, or none if anything fails.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tuner/bundle/bundle.h"

namespace tuner {

class BundleFolder {
 public:
  // Creates the folder if needed and locks it. InvalidArgument: it is not writable, holds a bundle of another
  // name or a manifest.json that is not ours, or another build is writing to it. Folders it created are
  // removed again unless write() succeeds.
  static Result<std::unique_ptr<BundleFolder>> open(const std::string& path, const std::string& name);
  ~BundleFolder();
  BundleFolder(const BundleFolder&) = delete;

  // Writes the files beside their places, then renames each, the last one last. Removes files of the former
  // bundle that are not in the new one. A file in the way that is not of the former bundle is refused before
  // anything is renamed.
  Status write(const std::vector<BundleFile>& files);

 private:
  explicit BundleFolder(std::filesystem::path path) : path_(std::move(path)) {}
  Status lock();
  Status read_former(const std::string& name);
  Status check_ways(const std::vector<BundleFile>& files) const;

  std::filesystem::path path_, made_, staging_;  // made_: the topmost folder that was created, if any
  std::set<std::string> former_;                 // files of the bundle already in the folder
  int fd_ = -1;
  bool written_ = false;
};

}  // namespace tuner
