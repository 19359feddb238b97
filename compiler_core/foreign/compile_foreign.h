// From a Program whose code is a user's text to an artifact.
#pragma once

#include <memory>
#include <string>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/base/status.h"
#include "compiler_core/foreign/source_build.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// The file that is compiled: the user's source, and an entry of the kernels' ABI (runtime/tuner_runtime.h)
// that calls his function.
std::string foreign_entry(const Program& program);

// Compiles it; requires program.foreign. The same text, flags and compiler give the same bytes.
// InvalidConfig: the compiler refuses, or runs too long or too large; the message has what it said.
// Unavailable: there is no such compiler here.
Result<Artifact> compile_foreign(const Program& program, const std::string& target_name, int threads);

// The assembly that compiler made of the text, and what is assembled from it. The binary is made from this
// text and from nothing else, so whoever reads it has seen all of the user's that will run.
struct ForeignListing {
  std::string assembly;
  SourceBuild build;
};
Result<ForeignListing> list_foreign(const Program& program);
// The artifact of that text. Errors as compile_foreign().
Result<Artifact> assemble_foreign(const ForeignListing& listing, const Program& program,
                                  const std::string& target_name, int threads);

// What records of this code name as their toolchain here (toolchain_text). Errors as above.
Result<std::string> foreign_toolchain(const Program& program);

// A program of the entry with `main_text` behind it, in a folder that goes with it.
struct ForeignProgram {
  std::unique_ptr<ScratchFolder> folder;
  std::string path;
};
Result<ForeignProgram> compile_foreign_program(const Program& program, const std::string& main_text);

// The assembly of it, for people.
Result<std::string> foreign_assembly(const Program& program);

// "#define TILE 8": a line for each macro that the config defines; a comment where it is no code of a
// user's.
std::string foreign_definitions(const Program& program);

// OK if the shared library needs nothing but the libraries of C, C++ and OpenMP; else InvalidConfig names
// another.
Status check_needed_libraries(const std::string& shared);

}  // namespace tuner
