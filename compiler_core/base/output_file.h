// Files to be written. OutputFile: what `-o FILE` names. replace_file(): files of our own. Either way a
// regular file appears whole or not at all.
//
//   "-"                           standard output
//   a regular file, or none yet   bytes go to an unnamed file in its folder, which finish() puts in its place
//   a symlink                     the same for the file it leads to; the link stays
//   a device, FIFO or socket      is written to directly, and never replaced or removed
//
// A process that is killed meanwhile leaves nothing behind (on a file system without O_TMPFILE: FILE.part).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

class OutputFile {
 public:
  // InvalidArgument: a folder, a missing folder, a loop of links, or what may not be written.
  static Result<OutputFile> open(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // what was not finished is gone

  Status write(std::string_view bytes);
  // Puts the file in its place. Failed: the disk; then the former file is as it was.
  Status finish();
  int descriptor() const { return fd_; }  // for libraries that write themselves; this object closes it

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  Status open_beside(const std::string& target);
  Status name_temporary();
  Status error(int code) const;

  std::string path_;       // as the user named it
  std::string target_;     // the file to replace; empty: bytes go straight to fd_
  std::string temporary_;  // beside it; empty: it has no name yet
  bool owned_ = true;      // fd_ is closed at the end
  int fd_ = -1;
};

// Where the links of a path lead: the real path of a file, which need not exist. InvalidArgument: a loop.
Result<std::string> follow_links(const std::string& path);

// All of a file at once.
Status write_file(const std::string& path, std::string_view bytes);

// Whether what was written survives a power loss.
enum class Durability : uint8_t {
  kSynced,  // it is on disk when the call returns
  kCached,  // it may be lost or cut off: for what can be told from whole and made again
};

// A file of ours, in a folder that is there: readers, and writers at the same time, see the former file or
// this one. Failed: the disk.
Status replace_file(const std::string& path, std::string_view bytes,
                    Durability durability = Durability::kCached);

// The folder and those above it.
Status make_folders(const std::string& path);

// OK if OutputFile::open(path) would succeed now: asked before work that takes long. Opens no FIFO.
Status check_output(const std::string& path);

}  // namespace tuner
