// The folder that `tuner build -o` names: files appear in it all or, when anything fails before, none.
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
  // Makes the folder when it is missing, and locks it. InvalidArgument when it cannot be written, holds a
  // bundle of another name or a manifest.json that is none of ours, or another build is writing to it. What
  // was made is removed again unless write() succeeds.
  static Result<std::unique_ptr<BundleFolder>> open(const std::string& path, const std::string& name);
  ~BundleFolder();
  BundleFolder(const BundleFolder&) = delete;

  // Writes beside, then renames each file into its place, the last one last; files of the former bundle that
  // are not among these are removed. A file that lies in the way and is not of the former bundle is refused
  // before anything is renamed.
  Status write(const std::vector<BundleFile>& files);

 private:
  explicit BundleFolder(std::filesystem::path path) : path_(std::move(path)) {}
  Status lock();
  Status read_former(const std::string& name);
  Status check_ways(const std::vector<BundleFile>& files) const;

  std::filesystem::path path_, made_, staging_;  // made_: the topmost folder that was missing, if any
  std::set<std::string> former_;                 // files of the bundle that is there
  int fd_ = -1;
  bool written_ = false;
};

}  // namespace tuner
