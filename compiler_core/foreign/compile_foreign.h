// From a Program whose code is a user's text to an artifact.
#pragma once

#include <memory>
#include <string>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// The file that is compiled: the user's source, and an entry of the kernels' ABI (runtime/tuner_runtime.h) that calls his function.
std::string foreign_entry(const Program& program);

// Compiles it; requires program.foreign. The same text, flags and compiler give the same bytes. InvalidConfig: the compiler refuses, or
// runs too long or too large; the message has what it said. Unavailable: there is no such compiler here.
Result<Artifact> compile_foreign(const Program& program, const std::string& target_name, int threads);

// "gcc 12.2.0 ...": of records that this code makes here. Errors as above.
Result<std::string> foreign_toolchain(const Program& program);

// A program of the entry with `main_text` behind it, in a folder that goes with it.
struct ForeignProgram {
  std::unique_ptr<ScratchFolder> folder;
  std::string path;
};
Result<ForeignProgram> compile_foreign_program(const Program& program, const std::string& main_text);

// What a program of a user's, or a compiler, said, for a person: its first 4 KiB without control characters.
std::string said_by(const std::string& output);

// The assembly of it, for people.
Result<std::string> foreign_assembly(const Program& program);

}  // namespace tuner
