// The compilers that may compile sources of users on this host: a list that its operator keeps.
//
//   TUNER_COMPILERS=cc,c++,clang=/usr/bin/clang-22
//
// A name alone is looked for in /usr/local/bin, /usr/bin and /bin. Without the variable the list is cc,c++.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct Compiler {
  std::string name;     // "cc"
  std::string path;     // absolute, links followed: "/usr/bin/x86_64-linux-gnu-gcc-12"
  std::string version;  // the first line of its --version: "cc (Debian 12.2.0-14) 12.2.0"
};

// The compiler of that name. NotFound: it is not listed, or not there; the message names those that are listed. Unavailable: this host
// cannot confine it. Its version is asked for once in a process, and again when the file changes.
Result<Compiler> find_compiler(std::string_view name);
// As records name it: "source:cc (Debian 12.2.0-14) 12.2.0".
std::string toolchain_text(const Compiler& compiler);
// What a record with this toolchain would name today; empty: it is of no compiler of the list, or that is not there.
std::string toolchain_now(std::string_view toolchain);
// The names of the list, whether or not they are there.
std::vector<std::string> listed_compilers();

}  // namespace tuner
