// A scratch folder with a user's files and an entry that calls his function, in which his compiler runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/base/status.h"
#include "compiler_core/foreign/compilers.h"
#include "compiler_core/ir/foreign_code.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

class SourceBuild {
 public:
  // Writes the files, and `entry` as a file of their language beside them; requires program.foreign, which
  // outlives this. Unavailable, NotFound: there is no such compiler here.
  static Result<SourceBuild> make(const Program& program, const std::string& entry);

  // Compiles the entry into the file `made`: by the user's flags, and then by these words. InvalidConfig: the
  // compiler refuses, or runs too long or too large; the message has what it said.
  Status compile(const std::vector<std::string>& words, const std::string& made) const;
  // Links objects of this folder into the shared library `made`, of that soname unless it is empty. Errors as
  // compile().
  Status link(const std::vector<std::string>& objects, const std::string& soname,
              const std::string& made) const;
  // Runs a program of the system's on files of this folder. Failed: it is not there, or does not end well.
  Status run(const std::string& path, const std::vector<std::string>& words) const;
  const Compiler& compiler() const { return compiler_; }

  Result<std::string> file(const std::string& name) const;
  std::string path(const std::string& name) const { return folder_->file(name); }
  // The folder, which goes with what is returned.
  std::unique_ptr<ScratchFolder> take_folder() { return std::move(folder_); }

 private:
  SourceBuild(const Program& program, Compiler compiler, std::unique_ptr<ScratchFolder> folder);
  Status run_compiler(std::vector<std::string> words) const;
  std::string entry_name() const;

  const Program* program_;
  Compiler compiler_;
  std::unique_ptr<ScratchFolder> folder_;
};

// Writes the files of `code` into the folder, and the folders that they are in.
Status write_source_files(const ScratchFolder& folder, const ForeignCode& code);

// What a program of a user's, or a compiler, said, for a person: its first 4 KiB without control characters.
// Files of the folder where it ran are named as the user wrote them.
std::string said_by(std::string output, const std::string& folder);

}  // namespace tuner
