// Writes files. OutputFile writes what `-o FILE` names; replace_file() writes files of our own. In both cases
// a regular file appears complete or not at all.
//
//   "-"                           standard output
//   a regular file, or none yet   bytes go to an unnamed file in its folder, which finish() moves to its
//                                 place
//   a symlink                     the same for the file it leads to; the link stays
//   a device, FIFO or socket      is written directly, and never replaced or removed
//   an SQLite database            is refused: nothing written here is one, so it is somebody's, given by
//                                 mistake
//
// A process that is killed while writing leaves nothing behind (without O_TMPFILE on the file system:
// FILE.part).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

class OutputFile {
 public:
  // InvalidArgument: a folder, a missing folder, a loop of links, a database, or no permission to write.
  static Result<OutputFile> open(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // discards what was not finished

  Status write(std::string_view bytes);
  // Moves the file to its place. Failed: the disk; the former file is then unchanged.
  Status finish();
  int descriptor() const { return fd_; }  // for libraries that write themselves; this object closes it

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  Status open_beside(const std::string& target);
  Status name_temporary();
  Status error(int code) const;

  std::string path_;       // as the user named it
  std::string target_;     // the file to replace; empty: bytes go straight to fd_
  std::string temporary_;  // the temporary file beside it; empty: it has no name yet
  bool owned_ = true;      // the destructor closes fd_
  int fd_ = -1;
};

// Returns where the links of a path lead: the real path of a file, which need not exist. InvalidArgument: a
// loop.
Result<std::string> follow_links(const std::string& path);

// Writes a whole file at once.
Status write_file(const std::string& path, std::string_view bytes);

// Tells whether a written file survives a power loss.
enum class Durability : uint8_t {
  kSynced,  // it is on disk when the call returns
  kCached,  // it may be lost or torn: only for files whose damage can be detected and that can be made again
};

// Replaces a file of ours in an existing folder. Readers and concurrent writers see either the former file or
// this one. Failed: the disk.
Status replace_file(const std::string& path, std::string_view bytes,
                    Durability durability = Durability::kCached);

// Creates the folder and those above it.
Status make_folders(const std::string& path);

// OK if OutputFile::open(path) would succeed now. Ask before work that takes long. Opens no FIFO.
// InvalidArgument, too, if it is one of the files that are `read` for it, by whatever name or link: it would
// be gone.
Status check_output(const std::string& path, std::span<const std::string> read = {});

}  // namespace tuner
