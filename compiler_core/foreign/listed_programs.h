// Programs that this host's operator lists in a variable of the environment:
//
//   TUNER_COMPILERS=cc,c++,clang=/usr/bin/clang-22
//
// A name alone is looked for in /usr/local/bin, /usr/bin and /bin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct ProgramList {
  std::string_view variable;  // "TUNER_COMPILERS"
  std::string_view usual;     // the list where the variable is not set: "cc,c++"
  std::string_view what;      // one of them is called in messages: "compiler"
};

struct ListedProgram {
  std::string name;     // "cc"
  std::string path;     // absolute, links followed: "/usr/bin/x86_64-linux-gnu-gcc-12"
  std::string version;  // the line of its --version that has it: "cc (Debian 12.2.0-14) 12.2.0"
};

// The names of the list, whether or not the programs are there.
std::vector<std::string> listed_names(const ProgramList& list);
// Where it is; it has no version. NotFound: it is not listed, or not there; the message names those that are
// listed.
Result<ListedProgram> find_listed(const ProgramList& list, std::string_view name);
// Fills in the version, which is asked for once in a process, and again when the file changes. Failed: it
// does not say it.
Status ask_version(ListedProgram& program);

}  // namespace tuner
